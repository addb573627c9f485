import { InvalidArgumentError, Option } from "commander";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export function listenOption(): Option {
  return new Option("--listen <host:port>", "where the API server listens; port 0 picks a free one")
    .default({ host: "127.0.0.1", port: 6443 } satisfies ListenAddress, "127.0.0.1:6443")
    .argParser(parseListen);
}

export function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError("Give HOST:PORT, such as 127.0.0.1:6443 or [::1]:6443.");
  }
  return { host: match[1] ?? match[2] ?? "", port };
}

import { InvalidArgumentError, Option } from "commander";

/** Where a process answers for its health and metrics; an empty host means every interface. */
export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

export function httpEndpointOption(port: number): Option {
  return new Option(
    "--http-endpoint <host:port>",
    `where health, metrics and debug pages are served; :${port} means every interface, "" none`,
  )
    .default({ host: "127.0.0.1", port } satisfies EndpointAddress, `127.0.0.1:${port}`)
    .argParser(parseHttpEndpoint);
}

/** False for "", which turns the endpoint off as it does upstream. */
export function parseHttpEndpoint(text: string): EndpointAddress | false {
  if (text === "") return false;
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError(
      "Give HOST:PORT such as 127.0.0.1:10257 or [::1]:10257, :PORT for every interface, or nothing for none.",
    );
  }
  return { host: match[1] ?? match[2] ?? "", port };
}

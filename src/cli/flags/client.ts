import { InvalidArgumentError, Option, type Command } from "commander";

/** How a process reaches the API server; the same flags for all that do. */
export interface ClientFlags {
  readonly kubeconfig?: string;
  readonly kubeApiQps?: number;
  readonly kubeApiBurst?: number;
}

export function addClientFlags(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "how to reach the API server; without it, the service account of the pod this runs in",
    )
    .addOption(
      new Option(
        "--kube-api-qps <number>",
        "requests a second to the API server at most; without it, concurrency follows the server's latency",
      ).argParser(parseQps),
    )
    .addOption(
      new Option(
        "--kube-api-burst <number>",
        "requests at once after a pause, with --kube-api-qps; without it, twice that rate",
      ).argParser(parseBurst),
    );
}

/** A bucket without a rate would silently do nothing. */
export function checkClientFlags(command: Command, { kubeApiQps, kubeApiBurst }: ClientFlags): void {
  if (kubeApiBurst === undefined || kubeApiQps !== undefined) return;
  command.error("error: --kube-api-burst needs --kube-api-qps: give both, or neither for no fixed rate");
}

function parseQps(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (value > 0 && value <= 1e6) return value;
  throw new InvalidArgumentError(
    "Give a number above 0 and up to 1000000; leave the flag out for no fixed rate.",
  );
}

function parseBurst(text: string): number {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : NaN;
  if (value >= 1 && value <= 1e6) return value;
  throw new InvalidArgumentError("Give a whole number from 1 to 1000000.");
}

import { InvalidArgumentError } from "commander";
import { parseEndpoint } from "../../processes/driver-flags.ts";

/** The path of a unix socket: `unix:///path` or `/path`. */
export function parseSocket(text: string): string {
  try {
    return parseEndpoint(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}

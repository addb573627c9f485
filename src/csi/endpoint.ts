import { CsiError } from "./errors.ts";

/** `sun_path` holds 108 bytes on Linux, the last of which ends it. */
const SOCKET_PATH_BYTES_MAX = 107;

/**
 * The path of a socket as flags and CSI_ENDPOINT give it: `unix:///abs/path.sock`, `unix:/abs/path.sock` or the path
 * alone. Throws INVALID_ARGUMENT with what is wrong.
 */
export function parseEndpoint(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/(?=\/))?/i, "");
  const problem = problemOf(path);
  if (problem === undefined) return path;
  throw new CsiError(
    "INVALID_ARGUMENT",
    `endpoint ${JSON.stringify(endpoint)}: ${problem}; expected unix:///path/to/csi.sock or /path/to/csi.sock`,
  );
}

function problemOf(path: string): string | undefined {
  // `unix://csi.sock` names a host, which a unix socket has not.
  if (!path.startsWith("/") || path.startsWith("//")) return "not an absolute path";
  if (path.endsWith("/")) return "a directory, not a socket";
  if (path.includes("\0")) return "contains a NUL";
  const bytes = Buffer.byteLength(path);
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    return `the path takes ${bytes} bytes, and the name of a socket has room for ${SOCKET_PATH_BYTES_MAX}`;
  }
  return undefined;
}

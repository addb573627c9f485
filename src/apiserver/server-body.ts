import type { Clock } from "../base/clock.ts";
import { badRequest, StatusError } from "./errors.ts";
import { BODY_BYTES_MAX, tooLarge } from "./handler.ts";
import { mediaType } from "./negotiation.ts";
import type { Request } from "./server.ts";

export type ReadBody =
  | { readonly kind: "read"; readonly body: string | Uint8Array }
  /** Too large, too slow or not text: answered, then the connection is closed, since the rest is still coming. */
  | { readonly kind: "refused"; readonly error: StatusError }
  | { readonly kind: "gone" };

/** The whole body in memory, which BODY_BYTES_MAX bounds; what is larger is not even read. */
export function readRequestBody(
  request: Request,
  { clock, deadlineMs }: { clock: Clock; deadlineMs: number },
): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const deadline = clock.after(deadlineMs, () =>
      finish({
        kind: "refused",
        error: new StatusError(408, "the request did not arrive in time", { reason: "Timeout" }),
      }),
    );
    function finish(result: ReadBody): void {
      deadline.cancel();
      request.removeAllListeners("data");
      request.pause();
      resolve(result);
    }
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) finish({ kind: "refused", error: tooLarge() });
      else chunks.push(chunk);
    });
    request.on("end", () => finish(decode(Buffer.concat(chunks), request.headers["content-type"])));
    request.on("error", () => finish({ kind: "gone" }));
    request.on("close", () => finish({ kind: "gone" }));
  });
}

/** Text unless the client says otherwise; text that is not UTF-8 would be stored as something else. */
function decode(bytes: Buffer, contentType: string | undefined): ReadBody {
  if (mediaType(contentType) === "application/vnd.kubernetes.protobuf") return { kind: "read", body: bytes };
  try {
    return { kind: "read", body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { kind: "refused", error: badRequest("the body of the request is not UTF-8 text") };
  }
}

import type { Writable } from "node:stream";
import type { HandlerResponse } from "../kube/handler.ts";
import type { Response } from "./server.ts";

/**
 * Sends an answer. A stream's headers leave at once: client-go counts a watch as started only when it
 * has them, and nothing may happen for minutes. A slow reader slows the iteration down, so that what
 * waits for it stays in the watch's bounded queue and not in this process's memory.
 *
 * `gone` aborts when the response is closed. It is asked instead of the response, because the two
 * protocols disagree on what a closed one says about itself.
 */
export async function sendResponse(
  response: Response,
  { status, headers, body }: HandlerResponse,
  { gone, closeConnection = false }: { gone: AbortSignal; closeConnection?: boolean },
): Promise<void> {
  if (gone.aborted) return;
  if (typeof body === "string") {
    const isHttp1 = !("stream" in response);
    response.writeHead(status, {
      ...headers,
      "content-length": String(Buffer.byteLength(body)),
      ...(closeConnection && isHttp1 ? { connection: "close" } : {}),
    });
    await end(response, body, gone);
    return;
  }
  response.writeHead(status, headers);
  // Over HTTP/2 writeHead sends; over HTTP/1 headers wait for the first byte of the body unless told not to.
  if ("flushHeaders" in response) response.flushHeaders();
  for await (const chunk of body) {
    if (isAborted(gone)) return;
    if (!write(response, chunk)) await happens(response, "drain", gone);
  }
  await end(response, "", gone);
}

/** Asked again after every await, which the compiler would otherwise not expect to matter. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function write(response: Response, chunk: string): boolean {
  // The two protocols declare the same method with different overloads.
  return (response as { write(chunk: string): boolean }).write(chunk);
}

async function end(response: Response, body: string, gone: AbortSignal): Promise<void> {
  if (isAborted(gone)) return;
  // Over HTTP/2 the response says so only when the client has ended its side too, which a refused one never may.
  const finished = happens("stream" in response ? response.stream : response, "finish", gone);
  (response as { end(chunk: string): void }).end(body);
  await finished;
}

/** Resolves when the response says so, or when it never will because the peer is gone. */
function happens(response: Writable, event: "drain" | "finish", gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off(event, done);
      gone.removeEventListener("abort", done);
      resolve();
    };
    if (gone.aborted) {
      resolve();
      return;
    }
    response.on(event, done);
    gone.addEventListener("abort", done);
  });
}

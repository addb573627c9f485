import { KubeError } from "../errors.ts";
import { describeRequest } from "./http-errors.ts";
import type { Transport, TransportRequest } from "./transport.ts";

/**
 * A transport for work that only a leader may do: writes leave only while `mayWrite` says so, asked at the last moment. A
 * request may have waited for its turn for seconds, or its process may have been frozen since it was decided upon.
 * Reads always pass.
 *
 * What is on the wire when the lease is lost cannot be called back.
 */
export function createFencedTransport(inner: Transport, mayWrite: () => boolean): Transport {
  return {
    request(request: TransportRequest) {
      if (request.method === "GET" || mayWrite()) return inner.request(request);
      const what = describeRequest(request);
      return Promise.reject(new KubeError("Unreachable", `${what}: not sent, this process no longer leads`));
    },
    stream: (request) => inner.stream(request),
    close: () => inner.close(),
  };
}

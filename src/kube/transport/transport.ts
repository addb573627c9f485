/**
 * The wire to one API server: bytes in, bytes out, no opinion on Kubernetes. The real one is
 * `http-transport.ts`; `memory-transport.ts` calls a handler in this process. Both pass
 * `test/contract/transport.ts`.
 *
 * Callers may rely on:
 * - `request` resolves with whatever status the server answered, once the whole body is here;
 * - `stream` resolves as soon as the headers are here; the body then arrives in chunks of any size;
 *   leaving the iteration (break, return, throw) closes the stream;
 * - a failure is a KubeError: `Unreachable` if the request certainly never reached the server,
 *   `ConnectionLost` if it may have (also in the middle of a streamed body);
 * - an aborted signal rejects with the signal's reason, promptly, at any stage;
 * - credentials are added by the transport and never appear in an error.
 *
 * Callers may not rely on: retries (there are none, except once after a 401 whose credential could be
 * refreshed, and twice for a request that the server handed back unread), chunk boundaries, or any deadline
 * that they did not set through the signal.
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  stream(request: TransportRequest): Promise<TransportStream>;
  /** Ends idle connections and refuses new requests. Streams still open are cut. */
  close(): Promise<void>;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface TransportRequest {
  readonly method: Method;
  /** From the root of the API server, with its query: `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** Names in lower case; a header sent several times is joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface TransportStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

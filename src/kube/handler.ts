/**
 * An API server seen from inside the process: a function from request to answer. The embedded server's
 * socket calls one, the memory transport calls the same one, so that whole clusters run without a port.
 *
 * A handler may rely on:
 * - `signal` aborts when the client went away, hung up on a streamed body or gave up waiting; work done
 *   for nobody else may then stop, and a watch must;
 * - the body is complete when the handler is called;
 * - iteration of a streamed body is returned (`return()` is called) when the client leaves it.
 *
 * A handler answers errors as responses. One that throws is a fault of the server: its caller drops the
 * connection or answers 500.
 */
export type Handler = (request: HandlerRequest) => Promise<HandlerResponse>;

export interface HandlerRequest {
  readonly method: string;
  /** With its query: `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Names in lower case; a header sent several times is joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes where the content type is not text, as the protobuf of Go clients. */
  readonly body: string | Uint8Array;
  readonly signal: AbortSignal;
  /** Who the connection already proved to be (a client certificate); absent where only headers can say. */
  readonly user?: HandlerUser;
}

export interface HandlerUser {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface HandlerResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Iterated chunks are sent as they come: a watch is one chunk an event or several. */
  readonly body: string | AsyncIterable<string>;
}

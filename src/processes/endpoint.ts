import { isIP } from "node:net";

/**
 * What a process answers about itself, apart from the socket it answers on: `http-endpoint.ts` is that, and tests
 * call `respond`. Reads only, no bodies, JSON errors in the shape of a Kubernetes Status.
 */
export interface EndpointRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** The `Host` header. */
  readonly host: string;
  readonly remoteAddress: string;
}

export interface EndpointResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type EndpointRoute = (
  query: URLSearchParams,
  request: EndpointRequest,
) => EndpointResponse | Promise<EndpointResponse>;

/** By path, which has to match as a whole. */
export type EndpointRoutes = Readonly<Record<string, EndpointRoute>>;

export async function respond(routes: EndpointRoutes, request: EndpointRequest): Promise<EndpointResponse> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    const refusal = failure(405, "MethodNotAllowed", `${request.method} is not served here; use GET`);
    return { ...refusal, headers: { allow: "GET, HEAD" } };
  }
  const [path = "", ...query] = request.url.split("?");
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (route === undefined) {
    return failure(404, "NotFound", `there is no such page; these are: ${Object.keys(routes).join(", ")}`);
  }
  return route(new URLSearchParams(query.join("?")), request);
}

export function text(status: number, body: string): EndpointResponse {
  return { status, contentType: "text/plain; charset=utf-8", body };
}

export function json(value: unknown, { pretty = false }: { pretty?: boolean } = {}): EndpointResponse {
  const body = `${JSON.stringify(value, null, pretty ? 2 : undefined)}\n`;
  return { status: 200, contentType: "application/json", body };
}

export function failure(status: number, reason: string, message: string): EndpointResponse {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", reason, message, code: status };
  return { ...json(body), status };
}

/**
 * A page for people on this machine only, also where the endpoint listens on every interface for probes: it names
 * pods and volumes of all namespaces. `kubectl port-forward` arrives from loopback and gets through. The Host header
 * has to be an address, so that no web page can have a browser fetch it under a name that it controls.
 */
export function localOnly(route: EndpointRoute): EndpointRoute {
  return (query, request) => {
    if (isLoopback(request.remoteAddress) && isLocalHost(request.host)) return route(query, request);
    return failure(
      403,
      "Forbidden",
      "this page is for clients on the same machine; use kubectl port-forward and http://127.0.0.1",
    );
  };
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

function isLocalHost(host: string): boolean {
  const name = host.replace(/:\d+$/, "");
  return name === "localhost" || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

import type { Handler, HandlerResponse } from "../kube/handler.ts";
import type { KubeObject } from "../kube/object.ts";

/** API servers that are not like ours: what `behaves` of a simulated server can be. */

/** A server from before 1.27, which does not know streaming lists and says so. */
export function refusesStreamingLists(handler: Handler): Handler {
  return async (request) =>
    request.path.includes("sendInitialEvents") ? failure(422, "Invalid") : handler(request);
}

/** A server, or a proxy before it, that overlooks the parameter: it watches, and never says where the state ends. */
export function ignoresStreamingLists(handler: Handler): Handler {
  return (request) =>
    handler({
      ...request,
      path: request.path.replace(/&(sendInitialEvents|resourceVersionMatch)=[^&]*/g, ""),
    });
}

/** One that lets anybody overwrite anything: what nothing may be built on. */
export function ignoresPreconditions(handler: Handler): Handler {
  return async (request) => {
    if (request.method !== "PUT") return handler(request);
    const { metadata, ...object } = JSON.parse(request.body as string) as KubeObject;
    const there = await handler({ ...request, method: "GET", body: "" });
    const { resourceVersion } = (JSON.parse(there.body as string) as KubeObject).metadata;
    return handler({
      ...request,
      body: JSON.stringify({ ...object, metadata: { ...metadata, resourceVersion } }),
    });
  };
}

/** An answer of such a server. */
export function failure(status: number, reason: string): HandlerResponse {
  const body = { kind: "Status", status: "Failure", reason, code: status, message: `made up: ${reason}` };
  return { status, headers: {}, body: JSON.stringify(body) };
}

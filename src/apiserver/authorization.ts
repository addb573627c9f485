import type { Handler, HandlerRequest, HandlerUser } from "../kube/handler.ts";
import { forbidden, StatusError, toResponse } from "./errors.ts";
import { parseRoute, type Route } from "./routes.ts";
import { verbFor } from "./verb-names.ts";

/** The group that may do everything; there are no other rights until roles are evaluated. */
export const MASTERS = "system:masters";

/**
 * Decides who may ask `handler` what. Health and version are for everybody: probes have no credentials.
 * Everything else needs a user, and that user the group `system:masters`. Rights come before existence:
 * whoever may not read a resource does not learn whether it exists.
 */
export function createAuthorizer(handler: Handler): Handler {
  return async (request) => {
    const refusal = refuse(request);
    return refusal === undefined ? handler(request) : toResponse(refusal);
  };
}

function refuse(request: HandlerRequest): StatusError | undefined {
  const [path = "", search] = request.path.split("?", 2);
  const route = parseRoute(path);
  if (route.kind === "health" || route.kind === "version") return undefined;
  if (request.user === undefined) return unauthorized();
  if (request.user.groups.includes(MASTERS)) return undefined;
  return denied(request.user, request.method, path, route, new URLSearchParams(search));
}

export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized");
}

function denied(
  user: HandlerUser,
  method: string,
  path: string,
  route: Route,
  query: URLSearchParams,
): StatusError {
  if (route.kind !== "resource") {
    const why = `forbidden: User ${JSON.stringify(user.name)} cannot ${method.toLowerCase()} path ${JSON.stringify(path)}`;
    return new StatusError(403, why, { details: {} });
  }
  const { resource, namespace, name, subresource } = route;
  const what = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
  const scope =
    namespace === undefined ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const verb = verbFor(method, route, query) ?? method.toLowerCase();
  return forbidden(
    resource,
    name,
    `User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(what)} in API group ${JSON.stringify(resource.group)} ${scope}`,
  );
}

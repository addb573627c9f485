import { StatusError } from "../errors.ts";
import type { AccessAttributes, ResourceAccess } from "./attributes.ts";
import type { UserInfo } from "./user.ts";

/** No credential, or one that proves nothing. Never says which: that would help whoever guesses. */
export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized");
}

/** 403 in the words that clients and people know (spec/apiserver.md, section 12). */
export function accessDenied(user: UserInfo, access: AccessAttributes, reason = ""): StatusError {
  const why = reason === "" ? "" : `: ${reason}`;
  const who = `User ${JSON.stringify(user.name)} cannot ${access.verb}`;
  if (access.kind === "path") {
    return new StatusError(403, `forbidden: ${who} path ${JSON.stringify(access.path)}${why}`, {
      details: {},
    });
  }
  return refuse(access, `${who} ${describe(access)}${why}`);
}

/** 403 for one object, with a text of its own. */
export function refuse(
  { group, resource, name }: Pick<ResourceAccess, "group" | "resource" | "name">,
  why: string,
) {
  const qualified = group === "" ? resource : `${resource}.${group}`;
  const what = name === "" ? qualified : `${qualified} ${JSON.stringify(name)}`;
  return new StatusError(403, `${what} is forbidden: ${why}`, {
    details: { ...(name === "" ? {} : { name }), ...(group === "" ? {} : { group }), kind: resource },
  });
}

function describe({ group, resource, subresource, namespace }: ResourceAccess): string {
  const what = subresource === "" ? resource : `${resource}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  return `resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}`;
}

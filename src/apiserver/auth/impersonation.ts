import { badRequest, type StatusError } from "../errors.ts";
import { resourceAccess, type ResourceAccess } from "./attributes.ts";
import {
  ANONYMOUS,
  asAuthenticated,
  parseServiceAccountUserName,
  serviceAccountGroups,
  type UserInfo,
} from "./user.ts";

/** Whom a request wants to act as, and what its sender must be allowed for that. */
export interface Impersonation {
  readonly user: UserInfo;
  readonly needs: readonly ResourceAccess[];
}

type Headers = Readonly<Record<string, string>>;

const EXTRA_PREFIX = "impersonate-extra-";

/** Undefined where no `Impersonate-*` header was sent. Header names are in lower case. */
export function parseImpersonation(headers: Headers): Impersonation | undefined {
  const name = headers["impersonate-user"] ?? "";
  const uid = headers["impersonate-uid"] ?? "";
  const groups = valuesOf(headers["impersonate-group"]);
  const extra = extraOf(headers);
  if (name === "") {
    if (uid !== "" || groups.length > 0 || extra.size > 0) throw withoutUser();
    return undefined;
  }
  const needs = [
    need("", accountOrUser(name)),
    ...groups.map((group) => need("", { resource: "groups", name: group })),
    ...(uid === "" ? [] : [need("authentication.k8s.io", { resource: "uids", name: uid })]),
    ...[...extra].flatMap(([subresource, values]) =>
      values.map((value) =>
        need("authentication.k8s.io", { resource: "userextras", subresource, name: value }),
      ),
    ),
  ];
  return { user: toUser({ name, uid, groups, extra }), needs };
}

function need(group: string, access: Partial<ResourceAccess> & { resource: string }): ResourceAccess {
  return resourceAccess({ ...access, group, verb: "impersonate" });
}

function accountOrUser(name: string): Partial<ResourceAccess> & { resource: string } {
  const account = parseServiceAccountUserName(name);
  return account === undefined ? { resource: "users", name } : { resource: "serviceaccounts", ...account };
}

function toUser({
  name,
  uid,
  groups,
  extra,
}: {
  name: string;
  uid: string;
  groups: readonly string[];
  extra: ReadonlyMap<string, readonly string[]>;
}): UserInfo {
  if (name === ANONYMOUS.name && groups.length === 0) return ANONYMOUS;
  const account = parseServiceAccountUserName(name);
  const own = account === undefined || groups.length > 0 ? [] : serviceAccountGroups(account.namespace);
  return asAuthenticated({
    name,
    groups: [...groups, ...own],
    ...(uid === "" ? {} : { uid }),
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  });
}

function extraOf(headers: Headers): Map<string, readonly string[]> {
  const extra = new Map<string, readonly string[]>();
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(EXTRA_PREFIX)) continue;
    extra.set(decodeKey(header.slice(EXTRA_PREFIX.length)), valuesOf(value));
  }
  return extra;
}

/** Keys are percent-encoded, because a header's name may not hold a slash. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Several lines of one header arrive joined by ", ". */
function valuesOf(header: string | undefined): string[] {
  return (header ?? "").split(", ").filter((value) => value !== "");
}

function withoutUser(): StatusError {
  return badRequest(
    "requested to impersonate a uid, groups or extra without impersonating a user; send Impersonate-User as well",
  );
}

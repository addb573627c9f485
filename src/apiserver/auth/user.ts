import type { HandlerUser } from "../../kube/handler.ts";

/** Who asks, as authentication found out. */
export interface UserInfo extends HandlerUser {
  readonly uid?: string;
  /** What the credential says besides: the pod and node that a token was made for. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Every user that showed a credential. */
export const AUTHENTICATED = "system:authenticated";
const UNAUTHENTICATED = "system:unauthenticated";
/** May do everything, whatever roles say: the way back for whoever locked everybody out. */
export const MASTERS = "system:masters";
const NODES = "system:nodes";
const NODE_PREFIX = "system:node:";
const SERVICE_ACCOUNTS = "system:serviceaccounts";
const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";

/** Whoever shows nothing. */
export const ANONYMOUS: UserInfo = { name: "system:anonymous", groups: [UNAUTHENTICATED] };

export function asAuthenticated(user: UserInfo): UserInfo {
  const isAnonymous = user.name === ANONYMOUS.name || user.groups.includes(UNAUTHENTICATED);
  if (isAnonymous || user.groups.includes(AUTHENTICATED)) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED] };
}

export interface AccountRef {
  readonly namespace: string;
  readonly name: string;
}

export function serviceAccountUserName({ namespace, name }: AccountRef): string {
  return `${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`;
}

export function serviceAccountGroups(namespace: string): string[] {
  return [SERVICE_ACCOUNTS, `${SERVICE_ACCOUNTS}:${namespace}`];
}

/** The account behind a user name; undefined where the name is of another form. */
export function parseServiceAccountUserName(userName: string): AccountRef | undefined {
  if (!userName.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined;
  const [namespace = "", name = "", ...more] = userName.slice(SERVICE_ACCOUNT_PREFIX.length).split(":");
  return namespace === "" || name === "" || more.length > 0 ? undefined : { namespace, name };
}

/** The node that a node agent speaks for. Name and group are both needed: either alone proves nothing. */
export function nodeNameOf({ name, groups }: UserInfo): string | undefined {
  if (!name.startsWith(NODE_PREFIX) || !groups.includes(NODES)) return undefined;
  const nodeName = name.slice(NODE_PREFIX.length);
  return nodeName === "" ? undefined : nodeName;
}

/** `userInfo` of the authentication API. */
export function renderUser({ name, uid, groups, extra }: UserInfo): object {
  return {
    username: name,
    ...(uid === undefined || uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(extra === undefined || Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

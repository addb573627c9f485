import { resourceName } from "../../kube/object.ts";
import { renderUser, type UserInfo } from "../auth/user.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { completeObject } from "../schema/complete.ts";
import type { GroupVersionKind } from "../schema/schema.ts";

/** Who writes, and how. What the server itself writes to be able to start has none, and no policy sees it. */
export interface Requester {
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** As in the path: `status`, `scale`; empty for the object itself. */
  readonly subresource: string;
  /** Tells the sender something that does not stop the request. */
  readonly warn: (text: string) => void;
}

/** Controllers of this server are to a policy what kube-controller-manager is to a real one: a client like any other. */
export const CONTROLLER: Requester = {
  user: { name: "system:kube-controller-manager", groups: ["system:authenticated"] },
  dryRun: false,
  subresource: "",
  warn: () => undefined,
};

export type Operation = "CREATE" | "UPDATE" | "DELETE";

/** One write, as a policy is asked about it. */
export interface PolicyRequest {
  readonly operation: Operation;
  /** Of the path. */
  readonly resource: Kind;
  readonly requester: Requester;
  /** What is in the body: the kind of the path, or of its subresource, such as a Scale. */
  readonly bodyKind: GroupVersionKind;
  readonly name: string;
  /** Of a Namespace it is the namespace itself, as in a real server. */
  readonly namespace: string;
  /** In short form, in the spelling of the request; absent for DELETE. */
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
}

/** Nobody may be locked out: what says what is admitted is never judged by it. */
const EXEMPT: ReadonlySet<string> = new Set(
  [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
  ].map((plural) => `${plural}.admissionregistration.k8s.io`),
);

export function isExempt(kind: Kind): boolean {
  return EXEMPT.has(resourceName(kind));
}

/** An object as an expression sees it: complete, as it would be sent. */
export function shownObject(kind: GroupVersionKind, object: ApiObject): ApiObject {
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  return completeObject(kind, { ...object, kind: kind.kind, apiVersion });
}

/** The variable `request`; `kind` and `resource` are those that the policy asked for. */
export function shownRequest(
  { operation, resource, requester, bodyKind, name, namespace }: PolicyRequest,
  matched: Kind,
): object {
  const { user, dryRun, subresource } = requester;
  const toResource = ({ group, version, plural }: Kind) => ({ group, version, resource: plural });
  const { group, version, kind } = bodyKind;
  const requestKind = { group, version, kind };
  const isOwn = bodyKind.kind === resource.kind;
  // What is empty is absent, as it is in the JSON of a real AdmissionRequest: `has(request.subResource)` asks for it.
  return {
    kind: isOwn ? { group: matched.group, version: matched.version, kind: matched.kind } : requestKind,
    resource: toResource(matched),
    requestKind,
    requestResource: toResource(resource),
    ...(subresource === "" ? {} : { subResource: subresource, requestSubResource: subresource }),
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: renderUser(user),
    dryRun,
    options: {
      kind: OPTIONS[operation],
      apiVersion: "meta.k8s.io/v1",
      ...(dryRun ? { dryRun: ["All"] } : {}),
    },
  };
}

const OPTIONS: Readonly<Record<Operation, string>> = {
  CREATE: "CreateOptions",
  UPDATE: "UpdateOptions",
  DELETE: "DeleteOptions",
};

import type { ApiObject } from "../objects.ts";
import type { StoreKey } from "../store/store.ts";
import type { RoleRef } from "./authorizer.ts";
import type { IndexTarget } from "./index-feed.ts";
import { listAt, textAt } from "./stored.ts";
import { serviceAccountUserName, type UserInfo } from "./user.ts";

/** That a binding gives one subject a role, in one namespace or everywhere. */
export interface Grant {
  readonly roleRef: RoleRef;
  /** Of the binding; empty for cluster-wide ones. */
  readonly namespace: string;
  /** `RoleBinding "rb/t" of Role "r" to Group "devs"`, as reasons name it. */
  readonly description: string;
}

type BindingKind = "RoleBinding" | "ClusterRoleBinding";

/** Bindings by namespace and subject. A service account is the user it authenticates as. */
export class BindingIndex {
  readonly #bySubject = new Map<string, Map<string, Grant>>();
  /** Where each binding stands, so that it can be taken out again. */
  readonly #subjectsOf = new Map<string, readonly string[]>();

  target(kind: BindingKind): IndexTarget {
    const idOf = ({ namespace, name }: StoreKey) => `${kind} ${namespace}/${name}`;
    return {
      put: (key, binding) => {
        this.#remove(idOf(key));
        this.#add(idOf(key), toGrants(kind, key, binding));
      },
      remove: (key) => this.#remove(idOf(key)),
      clear: () => {
        for (const id of [...this.#subjectsOf.keys()]) if (id.startsWith(`${kind} `)) this.#remove(id);
      },
    };
  }

  /** Cluster-wide grants first, then those of the namespace. */
  *grantsFor({ name, groups }: UserInfo, namespace: string): Iterable<Grant> {
    const subjects = [userSubject(name), ...groups.map(groupSubject)];
    for (const scope of namespace === "" ? [""] : ["", namespace]) {
      for (const subject of subjects) yield* this.#bySubject.get(`${scope} ${subject}`)?.values() ?? [];
    }
  }

  #add(id: string, grants: ReadonlyMap<string, Grant>): void {
    for (const [subject, grant] of grants) {
      let held = this.#bySubject.get(subject);
      if (held === undefined) this.#bySubject.set(subject, (held = new Map<string, Grant>()));
      held.set(id, grant);
    }
    this.#subjectsOf.set(id, [...grants.keys()]);
  }

  #remove(id: string): void {
    for (const subject of this.#subjectsOf.get(id) ?? []) {
      const held = this.#bySubject.get(subject);
      held?.delete(id);
      if (held?.size === 0) this.#bySubject.delete(subject);
    }
    this.#subjectsOf.delete(id);
  }
}

function userSubject(name: string): string {
  return `User ${name}`;
}

function groupSubject(name: string): string {
  return `Group ${name}`;
}

/** By `namespace subject`; a subject that stands twice is one. */
function toGrants(kind: BindingKind, { namespace, name }: StoreKey, binding: ApiObject): Map<string, Grant> {
  const roleRef = { kind: textAt(binding, "roleRef", "kind"), name: textAt(binding, "roleRef", "name") };
  const bindingName = namespace === "" ? name : `${name}/${namespace}`;
  const head = `${kind} ${JSON.stringify(bindingName)} of ${roleRef.kind} ${JSON.stringify(roleRef.name)}`;
  const grants = new Map<string, Grant>();
  for (const item of listAt(binding, "subjects")) {
    const subject = readSubject(item, namespace);
    if (subject === undefined) continue;
    const description = `${head} to ${subject.description}`;
    grants.set(`${namespace} ${subject.key}`, { roleRef, namespace, description });
  }
  return grants;
}

/** An account without a namespace is one of the binding's own; in a cluster-wide binding it is nobody. */
function readSubject(
  subject: unknown,
  bindingNamespace: string,
): { key: string; description: string } | undefined {
  const [kind, name] = [textAt(subject, "kind"), textAt(subject, "name")];
  if (kind === "User") return { key: userSubject(name), description: `User ${JSON.stringify(name)}` };
  if (kind === "Group") return { key: groupSubject(name), description: `Group ${JSON.stringify(name)}` };
  const namespace = textAt(subject, "namespace") || bindingNamespace;
  if (kind !== "ServiceAccount" || namespace === "") return undefined;
  return {
    key: userSubject(serviceAccountUserName({ namespace, name })),
    description: `ServiceAccount ${JSON.stringify(`${name}/${namespace}`)}`,
  };
}

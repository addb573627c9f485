import { assert } from "../../base/assert.ts";
import { jsonEqual } from "../../kube/patch/json.ts";
import { findKind, type Kind } from "../kinds.ts";
import { parseStored, renderObject, type ApiObject } from "../objects.ts";
import { keyFor, type VerbDeps } from "../request.ts";
import { createObject } from "../verbs/create.ts";
import { bootstrapPolicy } from "./bootstrap-roles.ts";
import { listAt } from "./stored.ts";

const AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate";

/**
 * Part of every start: creates the default roles and bindings that are missing, and gives back rules and
 * subjects that were taken from those that are there. What somebody added stays, and an object whose
 * `autoupdate` annotation says "false" is left as it is.
 */
export async function ensureBootstrapPolicy(deps: VerbDeps): Promise<void> {
  const { roles, bindings } = bootstrapPolicy();
  // All at once, so that they share commits: 141 one after another are 141 waits for the disk.
  await Promise.all(roles.map((role) => ensure(deps, kindFor(role), role, "rules")));
  await Promise.all(bindings.map((binding) => ensure(deps, kindFor(binding), binding, "subjects")));
}

function kindFor({ kind }: ApiObject): Kind {
  return kindOf(`${String(kind).toLowerCase()}s`);
}

async function ensure(
  deps: VerbDeps,
  kind: Kind,
  wanted: ApiObject,
  list: "rules" | "subjects",
): Promise<void> {
  const { namespace } = wanted.metadata;
  const key = keyFor(kind, namespace, wanted.metadata.name ?? "");
  for (;;) {
    const stored = deps.store.get(key);
    if (stored === undefined) {
      await createObject(deps, kind, { namespace, object: wanted, dryRun: false });
      return;
    }
    const object = parseStored(stored);
    const present = listAt(object, list);
    const missing = listAt(wanted, list).filter((item) => !present.some((other) => jsonEqual(item, other)));
    const isFrozen = object.metadata.annotations?.[AUTOUPDATE] === "false";
    if (missing.length === 0 || isFrozen) return;
    const repaired = { ...object, [list]: [...present, ...missing] };
    const render = (revision: number) => renderObject(kind, repaired, revision);
    const { kind: outcome } = await deps.store.update(key, render, { expected: stored.revision });
    if (outcome === "committed") return;
  }
}

function kindOf(plural: string): Kind {
  const kind = findKind("rbac.authorization.k8s.io", "v1", plural);
  assert(kind !== undefined, `${plural} are not served, so there is nowhere to keep the default roles`);
  return kind;
}

import { resourceName } from "../kube/object.ts";
import { KINDS, namespaces } from "./kinds.ts";
import { parseStored, renderObject } from "./objects.ts";
import { hasFinalizers } from "./prepare.ts";
import { keyFor, type VerbDeps } from "./request.ts";
import { createObject } from "./verbs/create.ts";

/** What every cluster has; the first three may not be deleted. */
export const SYSTEM_NAMESPACES = ["default", "kube-system", "kube-public", "kube-node-lease"];
export const PROTECTED_NAMESPACES = SYSTEM_NAMESPACES.slice(0, 3);

/** Creates the system namespaces that are not there yet: part of every start. */
export async function createSystemNamespaces(deps: VerbDeps): Promise<void> {
  for (const name of SYSTEM_NAMESPACES) {
    if (deps.store.get(keyFor(namespaces, undefined, name)) !== undefined) continue;
    await createObject(deps, namespaces, {
      namespace: undefined,
      object: { metadata: { name } },
      dryRun: false,
    });
  }
}

/**
 * A namespace being deleted goes with the last object in it. Called after every removal, and cheap
 * unless that namespace is being deleted.
 */
export async function finishNamespace(deps: VerbDeps, name: string): Promise<void> {
  if (name === "") return;
  const key = keyFor(namespaces, undefined, name);
  for (;;) {
    const stored = deps.store.get(key);
    if (stored === undefined) return;
    const namespace = parseStored(stored);
    if (namespace.metadata.deletionTimestamp === undefined || hasFinalizers(namespace.metadata)) return;
    if (!isEmpty(deps, name)) return;
    const lastWords = (revision: number) => renderObject(namespaces, namespace, revision);
    // A conflict means that somebody changed it meanwhile: look again, nobody else will.
    const outcome = await deps.store.delete(key, lastWords, { expected: stored.revision });
    if (outcome.kind === "committed") return;
  }
}

function isEmpty({ store }: VerbDeps, namespace: string): boolean {
  return KINDS.filter((kind) => kind.namespaced && kind.storedAs === undefined).every((kind) => {
    for (const _ of store.scan({ resource: resourceName(kind), namespace })) return false;
    return true;
  });
}

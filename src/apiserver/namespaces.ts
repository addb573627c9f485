import { namespaces } from "./kinds.ts";
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

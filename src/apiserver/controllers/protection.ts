import type { Outcome } from "../../kube/workqueue/controller.ts";
import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import type { StoreKey } from "../store/store.ts";
import { claimsHeldBy, ClaimUsers } from "./claim-users.ts";
import { AGAIN, DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { finalizersOf, isDeleting, isMarked } from "./lifecycle.ts";
import { fromText, toText } from "./served.ts";
import { changeSeen, withoutFinalizer } from "./writes.ts";

const CLAIMS = "persistentvolumeclaims";
const VOLUMES = "persistentvolumes";
export type ProtectedResource = typeof CLAIMS | typeof VOLUMES;
const FINALIZERS: Readonly<Record<string, string>> = {
  [CLAIMS]: "kubernetes.io/pvc-protection",
  [VOLUMES]: "kubernetes.io/pv-protection",
};

/**
 * A claim that is being deleted goes once no pod holds it, a volume once no claim is bound to it. The finalizers are put
 * on by admission; here they are taken away, and never while in doubt.
 */
export function createProtection(
  verbs: VerbDeps,
  { mark }: Marks,
  { resources }: { readonly resources: readonly ProtectedResource[] } = { resources: [CLAIMS, VOLUMES] },
): EngineController {
  const { store } = verbs;
  const isOurs = (resource: string) => resources.some((one) => one === resource);
  const users = new ClaimUsers();

  function isFree({ resource }: StoreKey, id: string, object: ApiObject): boolean {
    if (resource === VOLUMES) return fieldAt(object, "status", "phase") !== "Bound";
    for (const { madeForUid } of users.usesOf(id)) {
      if (madeForUid === undefined || isControlledBy(object, madeForUid)) return false;
    }
    return true;
  }

  return {
    clear: () => users.clear(),

    observe({ type, object }) {
      const { key } = object;
      if (isOurs(key.resource) && type !== "deleted" && isDeleting(object)) mark(toText(key));
      if (key.resource !== "pods" || !isOurs(CLAIMS)) return;
      const held = type === "deleted" ? [] : claimsHeldBy(parseStored(object));
      const uses = held.map((use) => ({ ...use, claim: claimKey(key.namespace, use.claim) }));
      for (const claim of users.set(toText(key), uses)) mark(claim);
    },

    async reconcile(id): Promise<Outcome> {
      const key = fromText(id);
      const stored = store.get(key);
      const finalizer = FINALIZERS[key.resource];
      if (stored === undefined || finalizer === undefined) return DONE;
      const release = (object: ApiObject) =>
        isMarked(object) && isFree(key, id, object) ? withoutFinalizer(object, finalizer) : object;
      const object = parseStored(stored);
      if (!isMarked(object) || !finalizersOf(object).includes(finalizer)) return DONE;
      return (await changeSeen(verbs, stored, release)) === "conflict" ? AGAIN : DONE;
    },
  };
}

function claimKey(namespace: string, name: string): string {
  return toText({ resource: CLAIMS, namespace, name });
}

function isControlledBy({ metadata }: ApiObject, uid: string): boolean {
  return (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid);
}

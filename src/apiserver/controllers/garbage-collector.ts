import type { OwnerReference } from "kubernetes-types/meta/v1.js";
import { unreachable } from "../../base/assert.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { namespaces } from "../kinds.ts";
import { PROTECTED_NAMESPACES } from "../namespaces.ts";
import { parseStored, type ApiObject } from "../objects.ts";
import { keyFor, type VerbDeps } from "../request.ts";
import type { StoredObject } from "../store/store.ts";
import { planCollection, type Collection, type CollectionView, type OwnerView } from "./collection.ts";
import { AGAIN, DONE, type Change, type EngineController, type Marks } from "./engine-controller.ts";
import { isDeleting, isDeletingDependants, isOrphaningDependants } from "./lifecycle.ts";
import { OwnerIndex, resolveOwner, type Owner } from "./owners.ts";
import { fromText, toText } from "./served.ts";
import { changeSeen, deleteSeen, forAll, withoutFinalizer, type WriteResult } from "./writes.ts";

/**
 * Deletes what nobody owns any more, and lets go of owners that wait for what they own. Keys are objects: those that
 * have owners, and those that wait. An object is looked at when its references change, when one of its owners goes, and
 * when the last dependant it waits for has gone; never all of them because of one.
 *
 * Owners are looked up in the store itself at that moment, and a delete happens only to the version that was looked
 * at: an owner added meanwhile saves its dependant.
 */
export function createGarbageCollector(
  verbs: VerbDeps,
  { mark }: Marks,
  { sync }: { readonly sync: () => void },
): EngineController {
  const { store } = verbs;
  const index = new OwnerIndex();

  function observePresent({ object }: Change): void {
    const { key, text } = object;
    const id = toText(key);
    const before = index.ownersOf(id);
    // Most objects have no owners and are not going: they are not parsed.
    const hasOwners = before.length > 0 || text.includes('"ownerReferences":');
    if (hasOwners) {
      const references = parseStored(object).metadata.ownerReferences ?? [];
      setOwners(
        id,
        before,
        references.map((reference) => resolveOwner(key, reference)),
      );
    }
    if (isDeleting(object) && waitsForDependants(parseStored(object))) mark(id);
  }

  function setOwners(id: string, before: readonly Owner[], owners: readonly Owner[]): void {
    if (JSON.stringify(before) === JSON.stringify(owners)) return;
    index.set(id, owners);
    if (owners.length > 0) mark(id);
    releaseOwners(before);
  }

  function observeGone({ object }: Change): void {
    const id = toText(object.key);
    const { uid = "" } = parseStored(object).metadata;
    for (const dependant of index.dependantsOf(id, uid)) mark(dependant);
    const before = index.ownersOf(id);
    index.set(id, []);
    releaseOwners(before);
  }

  /** Owners that waited for this dependant, and now for no other, may go. */
  function releaseOwners(owners: readonly Owner[]): void {
    for (const { key, uid } of owners) {
      if (key !== undefined && !index.isBlocked(toText(key), uid) && isLeaving(store.get(key)))
        mark(toText(key));
    }
  }

  function viewOf(id: string, stored: StoredObject): CollectionView {
    const object = parseStored(stored);
    const { uid = "" } = object.metadata;
    const dependants = index.dependantsOf(id, uid);
    return {
      object,
      owners: index.ownersOf(id).map(ownerView),
      hasDependants: dependants.length > 0,
      isBlocked: index.isBlocked(id, uid),
      isInCircle:
        isLeaving(stored) && index.isInCircle(id, uidOf, (key) => isLeaving(store.get(fromText(key)))),
    };
  }

  function ownerView({ key, uid }: Owner): OwnerView {
    if (key === undefined) return { uid, state: "unknown" };
    const stored = store.get(key);
    if (stored === undefined || parseStored(stored).metadata.uid !== uid) return { uid, state: "gone" };
    return { uid, state: isLeaving(stored) ? "leaving" : "there" };
  }

  function uidOf(id: string): string {
    const stored = store.get(fromText(id));
    return stored === undefined ? "" : (parseStored(stored).metadata.uid ?? "");
  }

  async function carryOut(id: string, stored: StoredObject, plan: Collection): Promise<Outcome> {
    switch (plan.kind) {
      case "leave":
        return DONE;
      case "delete":
        return toOutcome(await deleteSeen(verbs, stored, plan.policy));
      case "disown":
        return toOutcome(await changeSeen(verbs, stored, (object) => withoutOwners(object, plan.uids)));
      case "unblock":
        return toOutcome(await changeSeen(verbs, stored, withoutBlocking));
      case "release":
        return toOutcome(
          await changeSeen(verbs, stored, (object) => withoutFinalizer(object, plan.finalizer)),
        );
      case "delete-dependants":
        for (const dependant of dependantsOf(id, stored)) if (isLiving(dependant)) mark(dependant);
        return DONE;
      case "orphan-dependants":
        return orphan(id, stored);
      default:
        return unreachable(plan);
    }
  }

  function isLiving(id: string): boolean {
    const stored = store.get(fromText(id));
    return stored !== undefined && !isDeleting(stored);
  }

  /** The finalizer goes last: whoever is killed in between finds it, and does the rest. */
  async function orphan(id: string, stored: StoredObject): Promise<Outcome> {
    const { uid = "" } = parseStored(stored).metadata;
    await forAll(dependantsOf(id, stored), async (dependant) => {
      const seen = store.get(fromText(dependant));
      if (seen !== undefined) await changeSeen(verbs, seen, (object) => withoutOwners(object, [uid]));
    });
    sync();
    // Some came while we were at it, or could not be changed; they have to be left behind as well.
    if (dependantsOf(id, stored).length > 0) return AGAIN;
    mark(id);
    return DONE;
  }

  function dependantsOf(id: string, stored: StoredObject): readonly string[] {
    return index.dependantsOf(id, parseStored(stored).metadata.uid ?? "");
  }

  return {
    clear: () => index.clear(),
    observe: (change) => (change.type === "deleted" ? observeGone(change) : observePresent(change)),
    async reconcile(id): Promise<Outcome> {
      const stored = store.get(fromText(id));
      if (stored === undefined || isProtected(stored)) return DONE;
      return carryOut(id, stored, planCollection(viewOf(id, stored)));
    },
  };
}

function isLeaving(stored: StoredObject | undefined): boolean {
  return stored !== undefined && isDeleting(stored) && isDeletingDependants(parseStored(stored));
}

function waitsForDependants(object: ApiObject): boolean {
  return isDeletingDependants(object) || isOrphaningDependants(object);
}

function isProtected({ key }: StoredObject): boolean {
  return PROTECTED_NAMESPACES.some((name) => toText(keyFor(namespaces, undefined, name)) === toText(key));
}

function withoutOwners(object: ApiObject, uids: readonly string[]): ApiObject {
  return withReferences(object, (references) => references.filter(({ uid }) => !uids.includes(uid)));
}

function withoutBlocking(object: ApiObject): ApiObject {
  return withReferences(object, (references) =>
    references.map((reference) => ({ ...reference, blockOwnerDeletion: false })),
  );
}

function withReferences(
  object: ApiObject,
  change: (references: readonly OwnerReference[]) => OwnerReference[],
): ApiObject {
  const ownerReferences = change(object.metadata.ownerReferences ?? []);
  return { ...object, metadata: { ...object.metadata, ownerReferences } };
}

/** Gone is as good as done; after a conflict the object is another, and looked at afresh. */
function toOutcome(result: WriteResult): Outcome {
  return result === "conflict" ? AGAIN : DONE;
}

import type { PropagationPolicy } from "../delete-options.ts";
import type { ApiObject } from "../objects.ts";
import {
  FOREGROUND,
  finalizersOf,
  isDeletingDependants,
  isMarked,
  isOrphaningDependants,
  ORPHAN,
} from "./lifecycle.ts";

/** An owner as it is now. */
export interface OwnerView {
  readonly uid: string;
  /** `leaving`: deleted in the foreground, it waits for its dependants. `unknown`: it may be alive, elsewhere. */
  readonly state: "there" | "leaving" | "gone" | "unknown";
}

/** One object, and those around it that decide its fate. */
export interface CollectionView {
  readonly object: ApiObject;
  readonly owners: readonly OwnerView[];
  readonly hasDependants: boolean;
  /** Some dependant other than itself has `blockOwnerDeletion`. */
  readonly isBlocked: boolean;
  /** It waits and, through others that wait, holds up itself. */
  readonly isInCircle: boolean;
}

/** What the garbage collector does about one object. */
export type Collection =
  | { readonly kind: "leave" }
  | { readonly kind: "delete"; readonly policy: PropagationPolicy }
  /** Its owners partly live: only the references to the others go. */
  | { readonly kind: "disown"; readonly uids: readonly string[] }
  /** It stops holding up its owners, or those that wait for each other would wait for ever. */
  | { readonly kind: "unblock" }
  /** It is being deleted in the foreground: what it owns has to go first. */
  | { readonly kind: "delete-dependants" }
  /** It is being deleted and leaves what it owns behind. */
  | { readonly kind: "orphan-dependants" }
  /** What it waited for is done. */
  | { readonly kind: "release"; readonly finalizer: typeof FOREGROUND | typeof ORPHAN };

/**
 * The rules of upstream's collector, with two exceptions. One owner of whom nothing can be known keeps its dependant
 * as a living one does; upstream tries again for ever, and an owner that waits for that dependant waits as long. And a
 * circle of owners is broken also where all of them are being deleted already, which hangs upstream.
 */
export function planCollection(view: CollectionView): Collection {
  const { object, owners } = view;
  if (isOrphaningDependants(object)) {
    return view.hasDependants ? { kind: "orphan-dependants" } : { kind: "release", finalizer: ORPHAN };
  }
  if (isDeletingDependants(object)) {
    if (!view.isBlocked) return { kind: "release", finalizer: FOREGROUND };
    return view.isInCircle ? { kind: "unblock" } : { kind: "delete-dependants" };
  }
  // It is going anyway; its dependants' turn comes when it is gone.
  if (isMarked(object)) return { kind: "leave" };
  const lost = owners.filter(({ state }) => state === "gone" || state === "leaving");
  if (lost.length === 0) return { kind: "leave" };
  if (lost.length < owners.length) return { kind: "disown", uids: lost.map(({ uid }) => uid) };
  return planDeletion(view);
}

/** Nobody keeps it. Below an owner that waits it goes the same way, so that its own dependants are gone before it. */
function planDeletion({ object, owners, hasDependants }: CollectionView): Collection {
  if (hasDependants && owners.some(({ state }) => state === "leaving")) {
    return { kind: "delete", policy: "Foreground" };
  }
  const finalizers = finalizersOf(object);
  if (finalizers.includes(ORPHAN)) return { kind: "delete", policy: "Orphan" };
  return { kind: "delete", policy: finalizers.includes(FOREGROUND) ? "Foreground" : "Background" };
}

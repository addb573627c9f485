import { expect, test } from "vitest";
import { planCollection, type Collection, type CollectionView, type OwnerView } from "./collection.ts";

const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const ALONE = { hasDependants: false, isBlocked: false, isInCircle: false };
const OWNING = { ...ALONE, hasDependants: true };
const BLOCKED = { ...OWNING, isBlocked: true };
const CIRCLE = { ...BLOCKED, isInCircle: true };
const foreground = ["foregroundDeletion"];
const orphan = ["orphan"];
const gone = "delete Background";

type States = readonly OwnerView["state"][];

for (const [owners, metadata, around, expected] of [
  [[], {}, ALONE, "leave"],
  [["there"], {}, ALONE, "leave"],
  [["unknown"], {}, ALONE, "leave"],
  [["gone"], {}, ALONE, gone],
  [["gone", "gone"], {}, OWNING, gone],
  [["gone", "there"], {}, ALONE, "disown 0"],
  [["there", "leaving"], {}, ALONE, "disown 1"],
  [["gone", "unknown"], {}, ALONE, "disown 0"], // it may be alive, and keeps the dependant
  [["leaving"], {}, ALONE, gone],
  [["leaving"], {}, OWNING, "delete Foreground"], // its own go before it
  [["gone"], { finalizers: orphan }, OWNING, "delete Orphan"],
  [["gone"], { finalizers: foreground }, OWNING, "delete Foreground"],
  [["gone"], DELETED, ALONE, "leave"], // on its way already
  [["there"], { ...DELETED, finalizers: foreground }, ALONE, "release foregroundDeletion"],
  [[], { ...DELETED, finalizers: foreground }, OWNING, "release foregroundDeletion"], // none of them blocks it
  [[], { ...DELETED, finalizers: foreground }, BLOCKED, "delete-dependants"],
  [["leaving"], { ...DELETED, finalizers: foreground }, CIRCLE, "unblock"],
  [[], { ...DELETED, finalizers: orphan }, OWNING, "orphan-dependants"],
  [[], { ...DELETED, finalizers: orphan }, ALONE, "release orphan"],
  [[], { finalizers: orphan }, OWNING, "leave"], // not deleted: only a wish
] as readonly (readonly [States, object, Omit<CollectionView, "object" | "owners">, string])[]) {
  const title = `owners [${owners.join(", ")}], ${JSON.stringify({ ...metadata, ...around })}: ${expected}`;
  test(title, () => {
    const views = owners.map((state, index) => ({ uid: String(index), state }));

    expect(inWords(planCollection({ object: { metadata }, owners: views, ...around }))).toBe(expected);
  });
}

function inWords(plan: Collection): string {
  switch (plan.kind) {
    case "delete":
      return `delete ${plan.policy}`;
    case "disown":
      return `disown ${plan.uids.join()}`;
    case "release":
      return `release ${plan.finalizer}`;
    case "leave":
    case "unblock":
    case "delete-dependants":
    case "orphan-dependants":
      return plan.kind;
  }
}

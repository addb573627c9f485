import { describe, expect, test } from "vitest";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { claim, ref, volume } from "../objects.testing.ts";
import { findVolume, mismatchOf, type Shelves } from "./match.ts";
import { availableShelf } from "./shelves.ts";

describe("whether a volume fits a claim", () => {
  const rows: readonly (readonly [
    string,
    Parameters<typeof volume>[0],
    Parameters<typeof claim>[0],
    string?,
  ])[] = [
    ["equal in everything", {}, {}],
    ["larger", { spec: { capacity: { storage: "2Gi" } } }, {}],
    ["a byte too small", { spec: { capacity: { storage: "1073741823" } } }, {}, "requested PV is too small"],
    ["without a readable size", { spec: { capacity: { storage: "big" } } }, {}, "requested PV is too small"],
    ["of another class", { spec: { storageClassName: "fast" } }, {}, "storageClassName does not match"],
    [
      "of no class, for a claim of one",
      { spec: { storageClassName: "" } },
      {},
      "storageClassName does not match",
    ],
    [
      "of no class, for a claim of none",
      { spec: { storageClassName: "" } },
      { spec: { storageClassName: "" } },
    ],
    ["a device for a claim of files", { spec: { volumeMode: "Block" } }, {}, "incompatible volumeMode"],
    ["with more modes", { spec: { accessModes: ["ReadOnlyMany", "ReadWriteOnce"] } }, {}],
    ["with other modes", { spec: { accessModes: ["ReadOnlyMany"] } }, {}, "incompatible accessMode"],
    ["being deleted", { metadata: { deletionTimestamp: "now" } }, {}, "it is being deleted"],
    [
      "with the label selected",
      { metadata: { labels: { disk: "ssd" } } },
      { spec: { selector: { matchLabels: { disk: "ssd" } } } },
    ],
    [
      "without the label selected",
      {},
      { spec: { selector: { matchLabels: { disk: "ssd" } } } },
      "its labels do not match the selector",
    ],
  ];
  for (const [name, ofVolume, ofClaim, mismatch] of rows) {
    test(`${name}: ${mismatch ?? "fits"}`, () => {
      expect(mismatchOf(volume(ofVolume), claim(ofClaim))).toBe(mismatch);
    });
  }

  test("a selector nobody can read selects nothing", () => {
    const selector = { matchExpressions: [{ key: "a", operator: "Near", values: [] }] };

    expect(mismatchOf(volume(), claim({ spec: { selector } }))).toContain("cannot be read");
  });
});

function shelvesOf(...volumes: readonly PersistentVolume[]): Shelves & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    claimedBy: () => volumes.filter(({ spec }) => spec?.claimRef),
    available(shelf) {
      asked.push(shelf);
      return volumes.filter((one) => availableShelf(one) === shelf);
    },
  };
}

const sized = (name: string, storage: string) =>
  volume({ metadata: { name }, spec: { capacity: { storage } } });
const nameOf = (found: PersistentVolume | undefined) => found?.metadata.name;

describe("which volume a claim gets", () => {
  test("the smallest that fits, and of equals the first by name", () => {
    const shelves = shelvesOf(
      sized("d", "3Gi"),
      sized("c", "1200Mi"),
      sized("b", "1200Mi"),
      sized("a", "9Gi"),
    );

    expect(nameOf(findVolume(shelves, claim(), { onlyPromised: false }))).toBe("b");
  });

  test("the search ends at the first shelf with one that fits", () => {
    const shelves = shelvesOf(sized("a", "2Gi"));

    findVolume(shelves, claim(), { onlyPromised: false });

    expect(shelves.asked).toEqual(["slow/Filesystem/31", "slow/Filesystem/32"]);
  });

  test("one that names the claim comes before all others, whatever its class says", () => {
    const promised = volume({
      metadata: { name: "promised" },
      spec: { claimRef: ref({ uid: undefined }), storageClassName: "other", capacity: { storage: "5Gi" } },
    });

    const found = findVolume(shelvesOf(sized("a", "1Gi"), promised), claim(), { onlyPromised: false });

    expect(nameOf(found)).toBe("promised");
  });

  test("one that names an earlier claim of that name is not for this one", () => {
    const earlier = volume({ spec: { claimRef: ref({ uid: "earlier" }) } });

    expect(findVolume(shelvesOf(earlier), claim(), { onlyPromised: false })).toBeUndefined();
  });

  test("nothing but a promised one before the scheduler has chosen", () => {
    expect(findVolume(shelvesOf(sized("a", "1Gi")), claim(), { onlyPromised: true })).toBeUndefined();
  });
});

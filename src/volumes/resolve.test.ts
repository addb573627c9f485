import type { Volume } from "kubernetes-types/core/v1.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { trimPersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { trimPersistentVolume, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { trimPod, type Pod } from "../kube/api/pod.ts";
import { mayMultiAttach } from "./access.ts";
import { claimKeysOf, isPodTerminated, resolveVolume, type VolumeCaches } from "./resolve.ts";
import { csiSourceOf, specName } from "./spec.ts";

const CSI = { driver: "csi.example.com", volumeHandle: "disk-1" };
const OWNED = [
  { apiVersion: "v1", kind: "Other", name: "x", uid: "other" },
  { apiVersion: "v1", kind: "Pod", name: "web-0", uid: "pod-uid", controller: true },
];

function pod({ volumes = [], status, ...metadata }: { volumes?: unknown; status?: object } & object): Pod {
  return {
    metadata: { namespace: "shop", name: "web-0", uid: "pod-uid", ...metadata },
    spec: { volumes } as NonNullable<Pod["spec"]>,
    ...(status && { status }),
  };
}

function claim(overrides: { metadata?: object; spec?: object; status?: object } = {}): PersistentVolumeClaim {
  return {
    metadata: { namespace: "shop", name: "data", uid: "claim-uid", ...overrides.metadata },
    spec: { volumeName: "pv-1", ...overrides.spec },
    status: { phase: "Bound", ...overrides.status },
  };
}

function persistentVolume(spec: object = {}, metadata: object = {}): PersistentVolume {
  return {
    metadata: { name: "pv-1", ...metadata },
    spec: { claimRef: { namespace: "shop", name: "data", uid: "claim-uid" }, csi: CSI, ...spec },
  };
}

/** As the controller has them: by key, and trimmed. */
function caches(
  claims: readonly PersistentVolumeClaim[],
  volumes: readonly PersistentVolume[],
): VolumeCaches {
  const claimOf = new Map(
    claims.map((claim) => [`${claim.metadata.namespace ?? ""}/${claim.metadata.name ?? ""}`, claim]),
  );
  const volumeOf = new Map(volumes.map((volume) => [volume.metadata.name ?? "", volume]));
  return {
    claim: (key) => claimOf.get(key) && trimPersistentVolumeClaim(claimOf.get(key)!),
    volume: (name) => volumeOf.get(name) && trimPersistentVolume(volumeOf.get(name)!),
  };
}

const DATA: Volume = { name: "data", persistentVolumeClaim: { claimName: "data" } };
const SCRATCH: Volume = { name: "scratch", ephemeral: {} };

describe("a volume that resolves", () => {
  test("a claim leads to its PersistentVolume", () => {
    const answer = resolveVolume(pod({}), DATA, caches([claim()], [persistentVolume()]));

    expect(answer).toEqual({
      kind: "resolved",
      spec: {
        kind: "persistent",
        volume: trimPersistentVolume(persistentVolume()),
        readOnly: false,
        migrated: "none",
      },
    });
  });

  test("readOnly is taken from the pod's claim source", () => {
    const readOnly = { name: "data", persistentVolumeClaim: { claimName: "data", readOnly: true } };

    expect(resolveVolume(pod({}), readOnly, caches([claim()], [persistentVolume()]))).toMatchObject({
      spec: { readOnly: true },
    });
  });

  test("an ephemeral volume is the claim <pod>-<volume> that this pod controls", () => {
    const own = claim({ metadata: { name: "web-0-scratch", ownerReferences: OWNED } });
    const [volume = SCRATCH] = trimPod(pod({ volumes: [SCRATCH] })).spec?.volumes ?? [];

    expect(resolveVolume(trimPod(pod({})), volume, caches([own], [persistentVolume()]))).toMatchObject({
      kind: "resolved",
      spec: { readOnly: false, volume: { metadata: { name: "pv-1" } } },
    });
  });

  for (const [volume, kind] of [
    [{ name: "v", iscsi: { iqn: "i", lun: 0, targetPortal: "t" } }, "inline"],
    [{ name: "v", csi: { driver: "csi.example.com" } }, "inline"],
    [{ name: "v", rbd: { image: "i", monitors: [] } }, "inline"],
    [{ name: "v", persistentVolumeClaim: { claimName: "" } }, "inline"],
    [{ name: "v", cinder: { volumeID: "c" } }, "persistent"],
  ] as const) {
    test(`${JSON.stringify(volume)}, written into the pod, is ${kind}`, () => {
      const answer = resolveVolume(pod({}), volume as unknown as Volume, caches([], []));

      expect(answer).toMatchObject({ kind: "resolved", spec: { kind } });
    });
  }

  test("an in-tree PersistentVolume becomes CSI and keeps its name; the namespace of inline secrets is the pod's", () => {
    const inTree = persistentVolume({ csi: undefined, awsElasticBlockStore: { volumeID: "aws://z/vol-1" } });
    const share = { name: "share", azureFile: { shareName: "s", secretName: "k" } };

    expect(resolveVolume(pod({}), DATA, caches([claim()], [inTree]))).toMatchObject({
      spec: {
        migrated: "volume",
        volume: { metadata: { name: "pv-1" }, spec: { csi: { volumeHandle: "vol-1" } } },
      },
    });
    expect(resolveVolume(pod({}), share, caches([], []))).toMatchObject({
      spec: { migrated: "inline", volume: { spec: { csi: { volumeHandle: "#k#s#share#shop" } } } },
    });
  });
});

describe("a volume that does not resolve says why", () => {
  const ephemeral = (overrides: object) =>
    claim({ metadata: { name: "web-0-scratch", ownerReferences: OWNED, ...overrides } });

  for (const [why, message, volume, claims, volumes] of [
    ["claim-missing", "claim shop/data does not exist", DATA, [], [persistentVolume()]],
    [
      "claim-missing",
      "claim shop/data does not exist", // one of another namespace is another claim
      DATA,
      [claim({ metadata: { namespace: "bank" } })],
      [persistentVolume()],
    ],
    [
      "claim-unbound",
      "claim shop/data is not bound: Pending",
      DATA,
      [claim({ status: { phase: "Pending" } })],
      [persistentVolume()],
    ],
    [
      "claim-unbound",
      "claim shop/data is not bound: Lost",
      DATA,
      [claim({ status: { phase: "Lost" } })],
      [persistentVolume()],
    ],
    [
      "claim-unbound",
      "claim shop/data is not bound: it has no phase",
      DATA,
      [claim({ status: { phase: undefined } })],
      [persistentVolume()],
    ],
    [
      "claim-unbound",
      "claim shop/data is bound to a volume without a name",
      DATA,
      [claim({ spec: { volumeName: "" } })],
      [persistentVolume()],
    ],
    [
      "claim-not-owned",
      "claim shop/web-0-scratch was not made for this pod, and an ephemeral volume takes no other",
      SCRATCH,
      [ephemeral({ ownerReferences: undefined })],
      [persistentVolume()],
    ],
    [
      "claim-not-owned",
      "claim shop/web-0-scratch was not made for this pod, and an ephemeral volume takes no other",
      SCRATCH,
      [ephemeral({ ownerReferences: OWNED.map((owner) => ({ ...owner, uid: "pod of the same name" })) })],
      [persistentVolume()],
    ],
    [
      "claim-not-owned",
      "claim shop/web-0-scratch was not made for this pod, and an ephemeral volume takes no other",
      SCRATCH,
      [ephemeral({ ownerReferences: OWNED.map((owner) => ({ ...owner, controller: false })) })],
      [persistentVolume()],
    ],
    ["volume-missing", "volume pv-1 of claim shop/data does not exist", DATA, [claim()], []],
    [
      "volume-not-bound-back",
      "volume pv-1 is not bound to claim shop/data, which is bound to it",
      DATA,
      [claim()],
      [persistentVolume({ claimRef: undefined })],
    ],
    [
      "volume-not-bound-back",
      "volume pv-1 is not bound to claim shop/data, which is bound to it",
      DATA,
      [claim({ metadata: { uid: "the claim made anew" } })],
      [persistentVolume()],
    ],
    [
      "volume-not-bound-back",
      "volume pv-1 is not bound to claim shop/data, which is bound to it",
      DATA,
      [claim({ metadata: { uid: "" } })], // two absent UIDs are not the same one
      [persistentVolume({ claimRef: { namespace: "shop", name: "data", uid: "" } })],
    ],
    [
      "untranslatable",
      "volume pv-1: cinder has no volumeID",
      DATA,
      [claim()],
      [persistentVolume({ csi: undefined, cinder: {} })],
    ],
    [
      "untranslatable",
      "volume v of the pod: cinder has no volumeID",
      { name: "v", cinder: { volumeID: "" } },
      [],
      [],
    ],
    ["untranslatable", "the volume in the pod is no object", null as unknown as Volume, [], []],
  ] as const) {
    test(`${why}: ${message}`, () => {
      expect(resolveVolume(pod({}), volume, caches(claims, volumes))).toMatchObject({
        kind: "unresolved",
        why,
        message,
      });
    });
  }

  test("with the claim and the volume in play, by which to wait for them", () => {
    const inPlay = (claims: PersistentVolumeClaim[]) => resolveVolume(pod({}), DATA, caches(claims, []));

    expect(inPlay([])).toMatchObject({ claim: "shop/data", persistentVolume: undefined });
    expect(inPlay([claim()])).toMatchObject({ claim: "shop/data", persistentVolume: "pv-1" });
  });
});

describe("the claims of a pod", () => {
  for (const [volumes, keys] of [
    [
      [DATA, SCRATCH, { name: "tmp", emptyDir: {} }],
      ["shop/data", "shop/web-0-scratch"],
    ],
    [[{ name: "data", persistentVolumeClaim: { claimName: "" } }], []],
    [[{ name: "", ephemeral: {} }], []],
    [[null, "data", 7, [], { name: "data", persistentVolumeClaim: null }, DATA], ["shop/data"]],
    ["data", []],
    [null, []],
    [undefined, []],
  ] as const) {
    test(`of the volumes ${JSON.stringify(volumes)} are ${JSON.stringify(keys)}`, () => {
      expect(claimKeysOf(pod({ volumes }))).toEqual(keys);
    });
  }

  test("are the same in the cache as on the server", () => {
    const full = pod({
      volumes: [DATA, { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } }],
    });

    expect(claimKeysOf(trimPod(full))).toEqual(claimKeysOf(full));
  });

  test("of a pod without a spec are none", () => {
    expect(claimKeysOf({ metadata: { name: "bare" } })).toEqual([]);
  });
});

describe("a pod", () => {
  const DELETED = { deletionTimestamp: "2025-01-01T00:00:00Z" };
  const running = { state: { running: {} } };
  const waiting = { state: { waiting: { reason: "CrashLoopBackOff" } } };
  const ended = { state: { terminated: { exitCode: 0 } } };

  for (const [title, metadata, status, terminated] of [
    ["that runs", {}, { phase: "Running", containerStatuses: [running] }, false],
    ["without a status", {}, undefined, false],
    ["that succeeded", {}, { phase: "Succeeded" }, true],
    ["that failed, whatever its containers", {}, { phase: "Failed", containerStatuses: [running] }, true],
    ["whose containers ended, but that may restart them", {}, { containerStatuses: [ended] }, false],
    ["deleted before it started", DELETED, undefined, true],
    ["deleted with empty lists", DELETED, { containerStatuses: [], initContainerStatuses: [] }, true],
    ["deleted, still running", DELETED, { containerStatuses: [ended, running] }, false],
    ["deleted, ended", DELETED, { containerStatuses: [ended, waiting] }, true],
    ["deleted, its init container runs", DELETED, { initContainerStatuses: [running] }, false],
    ["deleted, a debug container runs", DELETED, { ephemeralContainerStatuses: [running] }, false],
    ["deleted, a container says nothing", DELETED, { containerStatuses: [{ state: {} }] }, false],
    ["deleted, a container has no state", DELETED, { containerStatuses: [{}] }, false],
    ["deleted, a status is null", DELETED, { containerStatuses: [null] }, false],
    ["deleted, the statuses are no list", DELETED, { containerStatuses: "none" }, false],
    ["deleted, the statuses are null", DELETED, { containerStatuses: null }, true],
  ] as const) {
    test(`${title} is ${terminated ? "" : "not "}terminated`, () => {
      expect(isPodTerminated(pod({ ...metadata, ...(status && { status }) }))).toBe(terminated);
    });
  }

  test("is as terminated in the cache as on the server", () => {
    for (const state of [running, waiting, ended, { state: {} }]) {
      const full = pod({ ...DELETED, status: { phase: "Running", containerStatuses: [state] } });

      expect(isPodTerminated(trimPod(full))).toBe(isPodTerminated(full));
    }
  });
});

test("no object, however broken, makes any of it throw, and what resolves can be named and judged", () => {
  const values = [
    undefined,
    null,
    true,
    0,
    7,
    "",
    "x",
    "Bound",
    [],
    [null],
    ["x"],
    {},
    { uid: "x" },
    { name: "x" },
  ];
  const deeper = [{ controller: true, uid: "x" }, { state: 7 }, { claimName: "x" }, { volumeID: "x" }, CSI];
  const rubbish = fc.constantFrom<unknown>(...values, ...deeper, ...deeper.map((value) => [value]));
  const broken = (...keys: string[]) =>
    fc.oneof(
      { weight: 1, arbitrary: rubbish },
      { weight: 5, arbitrary: fc.record(Object.fromEntries(keys.map((key) => [key, rubbish]))) },
    );
  const object = fc.record({
    metadata: broken(
      "name",
      "namespace",
      "uid",
      "ownerReferences",
      "labels",
      "annotations",
      "deletionTimestamp",
    ),
    spec: broken("volumes", "volumeName", "claimRef", "csi", "cinder", "azureFile", "accessModes"),
    status: broken("phase", "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"),
  });
  const volume = broken("name", "persistentVolumeClaim", "ephemeral", "azureDisk", "cinder", "csi");
  const answers = new Set<string>();
  fc.assert(
    fc.property(object, volume, object, object, (pod, volume, claim, persistentVolume) => {
      const caches = { claim: () => claim, volume: () => persistentVolume } as unknown as VolumeCaches;
      claimKeysOf(pod as unknown as Pod);
      isPodTerminated(pod as unknown as Pod);

      const answer = resolveVolume(pod as unknown as Pod, volume as Volume, caches);

      answers.add(answer.kind === "unresolved" ? answer.why : answer.spec.kind);
      if (answer.kind === "unresolved") return;
      expect(typeof specName(answer.spec)).toBe("string");
      expect(typeof mayMultiAttach(answer.spec)).toBe("boolean");
      csiSourceOf(answer.spec);
    }),
    { numRuns: 3_000 },
  );

  // Otherwise the objects are so broken that little of the code was run.
  expect([...answers].sort()).toEqual(
    expect.arrayContaining(["claim-unbound", "inline", "persistent", "untranslatable"]),
  );
});

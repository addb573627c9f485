import { expect, test } from "vitest";
import { trimPod, type Pod } from "./pod.ts";

const container = (name: string, state: object) => ({
  name,
  state,
  image: "registry.example/app:1",
  imageID: "sha256:0",
  ready: true,
  restartCount: 0,
});

/** A pod as a server sends it, with what nobody caches around what somebody reads. */
function pod(overrides: { spec?: object; status?: object; metadata?: object } = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-0",
      namespace: "shop",
      uid: "u-1",
      resourceVersion: "7",
      creationTimestamp: "2025-01-01T00:00:00Z",
      labels: { app: "web" },
      annotations: { note: "x" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "u-0" }],
      managedFields: [{ manager: "kubelet" }],
      ...overrides.metadata,
    },
    spec: { nodeName: "node-a", containers: [{ name: "app" }], tolerations: [{}], ...overrides.spec },
    status: { phase: "Running", podIP: "10.0.0.1", conditions: [], ...overrides.status },
  };
}

test("a pod keeps who it is, where it runs and how it is", () => {
  expect(trimPod(pod())).toStrictEqual({
    metadata: {
      name: "web-0",
      namespace: "shop",
      uid: "u-1",
      resourceVersion: "7",
      creationTimestamp: "2025-01-01T00:00:00Z",
    },
    spec: { nodeName: "node-a" },
    status: { phase: "Running" },
  });
});

test("a pod that is going keeps since when", () => {
  const trimmed = trimPod(pod({ metadata: { deletionTimestamp: "2025-01-02T00:00:00Z" } }));

  expect(trimmed.metadata.deletionTimestamp).toBe("2025-01-02T00:00:00Z");
});

for (const [volume, kept] of [
  [{ name: "v", persistentVolumeClaim: { claimName: "data", readOnly: true } }, true],
  [{ name: "v", csi: { driver: "csi.example.com" } }, true],
  [{ name: "v", awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4" } }, true],
  [{ name: "v", iscsi: { iqn: "iqn.2025-01.example:1", lun: 0, targetPortal: "10.0.0.9" } }, true],
  [{ name: "v", flexVolume: { driver: "example.com/flex" } }, true],
  [{ name: "v", sourceOfTheFuture: { id: "1" } }, true], // what we do not know might be attached
  [{ name: "v", emptyDir: {} }, false],
  [{ name: "v", configMap: { name: "c" } }, false],
  [{ name: "v", secret: { secretName: "s" } }, false],
  [{ name: "v", projected: { sources: [] } }, false],
  [{ name: "v", downwardAPI: { items: [] } }, false],
  [{ name: "v", hostPath: { path: "/" } }, false],
  [{ name: "v", nfs: { server: "s", path: "/" } }, false],
] as const) {
  test(`a volume of ${Object.keys(volume)[1] ?? ""} is ${kept ? "kept whole" : "dropped"}`, () => {
    expect(trimPod(pod({ spec: { volumes: [volume] } })).spec?.volumes).toEqual(kept ? [volume] : undefined);
  });
}

test("an ephemeral volume keeps its name, from which its claim is found, and loses the template", () => {
  const volume = { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["x"] } } } };

  expect(trimPod(pod({ spec: { volumes: [volume] } })).spec?.volumes).toEqual([
    { name: "scratch", ephemeral: {} },
  ]);
});

test("containers keep which state they are in, of all three kinds of containers", () => {
  const trimmed = trimPod(
    pod({
      status: {
        containerStatuses: [
          container("a", { running: { startedAt: "2025-01-01T00:00:00Z" } }),
          container("b", { waiting: { reason: "CrashLoopBackOff" } }),
          container("c", {}),
        ],
        initContainerStatuses: [container("init", { terminated: { exitCode: 0, reason: "Completed" } })],
        ephemeralContainerStatuses: [container("debug", { running: {} })],
      },
    }),
  );

  expect(trimmed.status).toEqual({
    phase: "Running",
    containerStatuses: [{ state: { running: {} } }, { state: { waiting: {} } }, { state: {} }],
    initContainerStatuses: [{ state: { terminated: {} } }],
    ephemeralContainerStatuses: [{ state: { running: {} } }],
  });
});

test("an unscheduled pod without a status is no obstacle, and the original is left as it was", () => {
  const bare: Pod = { metadata: { name: "bare", namespace: "shop" } };
  const full = Object.freeze(pod());
  const before = structuredClone(full);

  expect(trimPod(bare)).toMatchObject({ metadata: { name: "bare" }, spec: {}, status: {} });
  trimPod(full);

  expect(full).toEqual(before);
});

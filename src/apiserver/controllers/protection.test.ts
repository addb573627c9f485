import { describe, expect, test } from "vitest";
import { claim, CLAIMS, CONFIG_MAPS, givenEngine, MERGE, ownedBy, pod, PODS } from "./stage.testing.ts";

const VOLUMES = "/api/v1/persistentvolumes";
const USES_C = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] };
const template = { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } };
const EPHEMERAL = { volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: template } }] };

async function givenClaim() {
  const engine = await givenEngine();
  await engine.ok("POST", CLAIMS, claim("c"));
  return engine;
}

describe("a claim", () => {
  test("that nobody uses goes at once", async () => {
    const { ok, statusOf } = await givenClaim();

    const answer = await ok("DELETE", `${CLAIMS}/c`);

    expect(answer.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
    expect(await statusOf(`${CLAIMS}/c`)).toBe(404);
  });

  test("in use by a running pod stays until the pod is gone", async () => {
    const { ok, statusOf } = await givenClaim();
    await ok("POST", PODS, pod("p", USES_C));
    await ok("PATCH", `${PODS}/p/status`, { status: { phase: "Running" } }, MERGE);

    await ok("DELETE", `${CLAIMS}/c`);
    expect((await ok("GET", `${CLAIMS}/c`)).metadata.deletionTimestamp).toBeDefined();
    await ok("DELETE", `${PODS}/p`);
    expect(await statusOf(`${CLAIMS}/c`)).toBe(200);

    await ok("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 });
    expect(await statusOf(`${CLAIMS}/c`)).toBe(404);
  });

  test("used by two pods waits for both", async () => {
    const { ok, statusOf } = await givenClaim();
    await ok("POST", PODS, pod("p", USES_C));
    await ok("POST", PODS, pod("q", USES_C));
    await ok("DELETE", `${CLAIMS}/c`);

    await ok("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 });
    expect(await statusOf(`${CLAIMS}/c`)).toBe(200);

    await ok("DELETE", `${PODS}/q`, { gracePeriodSeconds: 0 });
    expect(await statusOf(`${CLAIMS}/c`)).toBe(404);
  });

  for (const phase of ["Succeeded", "Failed"]) {
    test(`is let go of by a pod that has ${phase}`, async () => {
      const { ok, statusOf } = await givenClaim();
      await ok("POST", PODS, pod("p", USES_C));
      await ok("DELETE", `${CLAIMS}/c`);

      await ok("PATCH", `${PODS}/p/status`, { status: { phase } }, MERGE);

      expect(await statusOf(`${CLAIMS}/c`)).toBe(404);
    });
  }

  test("is not held by a pod that no node has yet", async () => {
    const { ok, statusOf } = await givenClaim();
    await ok("POST", PODS, pod("p", { ...USES_C, nodeName: "" }));

    await ok("DELETE", `${CLAIMS}/c`);

    expect(await statusOf(`${CLAIMS}/c`)).toBe(404);
  });

  test("made for a pod's ephemeral volume is held by that pod", async () => {
    const { ok, statusOf } = await givenEngine();
    const owner = await ok("POST", PODS, pod("p", EPHEMERAL));
    await ok("POST", CLAIMS, claim("p-v", { ownerReferences: [ownedBy(owner, { controller: true })] }));

    await ok("DELETE", `${CLAIMS}/p-v`);
    expect(await statusOf(`${CLAIMS}/p-v`)).toBe(200);

    await ok("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 });
    expect(await statusOf(`${CLAIMS}/p-v`)).toBe(404);
  });

  test("that only happens to have the name of an ephemeral one is not", async () => {
    const { ok, statusOf } = await givenEngine();
    await ok("POST", PODS, pod("p", EPHEMERAL));
    await ok("POST", CLAIMS, claim("p-v"));

    await ok("DELETE", `${CLAIMS}/p-v`);

    expect(await statusOf(`${CLAIMS}/p-v`)).toBe(404);
  });

  test("keeps what others put on it", async () => {
    const { ok } = await givenEngine();
    await ok("POST", CLAIMS, claim("c", { finalizers: ["ex.io/x"] }));

    await ok("DELETE", `${CLAIMS}/c`);

    expect((await ok("GET", `${CLAIMS}/c`)).metadata.finalizers).toEqual(["ex.io/x"]);
  });
});

describe("a volume", () => {
  async function givenVolume() {
    const engine = await givenEngine();
    await engine.ok("POST", VOLUMES, {
      metadata: { name: "v" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        csi: { driver: "d", volumeHandle: "h" },
        storageClassName: "none",
      },
    });
    return engine;
  }

  test("that is not bound goes at once", async () => {
    const { ok, statusOf } = await givenVolume();

    await ok("DELETE", `${VOLUMES}/v`);

    expect(await statusOf(`${VOLUMES}/v`)).toBe(404);
  });

  test("that is bound stays until it is released", async () => {
    const { ok, statusOf } = await givenVolume();
    await ok("PATCH", `${VOLUMES}/v/status`, { status: { phase: "Bound" } }, MERGE);
    await ok("DELETE", `${VOLUMES}/v`);
    expect(await statusOf(`${VOLUMES}/v`)).toBe(200);

    await ok("PATCH", `${VOLUMES}/v/status`, { status: { phase: "Released" } }, MERGE);

    expect(await statusOf(`${VOLUMES}/v`)).toBe(404);
  });
});

test("a finalizer of that name on another kind is somebody else's", async () => {
  const { ok } = await givenEngine();
  const finalizers = ["kubernetes.io/pvc-protection"];
  await ok("POST", CONFIG_MAPS, { metadata: { name: "a", finalizers } });

  await ok("DELETE", `${CONFIG_MAPS}/a`);

  expect((await ok("GET", `${CONFIG_MAPS}/a`)).metadata.finalizers).toEqual(finalizers);
});

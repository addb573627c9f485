import { describe, expect, test } from "vitest";
import { CLAIMS, claim, givenEngine, MERGE } from "./stage.testing.ts";

const CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const VOLUMES = "/api/v1/persistentvolumes";
const GOLD = { metadata: { name: "gold" }, driverName: "d.io", parameters: { tier: "gold" } };
const FINALIZER = "kubernetes.io/vac-protection";

function volume(name: string, volumeAttributesClassName?: string) {
  return {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      csi: { driver: "d.io", volumeHandle: name },
      volumeAttributesClassName,
    },
  };
}

function withSpec(name: string, members: object) {
  const { spec, ...rest } = claim(name) as { spec: object };
  return { ...rest, spec: { ...spec, ...members } };
}

describe("a VolumeAttributesClass", () => {
  test("is created with its finalizer, and goes at once when nobody names it", async () => {
    const { ok, statusOf } = await givenEngine();

    const { metadata } = await ok("POST", CLASSES, GOLD);
    expect(metadata.finalizers).toEqual([FINALIZER]);

    await ok("DELETE", `${CLASSES}/gold`);
    expect(await statusOf(`${CLASSES}/gold`)).toBe(404);
  });

  test("whose finalizer somebody took gets it back; another's is left alone", async () => {
    const { ok } = await givenEngine();
    await ok("POST", CLASSES, GOLD);

    await ok("PATCH", `${CLASSES}/gold`, { metadata: { finalizers: ["a.io/b"] } }, MERGE);

    expect((await ok("GET", `${CLASSES}/gold`)).metadata.finalizers).toEqual(["a.io/b", FINALIZER]);
  });

  for (const [what, use, letGo] of [
    [
      "a claim wants",
      ["POST", CLAIMS, withSpec("c", { volumeAttributesClassName: "gold" })],
      ["DELETE", `${CLAIMS}/c`],
    ],
    [
      "a claim has",
      ["PATCH", `${CLAIMS}/idle/status`, { status: { currentVolumeAttributesClassName: "gold" } }, MERGE],
      ["PATCH", `${CLAIMS}/idle/status`, { status: { currentVolumeAttributesClassName: "silver" } }, MERGE],
    ],
    [
      "a claim is being given",
      [
        "PATCH",
        `${CLAIMS}/idle/status`,
        { status: { modifyVolumeStatus: { targetVolumeAttributesClassName: "gold", status: "Pending" } } },
        MERGE,
      ],
      ["PATCH", `${CLAIMS}/idle/status`, { status: { modifyVolumeStatus: null } }, MERGE],
    ],
    ["a volume has", ["POST", VOLUMES, volume("v", "gold")], ["DELETE", `${VOLUMES}/v`]],
  ] as const) {
    test(`that ${what} stays until it is let go of, also across a restart`, async () => {
      const engine = await givenEngine();
      const { ok, statusOf } = engine;
      await ok("POST", CLASSES, GOLD);
      await ok("POST", CLAIMS, claim("idle"));
      await ok(...(use as unknown as Parameters<typeof ok>));

      await ok("DELETE", `${CLASSES}/gold`);
      await engine.stop();
      engine.start();
      expect(await statusOf(`${CLASSES}/gold`)).toBe(200);

      await ok(...(letGo as unknown as Parameters<typeof ok>));
      expect(await statusOf(`${CLASSES}/gold`)).toBe(404);
    });
  }

  test("of two users stays for the second", async () => {
    const { ok, statusOf } = await givenEngine();
    await ok("POST", CLASSES, GOLD);
    await ok("POST", VOLUMES, volume("v", "gold"));
    await ok("POST", VOLUMES, volume("w", "gold"));
    await ok("DELETE", `${CLASSES}/gold`);

    await ok("DELETE", `${VOLUMES}/v`);
    expect(await statusOf(`${CLASSES}/gold`)).toBe(200);
    await ok("DELETE", `${VOLUMES}/w`);
    expect(await statusOf(`${CLASSES}/gold`)).toBe(404);
  });
});

import { describe, expect, test } from "vitest";
import { givenCsi, pv } from "./csi-stage.testing.ts";
import { ROOT } from "./plugins.testing.ts";

const BASE = `${ROOT}/plugins/kubernetes.io/csi/volumeDevices`;
const STAGING = `${BASE}/staging/pv1`;
const PUBLISHED = `${BASE}/publish/pv1/u1`;
const block = pv({ volumeMode: "Block" });

const filesOf = (world: ReturnType<typeof givenCsi>) =>
  world.machine.describe(BASE).filter((line) => !/\/(volumeDevices|staging|publish) directory$/.test(line));

describe("raw block volumes", () => {
  test("scenario 81: staged into a directory, published as a file of the pod, recorded before both", async () => {
    const world = givenCsi({ driver: { podInfoOnMount: true, tokenRequests: [{ audience: "a" }] } });

    await world.setUpDevice(block);
    const device = await world.mapPodDevice(block);

    expect(device).toBe(PUBLISHED);
    expect(world.backend.work()).toEqual(["stage h1", "publish h1"]);
    expect(world.backend.stages[0]).toMatchObject({
      stagingTargetPath: STAGING,
      volumeCapability: { accessType: { case: "block" } },
    });
    expect(world.backend.publishes[0]).toMatchObject({
      stagingTargetPath: STAGING,
      targetPath: PUBLISHED,
      readonly: false,
    });
    expect(world.backend.publishes[0]?.volumeContext).toMatchObject({ "csi.storage.k8s.io/pod.uid": "u1" });
    // Block volumes get no service account tokens.
    expect(world.tokens).toEqual([]);
    expect(await world.host.files.read(`${BASE}/pv1/data/vol_data.json`)).toMatch(
      /^\{"attachmentID":"csi-[0-9a-f]{64}","driverName":"d","nodeName":"n1","specVolID":"pv1","volumeHandle":"h1"\}\n$/,
    );
    expect(world.plugin.block!.podDeviceMap(block, "u1")).toEqual({
      directory: `${ROOT}/pods/u1/volumeDevices/kubernetes.io~csi`,
      name: "pv1",
    });
    expect(world.plugin.block!.globalMapPath(block)).toBe(`${BASE}/pv1/dev`);
  });

  test("scenario 82: one pod's leaving keeps the device; the last one's takes everything", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);
    await world.mapPodDevice(block, "u1");
    await world.mapPodDevice(block, "u2");

    await world.unmapPodDevice(block, "u1");
    expect(await world.host.files.stat(`${BASE}/publish/pv1/u2`)).toBeDefined();
    await world.unmapPodDevice(block, "u2");
    await world.tearDownDevice(block);

    expect(world.backend.work().slice(3)).toEqual([
      `unpublish h1 ${PUBLISHED}`,
      `unpublish h1 ${BASE}/publish/pv1/u2`,
      `unstage h1 ${STAGING}`,
    ]);
    expect(filesOf(world)).toEqual([]);
  });

  test("a driver that does not stage is published to with a staging path all the same", async () => {
    const world = givenCsi({ capabilities: [] });

    await world.setUpDevice(block);
    await world.mapPodDevice(block);
    await world.unmapPodDevice(block);
    await world.tearDownDevice(block);

    expect(world.backend.publishes[0]?.stagingTargetPath).toBe(STAGING);
    expect(world.backend.work()).toEqual(["publish h1", `unpublish h1 ${PUBLISHED}`]);
    expect(filesOf(world)).toEqual([]);
  });

  test("scenario 84: a stage that certainly failed leaves no record and no directory", async () => {
    const world = givenCsi();
    world.backend.fail("stage", "INVALID_ARGUMENT");

    await expect(world.setUpDevice(block)).rejects.toMatchObject({ outcome: "final" });

    expect(filesOf(world)).toEqual([]);
  });

  test("an uncertain stage, or a final one of a device found after a restart, keeps its record", async () => {
    const world = givenCsi();
    world.backend.fail("stage", "DEADLINE_EXCEEDED");
    world.backend.fail("stage", "INTERNAL");

    await expect(world.setUpDevice(block)).rejects.toMatchObject({ outcome: "uncertain" });
    await expect(world.setUpDevice(block, { mayBeThere: true })).rejects.toMatchObject({
      outcome: "final",
    });

    await world.tearDownDevice(block);
    expect(world.backend.work().at(-1)).toBe(`unstage h1 ${STAGING}`);
  });

  test("a publish that certainly failed leaves nothing of that pod, and the other's stays", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);
    await world.mapPodDevice(block, "u2");
    world.backend.fail("publish", "INTERNAL");

    await expect(world.mapPodDevice(block, "u1")).rejects.toMatchObject({ outcome: "final" });

    expect(await world.host.files.stat(PUBLISHED)).toBeUndefined();
    expect(await world.host.files.stat(`${BASE}/publish/pv1/u2`)).toBeDefined();
  });

  test("scenario 86: with the staging directory gone nothing is unstaged, and the rest is cleaned", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);
    await world.host.files.removeDirectory(STAGING);

    await world.tearDownDevice(block);

    expect(world.backend.work()).toEqual(["stage h1"]);
    expect(filesOf(world)).toEqual([]);
  });

  test("unpublishing is always asked of the driver, even with file and record gone", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);
    await world.mapPodDevice(block);
    await world.host.files.removeFile(PUBLISHED);
    await world.host.files.removeFile(`${BASE}/pv1/data/vol_data.json`);

    await world.unmapPodDevice(block);

    expect(world.backend.work().at(-1)).toBe(`unpublish h1 ${PUBLISHED}`);
  });

  test("a published file that is still bound to its device is uncertain", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);
    await world.mapPodDevice(block);
    await world.machine.mounts.bind(PUBLISHED, PUBLISHED, []);
    world.backend.leavesMounted = true;

    await expect(world.unmapPodDevice(block)).rejects.toMatchObject({ outcome: "uncertain" });
  });

  test("found after a restart by its record, as a block volume", async () => {
    const world = givenCsi();
    await world.setUpDevice(block);

    const found = await world.plugin.reconstruct({
      podUid: "u1",
      specName: "pv1",
      mode: "Block",
      path: "/any",
    });

    expect(found?.spec).toMatchObject({
      volume: {
        metadata: { name: "pv1" },
        spec: { volumeMode: "Block", csi: { driver: "d", volumeHandle: "h1" } },
      },
    });
  });
});

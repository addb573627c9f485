import { describe, expect, test } from "vitest";
import { sha256 } from "../paths.ts";
import { givenCsi, inline, pv } from "./csi-stage.testing.ts";
import { ROOT } from "./plugins.testing.ts";

const GLOBAL = `${ROOT}/plugins/kubernetes.io/csi/d/${sha256("h1")}`;
const STAGING = `${GLOBAL}/globalmount`;
const POD_DIR = `${ROOT}/pods/u1/volumes/kubernetes.io~csi/pv1`;
const TARGET = `${POD_DIR}/mount`;

describe("what a failure of the driver leaves", () => {
  for (const code of [
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "UNAVAILABLE",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
  ] as const) {
    test(`scenarios 53, 56: ${code} may be going on still: uncertain, and every file stays`, async () => {
      const world = givenCsi();
      world.backend.fail("stage", code);
      await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "uncertain" });
      expect(await world.host.files.read(`${GLOBAL}/vol_data.json`)).toContain("h1");

      world.backend.fail("publish", code);
      await expect(world.publish(pv())).rejects.toMatchObject({ outcome: "uncertain" });
      expect(await world.host.files.read(`${POD_DIR}/vol_data.json`)).toContain("h1");

      await world.unpublish(pv());
      await world.unstage(pv());
      expect(world.backend.work().slice(2)).toEqual([`unpublish h1 ${TARGET}`, `unstage h1 ${STAGING}`]);
    });
  }

  test("scenario 54: a stage that certainly failed leaves no file, and unstaging calls nobody", async () => {
    const world = givenCsi();
    world.backend.fail("stage", "INTERNAL", "bad disk");

    await expect(world.stage(pv())).rejects.toMatchObject({
      outcome: "final",
      message: "rpc error: code = Internal desc = bad disk",
    });

    expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
    await world.unstage(pv());
    expect(world.backend.work()).toEqual(["stage h1"]);
  });

  test("scenario 55: one after an attempt that may have worked leaves what says whom to ask", async () => {
    const world = givenCsi();
    world.backend.fail("stage", "UNAVAILABLE");
    await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "uncertain" });
    world.backend.fail("stage", "INTERNAL");
    await expect(world.stage(pv(), { mayBeThere: true })).rejects.toMatchObject({ outcome: "final" });

    await world.unstage(pv());
    expect(world.backend.work().at(-1)).toBe(`unstage h1 ${STAGING}`);
    expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
  });

  test("a final failure after which nobody can tell what is mounted is not final", async () => {
    const world = givenCsi();
    world.backend.fail("stage", "INTERNAL");
    world.backend.fail("publish", "INTERNAL");
    world.host.fail("mounts.isMountPoint", { times: 2 });

    await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "uncertain" });
    await expect(world.publish(pv())).rejects.toMatchObject({ outcome: "uncertain" });
  });

  test("scenario 57: a publish that certainly failed leaves no file, and unpublishing calls nobody", async () => {
    const world = givenCsi();
    world.backend.fail("publish", "INVALID_ARGUMENT");

    await expect(world.publish(pv())).rejects.toMatchObject({ outcome: "final" });

    expect(await world.host.files.stat(POD_DIR)).toBeUndefined();
    await world.unpublish(pv());
    expect(world.backend.work()).toEqual(["publish h1"]);
  });

  test("a final failure with something mounted all the same is not final: it has to be torn down", async () => {
    const world = givenCsi();
    await world.stage(pv());
    await world.publish(pv());
    world.backend.fail("stage", "INTERNAL");
    world.backend.fail("publish", "INTERNAL");

    await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "uncertain" });
    await expect(world.publish(pv())).rejects.toMatchObject({ outcome: "uncertain" });

    expect(await world.host.files.read(`${GLOBAL}/vol_data.json`)).toContain("h1");
  });

  test("FIX 18: a reconstructed device keeps its record after a final failure", async () => {
    const world = givenCsi();
    await world.stage(pv());
    world.machine.reboot();
    world.backend.fail("stage", "INTERNAL");

    await expect(world.stage(pv(), { mayBeThere: true })).rejects.toMatchObject({ outcome: "final" });

    await world.unstage(pv());
    expect(world.backend.work().at(-1)).toBe(`unstage h1 ${STAGING}`);
  });

  test("scenario 79: a refresh that fails leaves mount and record as they are", async () => {
    const world = givenCsi();
    await world.publish(pv());
    world.backend.fail("publish", "INVALID_ARGUMENT");

    await expect(world.publish(pv(), { isRemount: true })).rejects.toMatchObject({ outcome: "final" });

    expect(await world.host.mounts.isMountPoint(TARGET)).toBe(true);
    expect(await world.host.files.read(`${POD_DIR}/vol_data.json`)).toContain("h1");
  });

  test("scenario 61: a probe that fails has touched nothing, so it changes nothing (FIX 15)", async () => {
    const world = givenCsi();
    world.backend.fail("capabilities", "UNAVAILABLE");
    world.backend.fail("capabilities", "INTERNAL");

    await expect(world.publish(pv())).rejects.toMatchObject({
      outcome: "transient",
      blockedBy: [{ kind: "driver", name: "d" }],
    });
    await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "transient" });

    expect(world.backend.work()).toEqual([]);
    expect(await world.host.files.stat(POD_DIR)).toBeUndefined();
  });

  test("a driver that is not registered is waited for by name, in every step", async () => {
    const world = givenCsi({ registered: false });
    const waiting = { outcome: "transient", blockedBy: [{ kind: "driver", name: "d" }] };

    await expect(world.stage(pv())).rejects.toMatchObject(waiting);
    await expect(world.publish(pv())).rejects.toMatchObject({
      ...waiting,
      message: "driver name d not found in the list of registered CSI drivers",
    });
  });

  test("a record that cannot be written is final, leaves nothing, and the driver hears of nothing", async () => {
    const world = givenCsi();
    world.host.fail("files.writeDurable", { code: "NoSpace", times: 2 });

    await expect(world.stage(pv())).rejects.toMatchObject({ outcome: "final" });
    await expect(world.publish(pv())).rejects.toMatchObject({ outcome: "final" });

    expect(world.backend.work()).toEqual([]);
    expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
    expect(await world.host.files.stat(POD_DIR)).toBeUndefined();
  });
});

describe("tearing down", () => {
  test("scenario 60: a failed unpublish keeps the record, so that the next try knows whom to ask", async () => {
    const world = givenCsi();
    await world.publish(pv());
    world.backend.fail("unpublish", "INTERNAL");

    await expect(world.unpublish(pv())).rejects.toMatchObject({ outcome: "final" });
    await world.unpublish(pv(), { known: false });

    expect(world.backend.work().slice(1)).toEqual([`unpublish h1 ${TARGET}`, `unpublish h1 ${TARGET}`]);
  });

  test("FIX 28: a target or staging path still mounted after success is uncertain, and keeps its record", async () => {
    const world = givenCsi();
    await world.stage(pv());
    await world.publish(pv());
    world.backend.leavesMounted = true;

    await expect(world.unpublish(pv())).rejects.toMatchObject({ outcome: "uncertain" });
    await expect(world.unstage(pv())).rejects.toMatchObject({ outcome: "uncertain" });

    world.backend.leavesMounted = false;
    await world.unpublish(pv());
    await world.unstage(pv());
    expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
  });

  test("data a driver left in the target is never removed; the driver is asked again", async () => {
    const world = givenCsi();
    await world.publish(pv());
    await world.machine.mounts.unmount(TARGET);
    await world.host.files.writeFile(`${TARGET}/diary`, Buffer.from("dear"), 0o600);

    await expect(world.unpublish(pv())).rejects.toMatchObject({ code: "NotEmpty" });

    expect(await world.host.files.read(`${TARGET}/diary`)).toBe("dear");
    expect(await world.host.files.read(`${POD_DIR}/vol_data.json`)).toContain("h1");
  });

  for (const [claim, content] of [
    ["cut short", '{"driverNa'],
    ["empty", ""],
    ["of another make", "[]"],
  ] as const) {
    test(`scenario 96: a record ${claim} is told, and the volume is taken down by what else is known (FIX 13)`, async () => {
      const world = givenCsi();
      await world.stage(pv());
      await world.publish(pv());
      for (const directory of [GLOBAL, POD_DIR])
        await world.host.files.writeDurable(`${directory}/vol_data.json`, content);

      await world.unpublish(pv(), { known: false });
      await world.unstage(pv());

      expect(world.backend.work().slice(2)).toEqual([`unpublish h1 ${TARGET}`, `unstage h1 ${STAGING}`]);
      expect(world.logs.filter((line) => line.includes("record unusable"))).toHaveLength(2);
      expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
    });
  }

  test("an ephemeral volume without record: its handle follows from pod and name, its driver from the spec", async () => {
    const world = givenCsi({ driver: { volumeLifecycleModes: ["Ephemeral"] } });
    await world.publish(inline());
    await world.host.files.removeFile(`${ROOT}/pods/u1/volumes/kubernetes.io~csi/v/vol_data.json`);

    await expect(world.unpublish(inline(), { known: false })).rejects.toMatchObject({ outcome: "final" });
    await world.unpublish(inline());

    expect(world.backend.work().at(-1)).toContain(`unpublish csi-${sha256("u1v")} `);
  });
});

describe("after a restart", () => {
  test("the record tells what a directory is; scenario 94: also of an inline volume", async () => {
    const world = givenCsi({ driver: { volumeLifecycleModes: ["Persistent", "Ephemeral"] } });
    await world.publish(pv(), { selinuxLabel: "l" });
    await world.publish(inline());
    const inlineDir = `${ROOT}/pods/u1/volumes/kubernetes.io~csi/v`;

    const one = await world.plugin.reconstruct({
      podUid: "u1",
      specName: "pv1",
      mode: "Filesystem",
      path: POD_DIR,
    });
    const other = await world.plugin.reconstruct({
      podUid: "u1",
      specName: "v",
      mode: "Filesystem",
      path: inlineDir,
    });

    expect(one?.selinuxLabel).toBe("l");
    expect(world.plugin.volumeName(one!.spec)).toBe("d^h1");
    expect(other).toEqual({ spec: { kind: "inline", volume: { name: "v", csi: { driver: "d" } } } });
  });

  test("scenario 96: an unreadable record is replaced by that of the staging directory it is a bind of", async () => {
    const world = givenCsi();
    await world.stage(pv());
    await world.host.files.makeDirectories(TARGET, 0o750);
    await world.machine.mounts.bind(STAGING, TARGET, []);
    await world.host.files.writeDurable(`${POD_DIR}/vol_data.json`, "");

    const found = await world.plugin.reconstruct({
      podUid: "u1",
      specName: "pv1",
      mode: "Filesystem",
      path: POD_DIR,
    });

    expect(world.plugin.volumeName(found!.spec)).toBe("d^h1");
  });

  test("a directory without any evidence is nobody's", async () => {
    const world = givenCsi();

    expect(
      await world.plugin.reconstruct({ podUid: "u1", specName: "pv1", mode: "Filesystem", path: POD_DIR }),
    ).toBeUndefined();
  });

  test("FIX 12: staged volumes are found without any pod, block ones too", async () => {
    const world = givenCsi();
    await world.stage(pv());
    await world.setUpDevice(pv({ volumeMode: "Block" }, { name: "pv2" }));

    const staged = await world.plugin.findStaged!();

    expect(staged).toMatchObject([
      { volume: "kubernetes.io/csi/d^h1", mode: "Filesystem", path: STAGING },
      {
        volume: "kubernetes.io/csi/d^h1",
        mode: "Block",
        path: `${ROOT}/plugins/kubernetes.io/csi/volumeDevices/pv2/dev`,
      },
    ]);
    expect(world.plugin.device!.mountPath(staged[0]!.spec)).toBe(STAGING);
  });
});

import { describe, expect, test } from "vitest";
import { secrets } from "../../kube/api/secret.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT } from "../../sim/node-world.ts";
import type { NodePlugin } from "../plugin.ts";

const CSI = { driver: "csi.example.com", volumeHandle: "v" };

describe("failures of a step", () => {
  test("scenario 45: a node that should attach for itself cannot, says so, and uses nothing", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, controllerAttaches: false });

    await world.runFor(2_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.told()[0]).toBe(
      'FailedAttachVolume AttachVolume.Attach failed for volume "pv-v" : attaching volumes from the kubelet is not supported',
    );
    await world.removePod("web");
    await world.settle();
    expect(world.manager.report().volumes).toEqual([]);
  });

  test("scenario 46: attached, nothing mounted, nobody wants it: forgotten", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "INVALID_ARGUMENT", { times: 99 });
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    expect(world.manager.volumeIsAttached("kubernetes.io/csi/csi.example.com^v")).toBe(true);

    await world.removePod("web");
    await world.settle();

    expect(world.manager.volumeIsAttached("kubernetes.io/csi/csi.example.com^v")).toBe(false);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 49: a defect in a step is a failure with back-off, and everything else goes on", async () => {
    let calls = 0;
    const world = await given({
      plugins: [
        broken(() => {
          calls++;
          throw new TypeError("undefined is not a function");
        }),
      ],
      pods: { web: { inline: [{ name: "x", emptyDir: {} }], uses: ["v"] } },
    });

    await world.runFor(10_000);

    expect(calls).toBeGreaterThan(2);
    expect(calls).toBeLessThan(7);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(world.log.some(({ message }) => message === "agent failed")).toBe(false);
  });

  test("scenario 58: published, but the group cannot be set: not usable, and its record stays", async () => {
    const world = await given({ driver: { fsGroupPolicy: "File" }, volumes: { v: {} }, started: false });
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    host.fail("files.applyGroup", { times: 99 });
    world.start({ host });
    await world.settle();

    await world.startPod("web", { uses: ["v"], spec: { securityContext: { fsGroup: 3_000 } } });
    await world.settle();

    const uid = world.uidOf("web");
    expect(world.told()[0]).toMatch(
      /^FailedMount MountVolume\.SetUp failed for volume "pv-v" : applyFSGroup failed for vol v: /,
    );
    expect(world.manager.getMountedVolumesForPod(uid).size).toBe(0);
    expect(world.manager.hasPossiblyMountedVolumesForPod(uid)).toBe(true);
    const record = `${NODE_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-v/vol_data.json`;
    expect(await world.machine.files.read(record)).toContain('"volumeHandle":"v"');
  });

  test("scenario 59: a secret that is missing: no call, told, and published within a second of its arrival", async () => {
    const nodePublishSecretRef = { name: "s", namespace: "default" };
    const world = await given({
      volumes: { v: { source: { csi: { ...CSI, nodePublishSecretRef } } } },
      pods: { web: { uses: ["v"] } },
    });
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual(["stage v"]);
    expect(world.told()[0]).toMatch(
      /^FailedMount MountVolume\.SetUp failed for volume "pv-v" : fetching NodePublishSecretRef default\/s failed: /,
    );
    expect(world.manager.hasPossiblyMountedVolumesForPod(world.uidOf("web"))).toBe(false);

    await world.client.create(secrets, { metadata: nodePublishSecretRef });
    await world.settle();

    expect(world.takeCalls()).toEqual(["publish v web"]);
  });

  test("scenario 61: a probe that fails after a publish that timed out makes nothing certain", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("publish", "DEADLINE_EXCEEDED", { done: true });
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);
    const uid = world.uidOf("web");

    world.driver.isMute = true;
    world.registerDriver();
    await world.runFor(2_000);
    expect(world.manager.hasPossiblyMountedVolumesForPod(uid)).toBe(true);
    world.driver.isMute = false;
    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", "unpublish v web", "unstage v"]);
    expect(await world.mountPoints()).toEqual([]);
  });

  test("scenario 76: options for a volume that takes none", async () => {
    const world = await given({
      builtIn: true,
      volumes: { v: { source: { hostPath: { path: "/data" }, mountOptions: ["noatime"] } } },
      pods: { web: { uses: ["v"] } },
    });

    expect(world.told()[0]).toBe(
      'FailedMount MountVolume.MountOptionSupport check failed for volume "pv-v" : mount options are not supported for this volume type',
    );
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(0);
  });
});

/** A plugin for every emptyDir, whose set-up does this. */
function broken(setUp: () => never): NodePlugin {
  return {
    name: "example.com/broken",
    canSupport: (spec) => spec.kind === "inline" && spec.volume.emptyDir !== undefined,
    volumeName: () => "x",
    traits: () => ({
      attachable: "no",
      deviceMountable: false,
      requiresRemount: false,
      mountOptions: false,
      selinuxMount: false,
      expandable: false,
    }),
    metricName: () => "example.com/broken",
    mountPath: () => "/nowhere",
    setUp: async () => setUp(),
    tearDown: async () => undefined,
    reconstruct: async () => undefined,
  };
}

describe("an attempt that may have worked is undone, whatever becomes of the next one", () => {
  const BLOCK = { volumeMode: "Block", csi: CSI } as const;
  const DEVICES = {
    containers: [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }],
  };

  for (const mode of ["Filesystem", "Block"] as const)
    for (const step of ["stage", "publish"] as const)
      for (const next of [
        "is refused by the driver",
        "does not come to the driver, and nobody can tell what is mounted",
      ] as const)
        test(`${mode}: a ${step} that timed out; the next ${next}`, async () => {
          const source = mode === "Block" ? BLOCK : { csi: CSI };
          const world = await given({ volumes: { v: { source } }, started: false });
          const host = createFaultyNodeHost(world.machine, { clock: world.clock });
          world.start({ host });
          await world.settle();
          world.driver.fail(step, "DEADLINE_EXCEEDED", { done: true });
          await world.startPod("web", { uses: ["v"], ...(mode === "Block" && DEVICES) });
          await world.runFor(100);
          expect(world.takeCalls().at(-1)).toMatch(step);

          if (next === "is refused by the driver") world.driver.fail(step, "INTERNAL", { times: 99 });
          else
            for (const call of ["files.makeDirectories", "mounts.isMountPoint", "mounts.table"] as const)
              host.fail(call, { times: 2 });
          await world.runFor(600);
          expect(world.inUse()).toEqual(["v"]);
          host.heal();
          await world.removePod("web");
          await world.runFor(30_000);

          const unpublished = step === "publish" ? ["unpublish v web"] : [];
          expect(world.takeCalls().filter((call) => call.startsWith("un"))).toEqual([
            ...unpublished,
            "unstage v",
          ]);
          expect(await world.mountPoints()).toEqual([]);
          expect((await world.machine.files.list(`${NODE_ROOT}/pods`)) ?? []).toEqual([]);
          expect(world.inUse()).toEqual([]);
        });
});

import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/**
 * Somebody deletes a VolumeAttachment under a pod, and the driver does not detach what is staged. What no pod can use is taken
 * down for it, and mounted again once the volume was attached anew; what a pod or a process has stays.
 */

const FINALIZER = "external-attacher/csi-example-com";

async function deleteAttachment(world: NodeWorld): Promise<void> {
  const ref = { name: world.attachmentOf("v") };
  const value = { metadata: { finalizers: [FINALIZER] } };
  await world.client.patch(volumeAttachments, ref, { type: "merge", value });
  await world.client.delete(volumeAttachments, ref);
}

/** What the attacher and the controller do once nothing of the volume is on the node. */
async function attachAnew(world: NodeWorld): Promise<void> {
  const ref = { name: world.attachmentOf("v") };
  await world.client.patch(volumeAttachments, ref, {
    type: "merge",
    value: { metadata: { finalizers: null } },
  });
  await world.attach("v");
}

describe("the VolumeAttachment is being deleted", () => {
  test("a volume that is staged and in no pod, found after a restart: unstaged, then staged anew", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    world.driver.fail("publish", "INTERNAL");
    world.start();
    await world.settle();
    await world.stop();
    await deleteAttachment(world);
    world.takeCalls();

    world.start();
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect(await world.mountPoints()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);

    await attachAnew(world);
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("what a pod of before a reboot had: unpublished and unstaged, then mounted anew", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    await world.stop();
    for (const path of (await world.mountPoints()).reverse()) await world.machine.mounts.unmount(path);
    await deleteAttachment(world);
    world.takeCalls();

    world.start();
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);

    await attachAnew(world);
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
  });

  test("a container that runs on it across the restart keeps it, and is taken over afterwards", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const target = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~csi/pv-v/mount`;
    world.machine.startProcess({ binds: [target] });
    await world.stop();
    await deleteAttachment(world);
    world.takeCalls();

    world.start();
    await world.runFor(300_000);
    expect(world.takeCalls()).toEqual([]);
    expect(await world.mountPoints()).toContain(target);

    await attachAnew(world);
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("two pods after a restart, of one a process is left that no pod's name is on: nothing is taken from either", async () => {
    const world = await given({ pods: { a: { uses: ["v"] }, b: { uses: ["v"] } } });
    const target = `${NODE_ROOT}/pods/${world.uidOf("b")}/volumes/kubernetes.io~csi/pv-v/mount`;
    world.machine.startProcess({ binds: [target] });
    await world.stop();
    await deleteAttachment(world);
    world.takeCalls();

    world.start();
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
  });

  test("a pod that has it mounted keeps it, whether or not a process is seen", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.takeCalls();

    await deleteAttachment(world);
    await world.runFor(300_000);

    expect(world.takeCalls()).toEqual([]);
  });
});

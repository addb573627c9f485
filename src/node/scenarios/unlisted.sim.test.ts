import { describe, expect, test } from "vitest";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { given, NODE, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

/**
 * A controller that takes a volume off a node takes it off `volumesAttached` first, and deletes its VolumeAttachment after that. A
 * machine that comes back in between finds the volume on its disk, and the VolumeAttachment attached: nothing of it is mounted
 * before the node lists it again, and what was found is taken down, as a driver may refuse to detach what is staged.
 */

const KINDS: readonly (readonly [string, Parameters<typeof given>[0], NodePodSketch])[] = [
  ["a filesystem", {}, { uses: ["v"] }],
  [
    "a raw volume",
    {
      volumes: {
        v: { source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } } },
      },
    },
    {
      uses: ["v"],
      containers: [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }],
    },
  ],
];

/** The machine lost its power with the pod's volume mounted, and comes back. */
async function rebooted(world: NodeWorld): Promise<void> {
  await world.stop();
  world.machine.reboot();
  world.takeCalls();
}

function mounting(calls: readonly string[]): string[] {
  return calls.filter((call) => /^(stage|publish) /.test(call));
}

describe("unlisted while the machine was down, and its VolumeAttachment is still there", () => {
  for (const [what, sketch, pod] of KINDS) {
    test(`${what}: not staged for the same pod before it is listed again`, async () => {
      const world = await given({ ...sketch, pods: { web: pod } });
      await rebooted(world);
      await world.setAttached(NODE, []);

      world.start();
      await world.runFor(60_000);
      expect(mounting(world.takeCalls())).toEqual([]);
      expect(world.inUse()).toEqual(["v"]);

      await world.attach("v");
      await world.runFor(5_000);
      expect(mounting(world.takeCalls())).toEqual(["stage v", "publish v web"]);
    });

    test(`${what}: taken down, and mounted anew once it is listed again`, async () => {
      const world = await given({ ...sketch, pods: { web: pod } });
      await rebooted(world);
      await world.setAttached(NODE, []);

      world.start();
      await world.runFor(60_000);
      expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
      expect(world.inUse()).toEqual(["v"]);

      await world.attach("v");
      await world.runFor(5_000);
      expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
      expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    });

    test(`${what}: not staged for the next pod before it is listed again`, async () => {
      const world = await given({ ...sketch, pods: { web: pod } });
      await rebooted(world);
      await world.setAttached(NODE, []);
      await world.removePod("web");
      await world.startPod("next", pod);

      world.start();
      await world.runFor(60_000);
      expect(mounting(world.takeCalls())).toEqual([]);
      expect(world.inUse()).toEqual(["v"]);

      await world.attach("v");
      await world.runFor(5_000);
      expect(mounting(world.takeCalls())).toEqual(["stage v", "publish v next"]);
    });
  }

  test("where the driver stages nothing: not published before it is listed again", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    world.driver.capabilities = [];
    world.start();
    await world.runFor(5_000);
    expect(mounting(world.takeCalls())).toEqual(["publish v web"]);
    await rebooted(world);
    await world.setAttached(NODE, []);

    world.start();
    await world.runFor(60_000);
    expect(mounting(world.takeCalls())).toEqual([]);

    await world.attach("v");
    await world.runFor(5_000);
    expect(mounting(world.takeCalls())).toEqual(["publish v web"]);
  });

  test("what is mounted stays with its pod, listed or not", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.takeCalls();

    await world.setAttached(NODE, []);
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
  });

  test("a container that runs on it across a restart of the agent keeps it", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const target = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~csi/pv-v/mount`;
    world.machine.startProcess({ binds: [target] });
    await world.stop();
    await world.setAttached(NODE, []);
    world.takeCalls();

    world.start();
    await world.runFor(300_000);

    expect(world.takeCalls()).toEqual([]);
    expect(await world.mountPoints()).toContain(target);
    expect(world.inUse()).toEqual(["v"]);
  });

  test("whose claim was replaced: the pod follows its claim, as nothing runs on what it had", async () => {
    const world = await given({ volumes: { w: {} }, pods: { web: { uses: ["v"] } } });
    await rebooted(world);
    await world.setAttached(NODE, []);
    await world.deleteClaim("v");
    await world.createClaim("default/claim-v", { volumeName: "pv-w", bound: true });
    await bindTo(world, "pv-w");

    world.start();
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(world.inUse()).toEqual(["w"]);

    await world.attach("w");
    await world.runFor(5_000);
    expect(world.takeCalls()).toEqual(["stage w", "publish w web"]);
  });
});

async function bindTo(world: NodeWorld, volumeName: string): Promise<void> {
  const name = { namespace: "default", name: "claim-v" };
  const { uid = "" } = world.read(persistentVolumeClaims, name)?.metadata ?? {};
  const value = { spec: { claimRef: { kind: "PersistentVolumeClaim", ...name, uid } } };
  await world.client.patch(persistentVolumes, { name: volumeName }, { type: "merge", value });
}

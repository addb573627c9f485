import { describe, expect, test } from "vitest";
import { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { given, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

const GI = 1024 ** 3;

/** A volume of 1Gi that a pod uses, and its claim says so. */
async function mounted(pod: NodePodSketch = { uses: ["v"] }): Promise<NodeWorld> {
  const world = await given({ volumes: { v: {} } });
  await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
  await world.startPod("web", pod);
  await world.settle();
  world.takeCalls();
  return world;
}

/** What provisioner and resizer have done, up to the node's turn. */
async function grow(world: NodeWorld, status: string | null = "NodeResizePending"): Promise<void> {
  const books = (storage: string | null) => ({
    allocatedResources: { storage: "2Gi" },
    allocatedResourceStatuses: { storage },
  });
  await world.setClaimStatus("v", books("ControllerResizeInProgress"));
  await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
  const conditions = [{ type: "FileSystemResizePending", status: "True" }];
  await world.setClaimStatus("v", { ...books(status), conditions });
  await world.settle();
}

/** Several nodes may have it, of which this is one. */
async function sharedVolume(): Promise<NodeWorld> {
  const modes = ["ReadWriteMany"];
  const world = await given({ volumes: { v: { modes, claim: "missing", volume: "missing" } } });
  await world.client.create(persistentVolumeClaims, {
    metadata: { name: "claim-v", namespace: "default" },
    spec: { accessModes: modes, volumeName: "pv-v", resources: { requests: { storage: "2Gi" } } },
  });
  await world.setClaimStatus("v", { phase: "Bound", capacity: { storage: "1Gi" } });
  await world.createPersistentVolume("v");
  return world;
}

type Status = NonNullable<PersistentVolumeClaim["status"]> & {
  readonly allocatedResourceStatuses?: Readonly<Record<string, string>>;
};

function statusOf(world: NodeWorld) {
  const { capacity, allocatedResourceStatuses, conditions = [] } = (world.claim("v")?.status ?? {}) as Status;
  return {
    capacity: capacity?.["storage"],
    resize: allocatedResourceStatuses?.["storage"],
    conditions: conditions.map(({ type }) => type),
  };
}

const claimReads = (world: NodeWorld) =>
  world.requests.filter((line) => line.includes("/persistentvolumeclaims/")).length;

describe("while it is in use", () => {
  test("scenario 27: a PersistentVolume that grew is grown here, where nobody keeps books of it", async () => {
    const world = await mounted();

    await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
    await world.settle();

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    expect(statusOf(world).capacity).toBe(String(2 * GI));
  });

  test("scenario 27: not for a pod that may only read it", async () => {
    const world = await mounted({ uses: ["v"], readOnly: true });

    await grow(world);

    expect(world.takeCalls()).toEqual([]);
  });

  test("scenario 98: pending: in progress, expanded, written down, told to pod and claim", async () => {
    const world = await mounted();

    await grow(world);

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    expect(statusOf(world)).toEqual({ capacity: String(2 * GI), resize: undefined, conditions: [] });
    const success = 'FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv-v" n1';
    expect(world.told().filter((line) => line === success)).toHaveLength(2);
  });

  test("it is the controller's turn first: nothing happens, and the node's turn is taken when it comes", async () => {
    const world = await mounted();

    await grow(world, "ControllerResizeInProgress");
    expect(world.takeCalls()).toEqual([]);
    await grow(world, "NodeResizePending");

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    expect(statusOf(world).capacity).toBe(String(2 * GI));
  });

  test("scenario 99: out of range: infeasible, said in the claim, and not tried again", async () => {
    const world = await mounted();
    world.driver.fail("expand", "OUT_OF_RANGE", { times: 99 });

    await grow(world);
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    expect(statusOf(world)).toMatchObject({ capacity: "1Gi", resize: "NodeResizeInfeasible" });
    expect(statusOf(world).conditions).toContain("NodeResizeError");
  });

  test("scenario 99: an internal error is only a condition, and tried again", async () => {
    const world = await mounted();
    world.driver.fail("expand", "INTERNAL", { times: 1 });

    await grow(world);
    expect(statusOf(world)).toMatchObject({ resize: "NodeResizeInProgress" });
    expect(statusOf(world).conditions).toContain("NodeResizeError");
    expect(world.told().filter((line) => line.startsWith("VolumeResizeFailed "))).toHaveLength(1);
    await world.runFor(1_000);

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`, `expand v ${2 * GI}`]);
    expect(statusOf(world)).toEqual({ capacity: String(2 * GI), resize: undefined, conditions: [] });
  });

  test("after a failure somebody asks for another size: this one is given up, so that theirs can be tried", async () => {
    const world = await mounted();
    world.driver.fail("expand", "INTERNAL", { times: 99 });

    await grow(world);
    await world.runFor(5_000);

    // The claim still asks for 1Gi, which is not what is being tried.
    expect(world.takeCalls()).toHaveLength(2);
    expect(statusOf(world).resize).toBe("NodeResizeInfeasible");
  });

  test("scenario 62: an expansion that timed out is tried again and nothing is said about it", async () => {
    const world = await mounted();
    world.driver.fail("expand", "DEADLINE_EXCEEDED", { times: 1 });

    await grow(world);
    expect(statusOf(world)).toMatchObject({ resize: "NodeResizeInProgress" });
    expect(statusOf(world).conditions).not.toContain("NodeResizeError");
    await world.runFor(1_000);

    expect(world.takeCalls()).toHaveLength(2);
    expect(statusOf(world).capacity).toBe(String(2 * GI));
  });

  test("a driver that cannot while it is in use is asked once, and again after the pod has gone", async () => {
    const world = await mounted();
    world.driver.fail("expand", "FAILED_PRECONDITION", { times: 1 });

    await grow(world);
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    await world.removePod("web");
    await world.settle();
    await world.startPod("next", { uses: ["v"] });
    await world.settle();

    expect(world.takeCalls().slice(-3)).toEqual(["stage v", "publish v next", `expand v ${2 * GI}`]);
  });

  test("scenario 100: shared by nodes and grown already: this node grows its side, and writes nothing", async () => {
    const world = await sharedVolume();
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    world.takeCalls();

    await world.setClaimStatus("v", { capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } });
    await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
    const before = world.claim("v")?.metadata.resourceVersion;
    await world.settle();

    expect(world.takeCalls()).toEqual([`expand v ${2 * GI}`]);
    expect(world.claim("v")?.metadata.resourceVersion).toBe(before);
  });

  test("scenario 101: one node, grown already: nothing is asked of the driver, now or later", async () => {
    const world = await mounted();

    await world.setClaimStatus("v", { capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } });
    await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
  });

  test("scenario 102: a driver that expands nothing on the node does not matter where nobody keeps books", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.capabilities = [Rpc.STAGE_UNSTAGE_VOLUME];
    await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
    await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });

    await world.startPod("web", { uses: ["v"] });
    await world.settle();

    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(world.told()).toEqual([]);
  });

  test("scenario 103: infeasible: no call, and not one read of the claim however long it stays so", async () => {
    const world = await mounted();
    await grow(world, "NodeResizeInfeasible");
    const before = claimReads(world);

    await world.runFor(600_000);

    expect(world.takeCalls()).toEqual([]);
    expect(claimReads(world)).toBe(before);
  });

  test("a claim that cannot be written after the driver has grown it is written by the next attempt", async () => {
    const world = await mounted();
    world.refuse((line) => line.startsWith("PATCH") && line.includes("/persistentvolumeclaims/"), {
      times: 1,
      skip: 1,
    });

    await grow(world);
    expect(statusOf(world).capacity).toBe("1Gi");
    await world.runFor(5_000);

    expect(statusOf(world)).toMatchObject({ capacity: String(2 * GI), resize: undefined });
  });
});

describe("during a mount", () => {
  test("a volume that grew while nobody used it is grown before the pod sees it", async () => {
    const world = await given({ volumes: { v: {} } });
    await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
    await grow(world);

    await world.startPod("web", { uses: ["v"] });
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", `expand v ${2 * GI}`]);
    expect(statusOf(world).capacity).toBe(String(2 * GI));
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
  });

  test("one that cannot be grown is not usable, and is still taken down", async () => {
    const world = await given({ volumes: { v: {} } });
    await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
    await grow(world);
    world.driver.fail("expand", "INTERNAL", { times: 99 });

    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(0);
    expect(world.told()[0]).toMatch(
      /^FailedMount MountVolume\.Setup failed while expanding volume for volume "pv-v" : /,
    );
    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls().slice(-2)).toEqual(["unpublish v web", "unstage v"]);
  });

  test("read only: told to pod and claim, and mounted as it is", async () => {
    const world = await given({ volumes: { v: {} } });
    await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
    await grow(world);

    await world.startPod("web", { uses: ["v"], readOnly: true });
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    const failed =
      'FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "pv-v" requested read-only file system';
    expect(world.told().filter((line) => line === failed)).toHaveLength(2);
  });

  test("scenario 28: an expansion that a restart interrupted goes on", async () => {
    const world = await mounted();
    world.driver.fail("expand", "UNAVAILABLE", { times: 99 });
    await grow(world);
    await world.stop();
    world.driver.heal();
    world.takeCalls();

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", `expand v ${2 * GI}`]);
    expect(statusOf(world).capacity).toBe(String(2 * GI));
  });
});

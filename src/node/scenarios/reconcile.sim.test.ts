import { describe, expect, test } from "vitest";
import { nodes } from "../../kube/api/node.ts";
import { given, NODE } from "../../sim/node-world.ts";

const messageOf = (error: unknown) => (error as Error).message;
const SIGNAL = new AbortController().signal;

describe("volumes in use and attaching", () => {
  test("scenario 34: nothing is staged before the server confirmed the list and the node lists the volume", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });

    expect(world.inUse()).toEqual(["v"]);
    expect(world.takeCalls()).toEqual([]);

    await world.attach("v");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("scenario 35: a volume that is not attached costs no call, no event and no back-off", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });

    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.told()).toEqual([]);
    const [volume] = world.manager.report().volumes;
    expect(volume?.pods[0]?.waitingFor?.reason).toBe("not-attached");

    await world.attach("v");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("scenario 36: the list is patched within a second of the pod", async () => {
    const world = await given({ volumes: { v: {} }, attached: false });

    await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);

    expect(world.inUse()).toEqual(["v"]);
  });

  test("scenario 37: what needs no attaching is not in use and waits for no node status", async () => {
    const world = await given({
      pods: { web: { uses: ["v"] } },
      attached: false,
      driver: { attachRequired: false },
    });

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(world.inUse()).toEqual([]);
  });
});

describe("one volume, several pods", () => {
  test("scenario 38: the old pod lets go before the new one gets it, and it stays staged", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.takeCalls();

    await world.removePod("web");
    await world.startPod("next", { uses: ["v"] });
    await world.settle();

    expect(world.takeCalls()).toEqual(["unpublish v web", "publish v next"]);
  });

  test("scenario 39: the last pod of two unstages, and only then it leaves the list", async () => {
    const world = await given({ pods: { a: { uses: ["v"] }, b: { uses: ["v"] } } });
    expect(world.takeCalls().slice(0, 1)).toEqual(["stage v"]);

    await world.removePod("a");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v a"]);
    expect(world.inUse()).toEqual(["v"]);

    await world.removePod("b");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v b", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 40: an unstage that failed leaves it in use, and a new pod stages again", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.driver.fail("unstage", "INTERNAL", { times: 3 });
    world.takeCalls();

    await world.removePod("web");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(world.inUse()).toEqual(["v"]);

    await world.startPod("next", { uses: ["v"] });
    await world.settle();
    expect(world.takeCalls()).toEqual(["stage v", "publish v next"]);
  });

  test("scenario 41: mounts of one volume never overlap, unmounts do", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.delay("publish", 100, { times: 2 });
    world.driver.delay("unpublish", 100, { times: 2 });

    await world.startPod("a", { uses: ["v"] });
    await world.startPod("b", { uses: ["v"] });
    await world.settle();
    expect(world.driver.overlaps).toEqual([]);

    await world.removePod("a");
    await world.removePod("b");
    await world.settle();
    expect(world.driver.overlaps).toHaveLength(1);
    expect(world.takeCalls().at(-1)).toBe("unstage v");
  });

  test("scenario 43: a mount waits for the unmount of another pod, other volumes do not", async () => {
    const world = await given({ pods: { a: { uses: ["v"] } }, volumes: { w: {} } });
    world.driver.delay("unpublish", 300);
    world.takeCalls();

    await world.removePod("a");
    await world.runFor(50);
    await world.startPod("b", { uses: ["v", "w"] });
    await world.runFor(150);
    const early = world.takeCalls();
    await world.settle();

    expect(early[0]).toBe("unpublish v a");
    expect(early).toContain("publish w b");
    expect(early).not.toContain("publish v b");
    expect(world.takeCalls()).toEqual(["publish v b"]);
  });

  test("scenario 77: ReadWriteOncePod is for one pod; the other is told, and mounts when it is free", async () => {
    const world = await given({
      volumes: { v: { modes: ["ReadWriteOncePod"] } },
      pods: { a: { uses: ["v"] } },
    });
    world.takeCalls();

    await world.startPod("b", { uses: ["v"] });
    await world.settle();
    expect(world.takeCalls()).toEqual([]);
    expect(world.told()).toContain(
      'FailedMount MountVolume.SetUp failed for volume "pv-v" : volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    );

    await world.removePod("a");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v a", "publish v b"]);
  });
});

describe("back-off", () => {
  test("scenario 47: failing attempts are spaced 0.5, 1, 2, 4 s", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "INTERNAL", { times: 99 });
    await world.startPod("web", { uses: ["v"] });
    const times: number[] = [];

    for (let seen = 0, atMs = 0; atMs < 20_000; atMs += 50) {
      await world.runFor(50);
      if (world.driver.calls.length > seen) times.push(world.clock.now());
      seen = world.driver.calls.length;
    }

    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(gaps.map((gap) => Math.round(gap / 500) / 2)).toEqual([0.5, 1, 2, 4, 8]);
  });

  test("scenario 48: a mount in back-off does not delay taking down what may be there", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "DEADLINE_EXCEEDED", { times: 5 });
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(10_000);
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(100);

    expect(world.takeCalls()).toEqual(["unstage v"]);
  });

  test("scenario 52: a pod whose publish fails delays no other pod of the volume", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("publish", "INVALID_ARGUMENT", { times: 1 });
    await world.startPod("a", { uses: ["v"] });
    await world.runFor(100);

    await world.startPod("b", { uses: ["v"] });
    await world.runFor(100);

    expect(world.takeCalls()).toEqual(["stage v", "publish v a", "publish v b"]);
  });

  test("FIX 8: a driver that registers ends the wait for it at once", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, registered: false });
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual([]);

    world.registerDriver();
    await world.runFor(100);

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });
});

describe("a driver that is not registered", () => {
  test("yet, seconds after a start: no pod is told of a failure, and it mounts the moment the driver comes", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, registered: false });
    await world.runFor(8_000);

    world.registerDriver();
    await world.runFor(100);

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(world.told().filter((line) => line.startsWith("Failed"))).toEqual([]);
  });

  test("still, half a minute after a start: the pod is told", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, registered: false });

    await world.runFor(40_000);

    expect(world.told().join()).toContain("not found in the list of registered CSI drivers");
  });

  test("later: the pod is told at once", async () => {
    const world = await given({ volumes: { v: {} }, registered: false });
    await world.runFor(20_000);

    await world.startPod("web", { uses: ["v"] });
    await world.settle();

    expect(world.told().join()).toContain("not found in the list of registered CSI drivers");
  });
});

describe("classes of failures", () => {
  test("scenario 53: a stage that timed out is undone exactly once", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "DEADLINE_EXCEEDED");
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);
    expect(world.inUse()).toEqual(["v"]);

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 54: a stage that certainly failed leaves nothing to undo", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "INVALID_ARGUMENT");
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v"]);
    expect(world.inUse()).toEqual([]);
    expect(world.told()[0]).toMatch(/^FailedMount MountVolume\.MountDevice failed for volume "pv-v" : /);
  });

  test("scenario 55: uncertain, then certainly failed: what the first attempt may have done is undone", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("stage", "UNAVAILABLE");
    world.driver.fail("stage", "INTERNAL");
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(700);

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "stage v", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 56: a publish that may have happened is not usable, and is undone", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("publish", "ABORTED", { times: 99 });
    const pod = await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);
    const uid = pod.metadata.uid ?? "";
    expect(world.manager.getMountedVolumesForPod(uid).size).toBe(0);
    expect(world.manager.hasPossiblyMountedVolumesForPod(uid)).toBe(true);

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", "unpublish v web", "unstage v"]);
  });

  test("scenario 57: a publish that certainly failed needs no unpublish, but an unstage", async () => {
    const world = await given({ volumes: { v: {} } });
    world.driver.fail("publish", "INVALID_ARGUMENT");
    await world.startPod("web", { uses: ["v"] });
    await world.runFor(100);

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", "unstage v"]);
  });

  test("scenario 60: an unpublish that failed is repeated until it works", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.driver.fail("unpublish", "INTERNAL");
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(1_000);

    expect(world.takeCalls()).toEqual(["unpublish v web", "unpublish v web", "unstage v"]);
  });
});

describe("waiting", () => {
  test("scenario 1: a pod without mounts waits for nothing", async () => {
    const world = await given({ pods: { web: {} } });

    await world.manager.waitForAttachAndMount(world.pod("web")!, SIGNAL);

    expect(world.manager.report().volumes).toEqual([]);
  });

  test("scenario 2: a volume that no container uses is never mounted nor in use", async () => {
    const world = await given({ pods: { web: { uses: ["v"], containers: [{ name: "app", image: "x" }] } } });

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 5: never attached: after 2 min 3 s the error names it twice", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });
    const wait = world.manager.waitForAttachAndMount(world.pod("web")!, SIGNAL);
    const error = wait.then(() => undefined, messageOf);

    await world.runFor(123_500);

    expect(await error).toBe(
      "unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[]: context deadline exceeded",
    );
  });

  test("scenario 4: an unbound claim delays none of the others, and mounts as soon as it is bound", async () => {
    const world = await given({ volumes: { v: { claim: "pending" } }, pods: { web: { uses: ["v", "w"] } } });
    expect(world.takeCalls()).toEqual(["stage w", "publish w web"]);
    expect(world.manager.report().unresolved[0]?.message).toBe(
      "error processing PVC default/claim-v: PVC is not bound",
    );

    await world.bindClaim("v");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("scenario 8: a cancelled wait says so", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });
    const abort = new AbortController();
    const wait = world.manager.waitForAttachAndMount(world.pod("web")!, abort.signal);
    const error = wait.then(() => undefined, messageOf);

    abort.abort();

    expect(await error).toMatch(/: context canceled$/);
  });

  test("scenario 9: a wait for an attach that never comes tells the pod once a wait", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });

    await world.runFor(125_000);

    expect(world.told()).toEqual([
      "FailedMount Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[]: context deadline exceeded",
    ]);
  });

  test("scenario 11: waiting for nothing to be mounted", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const pod = world.pod("web")!;
    const wait = world.manager.waitForUnmount(pod, SIGNAL);
    const error = wait.then(() => undefined, messageOf);
    await world.runFor(124_000);
    expect(await error).toBe(
      "mounted volumes=[kubernetes.io/csi/csi.example.com^v]: context deadline exceeded",
    );

    await world.removePod("web");
    const gone = world.manager.waitForUnmount(pod, SIGNAL);
    await world.settle();

    await expect(gone).resolves.toBeUndefined();
  });

  test("scenario 19: containers of a deleted pod still run: its volumes stay until they have stopped", async () => {
    const world = await given({
      pods: { web: { uses: ["v"] } },
      podStates: { containersTerminating: () => false, runtimeRemoved: () => false },
    });
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(10_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
  });

  test("scenario 75: node affinity that does not match: told, no call; labels that match start it", async () => {
    const world = await given({
      volumes: {
        v: {
          source: {
            csi: { driver: "csi.example.com", volumeHandle: "v" },
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] }],
              },
            },
          },
        },
      },
      pods: { web: { uses: ["v"] } },
    });
    expect(world.takeCalls()).toEqual([]);
    expect(world.told()[0]).toBe(
      'FailedMount MountVolume.NodeAffinity check failed for volume "pv-v" : no matching NodeSelectorTerms',
    );

    await world.runFor(60_000);
    await world.setNodeLabels({ zone: "a" });
    await world.runFor(100);

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });
});

test("a Node deleted and made again while a pod runs: in use at once, nothing is taken down, and the next pod is served", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } }, volumes: { w: {} } });
  world.takeCalls();

  await world.client.delete(nodes, { name: NODE });
  await world.runFor(5_000);
  await world.createNode(NODE);
  await world.settle();
  expect(world.inUse()).toEqual(["v"]);

  await world.attach("w");
  await world.startPod("next", { uses: ["w"] });
  await world.settle();
  expect(world.takeCalls()).toEqual(["stage w", "publish w next"]);
  expect(world.inUse()).toEqual(["v", "w"]);
});

import { expect, test } from "vitest";
import { forSeeds } from "../../sim/seeds.ts";
import { NO_FAULTS, type NetworkFaults } from "../../sim/faulty-transport.ts";
import { given, type StarterWorld } from "./stage.testing.ts";

test("a pod runs once its volumes are mounted, and not before", async () => {
  const world = await given();
  world.start();
  world.volumes.stuck = true;

  await world.createPod("web");
  await world.settle();
  expect(world.stateOf("web")).toBe("Pending, ContainerCreating");

  world.volumes.unstick();
  await world.settle();
  expect(world.stateOf("web")).toBe("Running, Ready");
  expect(world.pod("web")?.status).toMatchObject({
    hostIP: "127.0.0.1",
    podIP: "127.0.0.1",
    startTime: "2026-01-01T00:00:00Z",
    containerStatuses: [{ name: "app", ready: true, started: true, restartCount: 0 }],
  });
  expect(conditionsOf(world, "web")).toEqual([
    "ContainersReady=True",
    "Initialized=True",
    "PodReadyToStartContainers=True",
    "Ready=True",
  ]);
  expect(world.events.map(({ reason }) => reason)).toEqual(["Started"]);
});

test("a deleted pod is over first, then unmounted, then gone", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();
  const seen: string[] = [];
  world.onRequest = (line) => seen.push(`${line}, ${world.volumes.mounted.size} mounted`);

  await world.deletePod("web");
  await world.settle();

  expect(seen).toEqual(["PATCH web, 1 mounted", "DELETE web, 0 mounted"]);
  expect(world.pod("web")).toBeUndefined();
  expect(world.volumes.journal).toEqual(["mount web", "unmount web"]);
  expect(world.broken).toEqual([]);
});

test("a volume that cannot be unmounted keeps its pod", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();
  world.volumes.stuck = true;

  await world.deletePod("web");
  await world.advance(600_000);
  expect(world.pod("web")?.status?.containerStatuses).toMatchObject([{ state: { terminated: {} } }]);
  await world.deletePod("web");
  expect(world.pod("web")).toBeDefined();

  world.volumes.unstick();
  await world.settle();
  expect(world.pod("web")).toBeUndefined();
});

test("a volume manager that has not looked at the disk yet cannot say that a pod is unmounted", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();
  world.kill();
  world.volumes.stuck = true;
  world.volumes.synced = false;
  await world.deletePod("web");

  world.start();
  await world.advance(60_000);
  expect(world.pod("web")).toBeDefined();

  world.volumes.synced = true;
  world.volumes.unstick();
  await world.advance(60_000);
  expect(world.pod("web")).toBeUndefined();
  expect(world.broken).toEqual([]);
});

test("a wait that fails is begun again until it works", async () => {
  const world = await given();
  world.volumes.refusals = [new Error("timed out"), new Error("timed out"), new Error("timed out")];
  world.start();

  await world.createPod("web");
  await world.advance(3_900);
  expect(world.stateOf("web")).toBe("Pending, ContainerCreating");

  await world.advance(5_000);
  expect(world.stateOf("web")).toBe("Running, Ready");
});

test("a node that can take no more volumes fails the pod, which stays to be read", async () => {
  const world = await given();
  world.volumes.refusals = [Object.assign(new Error("no room for volume v"), { reason: "limit" })];
  world.start();

  await world.createPod("web");
  await world.advance(10_000);

  expect(world.pod("web")?.status).toMatchObject({
    phase: "Failed",
    reason: "VolumeAttachmentLimitExceeded",
    message: "no room for volume v",
  });
});

test("a pod deleted before it started goes without ever having run", async () => {
  const world = await given();
  world.start();
  world.volumes.stuck = true;
  await world.createPod("web");
  await world.settle();

  await world.deletePod("web");
  await world.settle();

  expect(world.pod("web")).toBeUndefined();
  expect(world.events).toEqual([]);
});

test("a pod that failed gives its volumes back and stays", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();

  await world.setStatus("web", { phase: "Failed", reason: "Evicted" });
  await world.settle();

  expect(world.pod("web")?.status).toMatchObject({
    phase: "Failed",
    reason: "Evicted",
    containerStatuses: [{ state: { terminated: { exitCode: 0 } } }],
  });
  expect(world.volumes.mounted.size).toBe(0);
});

test("a finalizer keeps the object, and nothing is sent for it again and again", async () => {
  const world = await given();
  world.start();
  await world.createPod("web", {}, { finalizers: ["example.com/kept"] });
  await world.settle();

  await world.deletePod("web");
  await world.advance(60_000);

  expect(world.transport.requests.filter(({ line }) => line === "DELETE web").length).toBe(1);
  expect(world.pod("web")?.metadata.deletionGracePeriodSeconds).toBe(0);
});

test("pods of other nodes, and pods of files, are left alone", async () => {
  const world = await given();
  world.start();

  await world.createPod("elsewhere", { nodeName: "node-2" });
  await world.createPod("mirror", {}, { annotations: { "kubernetes.io/config.mirror": "x" } });
  await world.settle();

  expect(world.transport.requests).toEqual([]);
});

test("what ran under a process that is gone counts as restarted", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();

  world.kill();
  world.start();
  await world.settle();

  expect(world.stateOf("web")).toBe("Running, Ready");
  expect(world.pod("web")?.status?.containerStatuses).toMatchObject([
    { restartCount: 1, lastState: { terminated: { reason: "ContainerStatusUnknown" } } },
  ]);
});

test("a stop leaves the pods as they are", async () => {
  const world = await given();
  world.start();
  await world.createPod("web");
  await world.settle();
  const before = world.pod("web");

  world.kill();
  await world.advance(600_000);

  expect(world.pod("web")).toEqual(before);
});

/** A pod's whole life takes four requests: starting, running, ended, deleted. */
const REQUESTS = 4;

for (const carriedOut of [true, false])
  test(`killed at any request, ${carriedOut ? "after" : "before"} it was carried out, the next one goes on`, async () => {
    for (let fatal = 1; fatal <= REQUESTS; fatal++) {
      const world = await given();
      let count = 0;
      world.onRequest = () => {
        if (++count !== fatal) return;
        if (!carriedOut) world.transport.spoil("", { kind: "hang" });
        world.kill();
        // The next process begins in a later turn.
        world.clock.after(20, () => world.start());
      };
      world.start();

      await world.createPod("web");
      await world.advance(2_000);
      expect(world.stateOf("web"), `at request ${fatal}`).toBe("Running, Ready");
      await world.deletePod("web");
      await world.advance(2_000);

      expect(world.pod("web"), `at request ${fatal}`).toBeUndefined();
      expect(world.volumes.journal).toEqual(["mount web", "unmount web"]);
      expect(world.broken).toEqual([]);
      expect(count).toBeGreaterThan(REQUESTS);
    }
  });

test("over a bad network, pods come and go: none runs unmounted, none goes mounted, and all settle", async () => {
  await forSeeds(6, async (random, seed) => {
    let faults: NetworkFaults = STORM;
    const world = await given({ seed, network: () => faults });
    world.start();
    const alive = new Set<string>();
    for (let round = 0; round < 40; round++) {
      const name = `pod-${random.int(8)}`;
      if (world.pod(name) === undefined) await world.createPod(name);
      else await world.deletePod(name);
      const pod = world.pod(name);
      if (pod !== undefined && pod.metadata.deletionTimestamp === undefined) alive.add(name);
      else alive.delete(name);
      if (random.int(10) === 0) {
        world.kill();
        world.start();
      }
      await world.advance(random.int(400));
    }

    faults = NO_FAULTS;
    await world.advance(150_000);

    const left = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => `pod-${index}`).filter((name) => world.pod(name));
    expect(left.filter((name) => world.stateOf(name) !== "Running, Ready")).toEqual([]);
    expect(new Set(left)).toEqual(alive);
    expect(world.volumes.mounted.size).toBe(left.length);
    expect(world.broken).toEqual([]);
  });
});

const STORM: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.05,
  lostRequest: 0.02,
  lostAnswer: 0.1,
  tooMany: 0.03,
  serverError: 0.03,
  cut: 0.02,
  repeated: 0.05,
};

function conditionsOf(world: StarterWorld, pod: string): string[] {
  const conditions = world.pod(pod)?.status?.conditions ?? [];
  return conditions.map(({ type, status }) => `${type}=${status}`).sort();
}

import { describe, expect, test } from "vitest";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import type { PodStates } from "../pod-states.ts";
import { createMemoryHost } from "../memory/host.ts";
import { given } from "../../sim/node-world.ts";
import { createPaths } from "../paths.ts";
import { createEmptyDirPlugin } from "../plugins/empty-dir.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";

const GI = 1024 ** 3;

/** What a container runtime would say, by pod uid. */
function runtime(): PodStates & { readonly ending: Set<string>; readonly gone: Set<string> } {
  const [ending, gone] = [new Set<string>(), new Set<string>()];
  return {
    ending,
    gone,
    containersTerminating: (uid) => ending.has(uid) || gone.has(uid),
    runtimeRemoved: (uid) => gone.has(uid),
  };
}

describe("which pods count", () => {
  test("scenario 17: at the start a pod that is ending but may still run is kept mounted, one that is over is not", async () => {
    const podStates = runtime();
    const world = await given({ volumes: { v: {}, w: {} }, podStates, started: false });
    const running = await world.startPod("running", { uses: ["v"] });
    const over = await world.startPod("over", { uses: ["w"] });
    podStates.ending.add(running.metadata.uid ?? "");
    podStates.gone.add(over.metadata.uid ?? "");

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v running"]);
    expect(world.inUse()).toEqual(["v"]);
  });

  test("scenario 18: later a pod that is ending already gets nothing", async () => {
    const podStates: PodStates = { containersTerminating: () => true, runtimeRemoved: () => false };
    const world = await given({ volumes: { v: {} }, podStates });

    await world.startPod("web", { uses: ["v"] });
    await world.settle();

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 33: a pod whose volume never came ends: nothing is tried any more, and the list is free", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });
    expect(world.inUse()).toEqual(["v"]);

    await world.setPodStatus("web", { phase: "Failed" });
    await world.settle();
    await world.attach("v");
    await world.settle();

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 31: of a pod that is gone nothing is remembered, however late somebody asks for it", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const uid = world.uidOf("web");
    await world.removePod("web");
    await world.settle();

    world.manager.podStateChanged(uid);
    await world.settle();

    expect(world.manager.report()).toMatchObject({ volumes: [], unresolved: [] });
    expect(world.inUse()).toEqual([]);
  });
});

describe("volumes that cannot be followed", () => {
  test("scenario 25: a PersistentVolume that can no longer be read takes nothing away, and is not asked for again and again", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.takeCalls();
    await world.deletePersistentVolume("v");
    await world.settle();
    const before = world.requests.length;

    await world.runFor(30_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(world.requests.length - before).toBeLessThan(20);
  });

  test("scenario 26: a PersistentVolume that cannot be read is mounted as soon as it can, and the wait goes on meanwhile", async () => {
    const world = await given({ volumes: { v: { volume: "missing" } }, attached: false });
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    const wait = world.manager.waitForAttachAndMount(world.pod("web")!, new AbortController().signal);
    await world.runFor(30_000);
    expect(world.takeCalls()).toEqual([]);

    await world.createPersistentVolume("v");
    await world.attach("v");
    await world.runFor(500);

    await expect(wait).resolves.toBeUndefined();
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });
});

describe("what a set-up is told", () => {
  for (const [sizeLimit, container, expected] of [
    ["1Gi", "2Gi", GI],
    ["3Gi", "2Gi", 2 * GI],
    [undefined, "2Gi", 2 * GI],
    ["3Gi", undefined, 3 * GI],
    [undefined, undefined, 0],
  ] as const)
    test(`scenario 30: emptyDir of ${sizeLimit ?? "any size"}, container with ${container ?? "no limit"}: ${expected}`, async () => {
      const seen: SetUpRequest[] = [];
      const limits = container === undefined ? {} : { limits: { "ephemeral-storage": container } };
      const world = await given({ plugins: [watched(seen)] });
      const emptyDir = sizeLimit === undefined ? {} : { sizeLimit };

      await world.startPod("web", {
        inline: [{ name: "tmp", emptyDir }],
        containers: [
          { name: "app", image: "x", resources: limits, volumeMounts: [{ name: "tmp", mountPath: "/tmp" }] },
        ],
      });
      await world.settle();

      expect(seen.map(({ sizeLimitBytes }) => sizeLimitBytes)).toEqual([expected]);
    });
});

/** An emptyDir on a machine of its own, of which only the requests are of interest. */
function watched(seen: SetUpRequest[]): NodePlugin {
  const clock = new SimScheduler(createSeededRandom(1)).createClock();
  const deps = { host: createMemoryHost({ clock }), paths: createPaths("/var/lib/kubelet") };
  const plugin = createEmptyDirPlugin({ ...deps, node: () => undefined } as unknown as Parameters<
    typeof createEmptyDirPlugin
  >[0]);
  return {
    ...plugin,
    setUp: async (request) => {
      seen.push(request);
      return { readOnly: false, managed: true, selinuxRelabel: true };
    },
  };
}

import { describe, expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { OUT_OF_SERVICE, type NodeSketch } from "../sim/cluster-objects.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";

/**
 * A Node object is deleted while its machine lives, and registered again: `kubectl delete node`. The new object says nothing
 * of volumes at first, which is no proof that those the old one had in use were unmounted. They are detached once the node
 * itself has spoken, or has been ready for long enough to have spoken.
 */

const SECOND = 1_000;
const MINUTE = 60_000;
const BOOT = { bootId: "boot-1" };

/** `v` is mounted on n1, for longer than the second to which servers tell when an object was created. */
async function withMounted(node: NodeSketch = {}, sketch: Parameters<typeof given>[0] = {}) {
  const world = await given({
    nodes: { n1: node, n2: {} },
    pods: { web: { on: "n1", uses: ["v"] } },
    ...sketch,
  });
  await world.advance(2 * SECOND);
  await world.setInUse("n1", ["v"]);
  await world.advance(2 * SECOND);
  return world;
}

async function replaceNode(world: AttachDetachWorld, sketch: NodeSketch = {}): Promise<void> {
  await world.deleteNode("n1");
  await world.advance(2 * SECOND);
  await world.createNode("n1", sketch);
  await world.settle();
}

const isDetached = (world: AttachDetachWorld) => {
  const attachment = world.attachmentOf("v", "n1");
  return attachment === undefined || attachment.metadata.deletionTimestamp !== undefined;
};

const waitOf = (world: AttachDetachWorld) =>
  world.controller.controller.report().volumes.find(({ node }) => node === "n1")?.waitingFor;

test("a volume on a Node that registers again waits for its list no longer than the list takes", async () => {
  const world = await withMounted();

  await replaceNode(world, { inUse: ["v"] });
  await world.advance(2 * SECOND);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(waitOf(world)).toBeUndefined();
});

/** Who leads when the Node is replaced, and after. */
const LEADERS: Readonly<
  Record<string, (world: AttachDetachWorld, replace: () => Promise<void>) => Promise<void>>
> = {
  "by the controller that saw the old one": async (_world, replace) => replace(),
  "by a controller that was cut off meanwhile": async (world, replace) => {
    world.cutOff();
    await replace();
    await world.reconnect();
    await world.advance(5 * SECOND);
  },
  "by a controller that starts after that": async (world, replace) => {
    world.controller.kill();
    await replace();
    world.startController();
    await world.settle();
  },
  "and the controller is replaced as well": async (world, replace) => {
    await replace();
    await world.restartController();
  },
};

for (const [seen, lead] of Object.entries(LEADERS)) {
  describe(`a Node that is deleted and registers again, seen ${seen}`, () => {
    const replaced = async (sketch: NodeSketch = {}, before: NodeSketch = {}) => {
      const world = await withMounted(before);
      await lead(world, () => replaceNode(world, sketch));
      await world.removePod("web");
      await world.advance(5 * SECOND);
      return world;
    };

    test("what was in use stays until the node has said what it uses, and after if it lists it", async () => {
      const world = await replaced();
      expect(isDetached(world)).toBe(false);

      await world.setInUse("n1", ["v"]);
      await world.advance(10 * MINUTE);
      expect(isDetached(world)).toBe(false);
      await world.setInUse("n1", []);
      await world.settle();

      expect(isDetached(world)).toBe(true);
    });

    test("a node that lists other volumes only has unmounted it", async () => {
      const world = await replaced();

      await world.createVolume("w");
      await world.setInUse("n1", ["w"]);
      await world.settle();

      expect(isDetached(world)).toBe(true);
    });

    test("it is not presumed for longer than the node has been ready for two minutes", async () => {
      const world = await replaced();

      await world.advance(100 * SECOND);
      expect(isDetached(world)).toBe(false);
      await world.advance(20 * SECOND);

      expect(isDetached(world)).toBe(true);
    });

    test("words of the node about anything else do not end that", async () => {
      const world = await replaced();

      for (let beat = 0; beat < 9; beat++) {
        await world.heartbeat("n1");
        await world.advance(10 * SECOND);
      }

      expect(isDetached(world)).toBe(false);
    });

    test("a node that flaps has to be ready for two minutes at a stretch", async () => {
      const world = await replaced();

      for (let flap = 0; flap < 3; flap++) {
        await world.advance(90 * SECOND);
        await world.setReady("n1", "Unknown");
        await world.advance(5 * SECOND);
        await world.setReady("n1", "True");
      }
      await world.advance(115 * SECOND);
      expect(isDetached(world)).toBe(false);
      await world.advance(10 * SECOND);

      expect(isDetached(world)).toBe(true);
    });

    test("no time counts while the node says that it does not know yet what is mounted", async () => {
      const world = await replaced();
      await world.setReady("n1", "True", "MooringVolumesUnread");

      await world.advance(20 * MINUTE);
      expect(isDetached(world)).toBe(false);
      expect(waitOf(world)?.message).toContain("has not found out yet");
      await world.setReady("n1", "True", "MooringReady");
      await world.advance(SECOND);
      expect(waitOf(world)?.message).toContain("has not listed volumes in use yet");
      await world.advance(114 * SECOND);
      expect(isDetached(world)).toBe(false);
      await world.advance(10 * SECOND);

      expect(isDetached(world)).toBe(true);
    });

    test("deleted and created a second time: the second has to speak as well", async () => {
      const world = await replaced();

      await world.advance(90 * SECOND);
      await replaceNode(world);
      await world.advance(110 * SECOND);
      expect(isDetached(world)).toBe(false);
      await world.advance(15 * SECOND);

      expect(isDetached(world)).toBe(true);
    });

    test("deleted again: it is forced when the time of the policy is over, and no sooner", async () => {
      const world = await replaced();

      await world.deleteNode("n1");
      await world.advance(5 * MINUTE);
      expect(isDetached(world)).toBe(false);
      await world.advance(MINUTE);

      expect(isDetached(world)).toBe(true);
    });

    test("one that does not become ready is forced when the time of the policy is over, and no sooner", async () => {
      const world = await replaced({ ready: "Unknown" });

      await world.advance(5 * MINUTE);
      expect(isDetached(world)).toBe(false);
      await world.advance(MINUTE);

      expect(isDetached(world)).toBe(true);
    });

    test("one that is out of service is forced at once", async () => {
      const world = await replaced({ ready: "Unknown" });

      await world.setTaints("n1", [{ key: OUT_OF_SERVICE, effect: "NoExecute" }]);
      await world.settle();

      expect(isDetached(world)).toBe(true);
    });

    test("the same boot ID is no other life", async () => {
      const world = await replaced(BOOT, BOOT);

      await world.advance(90 * SECOND);

      expect(isDetached(world)).toBe(false);
    });

    test("what waits says why, and until when", async () => {
      const world = await replaced();

      const waiting = waitOf(world);
      expect(waiting).toMatchObject({ reason: "still-mounted", object: { kind: "Node", name: "n1" } });
      expect(waiting?.message).toMatch(
        /^node n1 may be using \S+: its Node object was created after the volume was attached and has not listed volumes in use yet; it is detached once .*, or in 1[012]\d s if the node stays ready until then$/,
      );
      const leftMs = Date.parse(waiting?.until ?? "") - world.clock.wall().getTime();
      expect(leftMs).toBeGreaterThan(100 * SECOND);
      expect(leftMs).toBeLessThanOrEqual(2 * MINUTE);
    });
  });
}

test("a machine that has booted since has nothing mounted", async () => {
  const world = await withMounted(BOOT);

  await replaceNode(world, { bootId: "boot-2" });
  await world.removePod("web");
  await world.settle();

  expect(isDetached(world)).toBe(true);
});

test("a machine that boots after its Node was created again has nothing mounted", async () => {
  const world = await withMounted(BOOT);
  await replaceNode(world, BOOT);
  await world.removePod("web");
  await world.settle();
  expect(isDetached(world)).toBe(false);

  await world.setBootId("n1", "boot-2");
  await world.settle();

  expect(isDetached(world)).toBe(true);
});

test("a boot ID where the old Node had none proves nothing", async () => {
  const world = await withMounted();

  await replaceNode(world, { bootId: "boot-2" });
  await world.removePod("web");
  await world.advance(90 * SECOND);

  expect(isDetached(world)).toBe(false);
});

test("a Node that registers with what it uses has spoken", async () => {
  const world = await withMounted();
  await world.createVolume("w");

  await replaceNode(world, { inUse: ["w"] });
  await world.removePod("web");
  await world.settle();

  expect(isDetached(world)).toBe(true);
});

test("the Node is replaced between the plan of a detach and its look at the server", async () => {
  const world = await withMounted();
  await world.setInUse("n1", []);
  await world.settle();
  world.held.add("nodes");
  await world.deleteNode("n1");
  await world.createNode("n1");
  await world.removePod("web");
  await world.advance(60 * SECOND);
  expect(isDetached(world)).toBe(false);

  await world.advance(70 * SECOND);
  expect(isDetached(world)).toBe(true);
});

test("what was attached to the Node that is there is detached at once, also by a controller that starts later", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  await world.advance(2 * SECOND);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(2 * SECOND);
  await world.restartController();

  await world.removePod("web");
  await world.settle();

  expect(isDetached(world)).toBe(true);
});

test("within seconds of the Node's creation nobody can tell which was first: it is presumed in use by whoever starts then", async () => {
  const world = await given({ volumes: { v: {} } });
  await world.createNode("n1");
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();
  await world.restartController();

  await world.removePod("web");
  await world.advance(100 * SECOND);
  expect(isDetached(world)).toBe(false);
  await world.advance(30 * SECOND);

  expect(isDetached(world)).toBe(true);
});

test("what is attached to the new Node is no longer presumed than any other volume", async () => {
  const world = await withMounted();
  await replaceNode(world);
  await world.createVolume("w");
  await world.createPod("other", { on: "n1", uses: ["w"] });
  await world.settle();

  await world.removePod("other");
  await world.settle();

  expect(world.attachmentOf("w", "n1")).toBeUndefined();
  expect(world.attachmentOf("v", "n1")).toBeDefined();
});

test("another node gets a single-node volume only when the new Node has spoken", async () => {
  const world = await withMounted();
  await replaceNode(world);
  await world.removePod("web");
  await world.createPod("web", { on: "n2", uses: ["v"] });
  await world.advance(60 * SECOND);
  expect(world.attachmentOf("v", "n2")).toBeUndefined();

  await world.advance(70 * SECOND);

  expect(world.volumesAttached("n2")).toEqual(["v"]);
});

test("of a volume without VolumeAttachment nobody knows whether it is older than the Node: it is presumed in use", async () => {
  const detached: string[] = [];
  const inline = [{ name: "disk", flexVolume: { driver: "example/flex" } }];
  const world = await withMounted(
    {},
    { pods: { web: { on: "n1", inline } }, plugins: [flexPlugin(detached)] },
  );
  await replaceNode(world);
  await world.restartController();

  await world.removePod("web");
  await world.advance(100 * SECOND);
  expect(detached).toEqual([]);
  await world.advance(30 * SECOND);

  expect(detached).toEqual(["n1"]);
});

describe("a Node that is gone before the controller has heard its last words", () => {
  /** The kubelet says that it uses the volume, and mounts it, while the controller hears nothing. */
  const usedUnheard = async (world: AttachDetachWorld) => {
    await world.setInUse("n1", ["v"]);
    await world.deleteNode("n1");
    await world.removePod("web");
  };

  test("a server that does not know the Node any more is no proof before the watch has told the rest", async () => {
    const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
    world.held.add("nodes");
    await usedUnheard(world);
    await world.advance(2 * MINUTE);
    expect(isDetached(world)).toBe(false);

    world.held.delete("nodes");
    await world.advance(3 * MINUTE);
    expect(isDetached(world)).toBe(false);
    await world.advance(2 * MINUTE);

    expect(isDetached(world)).toBe(true);
  });

  test("a list without the Node does not tell what it said at last", async () => {
    const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
    world.cutOff();
    await usedUnheard(world);
    await world.reconnect();
    await world.advance(5 * MINUTE);
    expect(isDetached(world)).toBe(false);
    await world.advance(2 * MINUTE);

    expect(isDetached(world)).toBe(true);
  });
});

function flexPlugin(detached: string[]): AttachablePlugin {
  return {
    name: "example/flex",
    canSupport: (spec) => spec.kind === "inline" && spec.volume.flexVolume !== undefined,
    needsAttach: () => true,
    volumeName: () => "disk",
    metricName: () => "example/flex",
    attach: () => Promise.resolve("/dev/xvdf"),
    detach: ({ node }) => {
      detached.push(node);
      return Promise.resolve();
    },
    verify: () => "attached",
  };
}

import { describe, expect, test } from "vitest";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";
import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodePlugin, TearDownDeviceRequest, TearDownRequest } from "../plugin.ts";

/**
 * A plugin that writes down nothing and mounts nothing where anybody could find it, as FlexVolume drivers may. CSI's own
 * records would find a volume without the journal, and hide whether the journal works.
 */
function createRecordless() {
  const calls: string[] = [];
  /** What its backend holds, whoever asked for it. */
  const staged = new Set<string>();
  const behaviour = { hangsInMount: false, failures: 0, failsIn: "pod" as "pod" | "device" };
  const fail = (step: "pod" | "device") => {
    if (behaviour.failsIn === step && behaviour.failures-- > 0) throw new VolumeError("final", "not now");
  };
  const plugin: NodePlugin = {
    name: "example.com/raw",
    canSupport: (spec) =>
      spec.kind === "persistent" && spec.volume.spec?.flexVolume?.driver === "example.com/raw",
    volumeName: specName,
    traits: () => ({
      attachable: "yes",
      deviceMountable: true,
      requiresRemount: false,
      mountOptions: true,
      selinuxMount: false,
      expandable: false,
    }),
    metricName: () => "example.com/raw",
    mountPath: (spec, podUid) => `${NODE_ROOT}/pods/${podUid}/volumes/example.com~raw/${specName(spec)}`,
    setUp: async ({ podUid }) => {
      calls.push(`set up ${podUid}`);
      return { readOnly: false, managed: true, selinuxRelabel: true };
    },
    tearDown: async () => void calls.push("tear down"),
    device: {
      mountPath: (spec) => `${NODE_ROOT}/plugins/example.com/${specName(spec)}`,
      mount: async ({ volume }) => {
        calls.push(`stage ${volume}`);
        staged.add(volume);
        if (behaviour.hangsInMount) await new Promise(() => undefined);
      },
      unmount: async ({ volume }) => {
        calls.push(`unstage ${volume}`);
        staged.delete(volume);
      },
    },
    block: {
      globalMapPath: (spec) => `${NODE_ROOT}/plugins/example.com/volumeDevices/${specName(spec)}`,
      podDeviceMap: (spec, podUid) => ({
        directory: `${NODE_ROOT}/pods/${podUid}/volumeDevices/example.com~raw`,
        name: specName(spec),
      }),
      stagingPath: () => "",
      unmapPodDevice: async ({ podUid, specName: name, spec }: TearDownRequest) => {
        calls.push(`unmap ${name} of ${podUid}, ${spec === undefined ? "unknown" : "known"}`);
        fail("pod");
      },
      tearDownDevice: async ({ specName: name, spec }: TearDownDeviceRequest) => {
        calls.push(`tear down device ${name}, ${spec === undefined ? "unknown" : "known"}`);
        fail("device");
      },
    },
    attach: { waitForAttach: async ({ devicePath }) => devicePath },
    reconstruct: async () => undefined,
  };
  return { plugin, calls, staged, behaviour };
}

const FLEX = { source: { flexVolume: { driver: "example.com/raw" } } };
const VOLUME = "example.com/raw/pv-v";

describe("the journal", () => {
  test("killed amid a stage that left no trace: in use until the next agent has undone it", async () => {
    const { plugin, calls, staged, behaviour } = createRecordless();
    const world = await given({ plugins: [plugin], volumes: { v: FLEX }, attached: false, started: false });
    await world.setAttached(NODE, [VOLUME]);
    behaviour.hangsInMount = true;
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.start({ host });
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    expect(calls).toEqual([`stage ${VOLUME}`]);
    host.dieAt(0);
    world.abandon();
    await world.removePod("web");

    behaviour.hangsInMount = false;
    world.start();
    for (let ms = 0; ms < 400; ms += 20) {
      await world.runFor(20);
      if (staged.size > 0) expect(inUse(world), "staged, but not in use").toEqual([VOLUME]);
    }

    expect(calls).toContain(`unstage ${VOLUME}`);
    expect(staged.size).toBe(0);
    expect(inUse(world)).toEqual([]);
    expect(await world.machine.files.list(`${NODE_ROOT}/mooring/volumes`)).toEqual([]);
  });
});

describe("FIX 14: a device of a pod that nobody can make sense of", () => {
  async function givenLink(world: NodeWorld, podUid = "u9"): Promise<void> {
    const directory = `${NODE_ROOT}/pods/${podUid}/volumeDevices/example.com~raw`;
    await world.machine.files.makeDirectories(directory, 0o750);
    await world.machine.files.symlink("/dev/gone", `${directory}/pv-v`);
  }

  test("is let go as a device, then the step once a node is undone; it stays in use until then, however often it fails", async () => {
    const { plugin, calls, behaviour } = createRecordless();
    const world = await given({ plugins: [plugin], started: false });
    await givenLink(world);
    await world.setInUse(NODE, [VOLUME]);
    behaviour.failures = 2;

    world.start();
    await world.settle();
    expect(calls).toEqual(["unmap pv-v of u9, unknown"]);
    expect(inUse(world)).toEqual([VOLUME]);
    await world.runFor(500);
    await world.runFor(1_100);

    expect(calls).toEqual([
      "unmap pv-v of u9, unknown",
      "unmap pv-v of u9, unknown",
      "unmap pv-v of u9, unknown",
      "tear down device pv-v, unknown",
    ]);
    await world.runFor(1_000);
    expect(inUse(world)).toEqual([]);
    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
  });

  test("a device step that fails is tried again by itself, without the pod's", async () => {
    const { plugin, calls, behaviour } = createRecordless();
    const world = await given({ plugins: [plugin], started: false });
    await givenLink(world);
    behaviour.failures = 1;
    behaviour.failsIn = "device";

    world.start();
    await world.runFor(1_500);

    expect(calls).toEqual([
      "unmap pv-v of u9, unknown",
      "tear down device pv-v, unknown",
      "tear down device pv-v, unknown",
    ]);
    expect(world.manager.report().volumes).toEqual([]);
  });

  test("of a pod that is here and wants a volume of that name is left to it", async () => {
    const { plugin, calls } = createRecordless();
    const world = await given({
      plugins: [plugin],
      volumes: { v: { ...FLEX } },
      attached: false,
      pods: { web: { uses: ["v"] } },
      started: false,
    });
    await givenLink(world, world.uidOf("web"));

    world.start();
    await world.settle();

    expect(calls.filter((call) => call.startsWith("unmap"))).toEqual([]);
  });
});

function inUse(world: NodeWorld): readonly string[] {
  return world.volumesInUse(NODE);
}

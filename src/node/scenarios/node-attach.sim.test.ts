import { expect, test } from "vitest";
import { given, NODE_ROOT } from "../../sim/node-world.ts";
import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodePlugin } from "../plugin.ts";
import { PLAIN_TRAITS } from "../plugins/sources.ts";

/** `--enable-controller-attach-detach=false`: no controller is waited for, the node's own plugins attach. */

function createAttaching() {
  const calls: string[] = [];
  const failing = { attach: 0, detach: 0 };
  const step = (name: "attach" | "detach" | "stage" | "unstage", volume: string) => {
    calls.push(`${name} ${volume}`);
    if ((name === "attach" || name === "detach") && failing[name]-- > 0)
      throw new VolumeError("final", "not now");
  };
  const plugin: NodePlugin = {
    name: "example.com/disk",
    canSupport: (spec) =>
      spec.kind === "persistent" && spec.volume.spec?.flexVolume?.driver === "example.com/disk",
    volumeName: specName,
    traits: () => ({ ...PLAIN_TRAITS, attachable: "yes", deviceMountable: true }),
    metricName: () => "example.com/disk",
    mountPath: (spec, podUid) => `${NODE_ROOT}/pods/${podUid}/volumes/example.com~disk/${specName(spec)}`,
    setUp: async () => ({ readOnly: false, managed: true, selinuxRelabel: true }),
    tearDown: async () => undefined,
    device: {
      mountPath: (spec) => `${NODE_ROOT}/plugins/example.com/disk/${specName(spec)}`,
      mount: async ({ spec, devicePath }) => step("stage", `${specName(spec)} ${devicePath}`),
      unmount: async ({ deviceMountPath }) => step("unstage", deviceMountPath.split("/").at(-1) ?? ""),
    },
    attach: {
      waitForAttach: async ({ devicePath }) => devicePath,
      attach: async ({ spec }) => {
        step("attach", specName(spec));
        return "/dev/disk";
      },
      detach: async ({ spec }) => step("detach", specName(spec)),
    },
    reconstruct: async () => undefined,
  };
  return { plugin, calls, failing };
}

const FLEX = { source: { flexVolume: { driver: "example.com/disk" } } };

async function world() {
  const attaching = createAttaching();
  const sketch = {
    plugins: [attaching.plugin],
    volumes: { v: FLEX },
    attached: false,
    controllerAttaches: false,
  };
  return { ...attaching, world: await given(sketch) };
}

test("attached, staged, unstaged and detached by the node, in that order; no controller is asked", async () => {
  const { world: here, calls } = await world();

  await here.startPod("web", { uses: ["v"] });
  await here.settle();
  expect(calls).toEqual(["attach pv-v", "stage pv-v /dev/disk"]);
  expect(here.told()).toContain('SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv-v" ');
  await here.removePod("web");
  await here.settle();

  expect(calls).toEqual(["attach pv-v", "stage pv-v /dev/disk", "unstage pv-v", "detach pv-v"]);
  expect(here.manager.report().volumes).toEqual([]);
});

test("what fails is told, tried again, and in use until it is detached", async () => {
  const { world: here, calls, failing } = await world();
  failing.attach = 1;
  failing.detach = 1;

  await here.startPod("web", { uses: ["v"] });
  await here.runFor(2_000);
  expect(here.told()).toContain('FailedAttachVolume AttachVolume.Attach failed for volume "pv-v" : not now');
  await here.removePod("web");
  await here.runFor(300);
  expect(calls.at(-1)).toBe("detach pv-v");
  expect(here.inUse()).toEqual(["example.com/disk/pv-v"]);
  await here.runFor(2_000);

  expect(calls.filter((call) => call.startsWith("detach"))).toHaveLength(2);
  expect(here.inUse()).toEqual([]);
});

test("after a restart what the node attached is detached once its pod has gone", async () => {
  const { world: here, calls } = await world();
  await here.startPod("web", { uses: ["v"] });
  await here.settle();
  await here.stop();
  await here.removePod("web");

  here.start();
  await here.runFor(1_000);

  expect(calls.slice(-2)).toEqual(["unstage pv-v", "detach pv-v"]);
});

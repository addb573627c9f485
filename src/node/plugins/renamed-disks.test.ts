import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import type { Host } from "../host.ts";
import { createPaths } from "../paths.ts";
import type { NodePlugin } from "../plugin.ts";
import { createFcPlugin } from "./fc.ts";
import { createFlexVolumePlugin } from "./flex-volume.ts";
import { createIscsiPlugin } from "./iscsi.ts";
import { createLocalPlugin } from "./local.ts";
import {
  createStage,
  persistent,
  pod,
  POD_UID,
  ROOT,
  setUpOf,
  signal,
  tearDownOf,
} from "./plugins.testing.ts";
import { createSan, IQN, OURS, WWN, type San } from "./san.testing.ts";

/**
 * Names of disks are those of one boot. The machine dies at every change that a volume's life makes on it, comes back
 * with every name given to another disk, and the agent is told the paths of before, as an old journal or an old node
 * status would tell them. Whatever it does then, it does to the volume's own disk or not at all.
 */
interface Kind {
  readonly name: string;
  readonly spec: (mode: "Filesystem" | "Block") => VolumeSpec;
  readonly plugin: (host: Host, stage: Stage, san: San) => NodePlugin;
  readonly joined?: boolean;
  readonly overIscsi?: boolean;
  readonly block?: boolean;
  /** Which disk it is, only the driver knows; a path of before can be told from it once the volume was mounted. */
  readonly byRecord?: boolean;
}
type Stage = ReturnType<typeof createStage>;

const fc = (host: Host, stage: Stage) => createFcPlugin({ ...stage.deps, host });
const iscsi = (host: Host, stage: Stage) => createIscsiPlugin({ ...stage.deps, host });
const fcTarget = (volumeMode: "Filesystem" | "Block") =>
  persistent({ fc: { targetWWNs: [WWN], lun: 0 }, volumeMode });
const fcDisk = (volumeMode: "Filesystem" | "Block") => persistent({ fc: { wwids: [OURS] }, volumeMode });
const lun = (volumeMode: "Filesystem" | "Block") =>
  persistent({ iscsi: { targetPortal: "10.0.0.1", iqn: IQN, lun: 7 }, volumeMode });

const KINDS: readonly Kind[] = [
  { name: "fc by its target", spec: fcTarget, plugin: fc },
  { name: "fc by its own name", spec: fcDisk, plugin: fc },
  { name: "fc, several ways", spec: fcTarget, plugin: fc, joined: true },
  { name: "fc by its own name, several ways", spec: fcDisk, plugin: fc, joined: true },
  { name: "fc, raw block", spec: fcTarget, plugin: fc, block: true },
  { name: "fc, several ways, raw block", spec: fcDisk, plugin: fc, joined: true, block: true },
  { name: "iscsi", spec: lun, plugin: iscsi, overIscsi: true },
  { name: "iscsi, several ways", spec: lun, plugin: iscsi, overIscsi: true, joined: true },
  { name: "iscsi, raw block", spec: lun, plugin: iscsi, overIscsi: true, block: true },
  {
    name: "local disk by a name that stays",
    spec: () => persistent({ local: { path: `/dev/disk/by-id/scsi-${OURS}`, fsType: "ext4" } }),
    plugin: (host, stage) => createLocalPlugin({ ...stage.deps, host }),
  },
  {
    name: "flexvolume whose driver finds the disk",
    byRecord: true,
    spec: () => persistent({ flexVolume: { driver: "x/y", fsType: "ext4" } }),
    plugin: (host, stage, san) =>
      createFlexVolumePlugin(
        {
          ...stage.deps,
          host,
          call: async ({ verb }) =>
            verb === "waitforattach" ? { kind: "success", device: san.ourName() } : { kind: "not-supported" },
        },
        {
          driver: "x/y",
          can: {
            attach: true,
            selinuxRelabel: false,
            supportsMetrics: false,
            fsGroup: false,
            requiresFsResize: true,
          },
        },
      ),
  },
];

interface Life {
  readonly plugin: NodePlugin;
  readonly spec: VolumeSpec;
  readonly block: boolean;
  /** What the agent is told of the device: where it was found last, in whatever boot. */
  devicePath: string;
}

const common = { volume: "v" as never, signal };

async function stage(life: Life, { attach }: { readonly attach: boolean }): Promise<void> {
  const { plugin, spec, block } = life;
  if (attach && plugin.attach)
    life.devicePath = await plugin.attach.waitForAttach({
      ...setUpOf(spec),
      devicePath: life.devicePath,
      timeoutMs: 1,
    });
  if (block) {
    const { devicePath } = life;
    const device = (await plugin.block?.mapPodDevice?.({ ...setUpOf(spec), devicePath })) ?? devicePath;
    life.devicePath ||= device;
    return;
  }
  const deviceMountPath = plugin.device?.mountPath(spec) ?? "";
  const request = {
    ...common,
    spec,
    pod: pod(),
    devicePath: life.devicePath,
    deviceMountPath,
    mayBeThere: false,
  };
  await plugin.device?.mount(request);
  await plugin.setUp(setUpOf(spec, { deviceMountPath }));
  const volumePath = plugin.mountPath(spec, POD_UID);
  await plugin.expand?.({
    ...common,
    ...life,
    volumePath,
    stagingPath: deviceMountPath,
    newSizeBytes: 2,
    oldSizeBytes: 1,
  });
}

async function release({ plugin, spec, block, devicePath }: Life): Promise<void> {
  if (block) {
    const globalMapPath = plugin.block?.globalMapPath(spec) ?? "";
    await plugin.block?.tearDownDevice?.({ ...common, spec, specName: "pv1", globalMapPath, devicePath });
    return;
  }
  await plugin.tearDown(tearDownOf(spec));
  await plugin.device?.unmount({
    ...common,
    spec,
    devicePath,
    deviceMountPath: plugin.device.mountPath(spec),
  });
}

/** What the next agent is asked first. */
const RECOVERIES = {
  "the pod is gone": (life: Life) => release(life),
  "the pod is still there": (life: Life) => stage(life, { attach: true }).then(() => release(life)),
  "mounted with the path of before": (life: Life) => stage(life, { attach: false }),
} as const;

let cases = 0;

async function oneCase(
  kind: Kind,
  recovery: (life: Life) => Promise<void>,
  dieAt: number | undefined,
  when: "before" | "after",
): Promise<number> {
  const bench = createStage();
  const san = await createSan(bench.machine, {
    joined: kind.joined ?? false,
    overIscsi: kind.overIscsi ?? false,
  });
  const first = createFaultyNodeHost(san.host, { clock: bench.clock });
  if (dieAt !== undefined) first.dieAt(dieAt, when);
  const block = kind.block ?? false;
  const spec = kind.spec(block ? "Block" : "Filesystem");
  const life: Life = { plugin: kind.plugin(first, bench, san), spec, block, devicePath: "" };
  const lived = stage(life, { attach: true }).then(() => release(life));
  lived.catch(() => undefined);
  await bench.scheduler.runFor(1_000);
  if (dieAt === undefined) await lived;
  const staleName = life.devicePath || san.ourName();
  const recorded = (await bench.machine.files.list(join(createPaths(ROOT).journal, "disks"))) ?? [];
  if (kind.byRecord && recorded.length === 0 && recovery === RECOVERIES["mounted with the path of before"])
    return first.changes;

  await san.reboot();
  const next = { ...life, plugin: kind.plugin(san.host, bench, san), devicePath: staleName };
  const recovered = recovery(next).then(
    () => "done",
    (error: unknown) => (error as Error).message,
  );
  await bench.scheduler.runFor(60_000);
  const outcome = await recovered;

  cases++;
  const where = `${kind.name}, died ${when} change ${String(dieAt)}: ${outcome}`;
  expect(
    [...san.touched].filter((wwid) => wwid !== OURS),
    where,
  ).toEqual([]);
  expect(await san.othersAreWhole(), where).toBe(true);
  return first.changes;
}

describe.each(KINDS)("$name", (kind) => {
  for (const [what, recovery] of Object.entries(RECOVERIES))
    test(`${what}: whatever step the reboot came at, no other disk is formatted, mounted, flushed or removed`, async () => {
      const changes = await oneCase(kind, recovery, undefined, "before");
      expect(changes).toBeGreaterThan(2);
      for (let at = 0; at < changes; at++)
        for (const when of ["before", "after"] as const) await oneCase(kind, recovery, at, when);
    });
});

afterAll(() => void process.stdout.write(`renamed disks: ${cases} cases\n`));

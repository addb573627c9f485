import { join } from "node:path";
import { withEither } from "../../base/signals.ts";
import { specName } from "../../volumes/spec.ts";
import { deviceStepFailed, holdOf, podStepFailed, removeMount, setMount, stageAs } from "../actual.ts";
import { tellPod, type Context } from "../context.ts";
import { VolumeError } from "../errors.ts";
import { expandDuringMount } from "./expand.ts";
import { check, refuseUnstaged, telling, waitForAttach } from "./mount.ts";
import { begin, failureOf, refuseUnwanted } from "./operation.ts";
import { hasDriver } from "../late-calls.ts";
import type { FileStat } from "../host.ts";
import type { BlockSteps } from "../plugin.ts";
import { removeUnbound } from "../unbound-files.ts";
import { refuseOpenDevice } from "./unmount.ts";
import type { Held, PodMount, VolumeState, Want } from "../world.ts";

/** Raw block volumes: the same four steps, with a device file where a file system has a directory. */

const { reason: FAILED } = { reason: "FailedMapVolume" } as const;

export function startMapDevice(context: Context, volume: VolumeState, want: Want): void {
  const pods = [...volume.wants.keys()];
  begin(context, volume, { operation: "map_device", exclusive: true, pods }, async (signal, unwanted) => {
    const held = holdOf(volume);
    const block = blockOf(volume);
    await telling(context, want, "MapVolume.NodeAffinity check failed", () => check(context, want));
    await telling(
      context,
      want,
      "MapVolume.WaitForAttach failed",
      () => withEither([signal, unwanted], (either) => waitForAttach(volume, want, { held, signal: either })),
      FAILED,
    );
    refuseUnwanted(unwanted);
    await telling(
      context,
      want,
      "MapVolume.SetUpDevice failed",
      () => setUpDevice(context, volume, { want, held, block, signal }),
      FAILED,
    );
  });
}

interface MapStep {
  readonly want: Want;
  readonly held: Held;
  readonly block: BlockSteps;
  readonly signal: AbortSignal;
}

async function setUpDevice(
  context: Context,
  volume: VolumeState,
  { want, held, block, signal }: MapStep,
): Promise<void> {
  const { podUid, spec, pod } = want;
  stageAs(held, spec);
  held.deviceMountPath = block.globalMapPath(spec);
  await context.journal.intend(volume, { device: true, podUid });
  try {
    signal.throwIfAborted();
    const { devicePath } = held;
    const mayBeThere = held.reconstructed || held.device === "uncertain";
    await block.setUpDevice?.({ volume: volume.name, spec, pod, podUid, devicePath, mayBeThere, signal });
    held.device = "mounted";
  } catch (thrown) {
    const error = failureOf(thrown, signal);
    deviceStepFailed(held, error);
    throw error;
  }
}

export function startMap(context: Context, volume: VolumeState, want: Want): void {
  const { podUid } = want;
  begin(
    context,
    volume,
    { operation: "map_volume", podUid, exclusive: true, pods: [podUid] },
    async (signal, unwanted) => {
      const held = holdOf(volume);
      const block = blockOf(volume);
      const step: MapStep = { want, held, block, signal };
      if (held.device !== "mounted") {
        await telling(context, want, "MapVolume.NodeAffinity check failed", () => check(context, want));
        await telling(
          context,
          want,
          "MapVolume.WaitForAttach failed",
          () =>
            withEither([signal, unwanted], (either) => waitForAttach(volume, want, { held, signal: either })),
          FAILED,
        );
        stageAs(held, want.spec);
        held.deviceMountPath = block.globalMapPath(want.spec);
      }
      refuseUnwanted(unwanted);
      await context.journal.intend(volume, { device: true, podUid });
      held.device = "mounted";
      await telling(
        context,
        want,
        "MapVolume.MapPodDevice failed",
        () => mapForPod(context, volume, step),
        FAILED,
      );
      const path = held.mounts.get(podUid)?.path ?? "";
      await telling(
        context,
        want,
        "MapVolume.MarkVolumeAsMounted failed while expanding volume",
        () => expandDuringMount(context, volume, { want, held, path, signal }),
        FAILED,
      );
      setMount(context.world, volume, { podUid, spec: want.spec, path, state: "mounted" });
      context.measure.mounted(volume.plugin.metricName(want.spec), context.clock.now() - want.sinceMs);
    },
  );
}

/** From the first step on, whatever fails leaves the mapping uncertain: a part of it may be there. */
async function mapForPod(
  context: Context,
  volume: VolumeState,
  { want, held, block, signal }: MapStep,
): Promise<void> {
  const { podUid, spec, pod } = want;
  const { directory, name } = block.podDeviceMap(spec, podUid);
  const link = join(directory, name);
  const before = held.mounts.get(podUid);
  let device = held.devicePath;
  try {
    signal.throwIfAborted();
    if (before?.state !== "mounted") await refuseUnstaged(volume, block.isUnstaged?.(spec, signal));
    if (block.mapPodDevice)
      device = await block.mapPodDevice({
        volume: volume.name,
        spec,
        pod,
        podUid,
        devicePath: device,
        mayBeThere: before?.state === "uncertain",
        signal,
      });
  } catch (thrown) {
    const error = failureOf(thrown, signal);
    podStepFailed(context.world, volume, { podUid, spec, path: link, error });
    throw error;
  }
  setMount(context.world, volume, { podUid, spec, path: link, state: "uncertain" });
  await linkDevice(context, { device, link, directory, bound: join(block.globalMapPath(spec), podUid) });
  held.devicePath ||= device;
  for (const [what, path] of [
    ["globalMapPath", block.globalMapPath(spec)],
    ["volumeMapPath", directory],
  ] as const) {
    const message = `MapVolume.MapPodDevice succeeded for volume "${specName(spec)}" ${what} "${path}"`;
    tellPod(context, pod, { type: "Normal", reason: "SuccessfulMountVolume", message });
  }
}

/** The device, bound below the plugin's directory, linked for the pod, and held by a loop device so that it stays. */
async function linkDevice(
  { host }: Context,
  { device, link, directory, bound }: { device: string; link: string; directory: string; bound: string },
): Promise<void> {
  if (device === "") throw new VolumeError("uncertain", "device path of the volume is empty");
  const real = await host.files.realPath(device);
  if (real === undefined) throw new VolumeError("uncertain", `the device ${device} is not there`);
  await bindDevice(host, real, bound);
  await host.files.makeDirectories(directory, 0o750);
  const old = await host.files.readLink(link);
  if (old !== real) {
    await host.files.removeFile(link);
    await host.files.symlink(real, link);
  }
  await host.devices.attachLoop(bound);
}

/** What is bound there may be a device of before a reboot, or of an earlier publish. */
async function bindDevice(host: Context["host"], real: string, bound: string): Promise<void> {
  await host.files.makeDirectories(join(bound, ".."), 0o750);
  if (await host.mounts.isMountPoint(bound)) {
    if (sameDevice(await host.files.stat(bound), await host.files.statTarget(real))) return;
    await host.devices.detachLoop(bound);
    await host.mounts.cleanUp(bound);
  }
  await host.files.makeFile(bound, 0o640);
  await host.mounts.bind(real, bound, []);
}

function sameDevice(one: FileStat | undefined, other: FileStat | undefined): boolean {
  if (!one || !other) return false;
  return one.deviceNumber === undefined
    ? one.identity === other.identity
    : one.deviceNumber === other.deviceNumber;
}

export function startUnmap(context: Context, volume: VolumeState, mount: PodMount): void {
  const { podUid, specName: name, spec } = mount;
  begin(
    context,
    volume,
    { operation: "unmap_volume", podUid, exclusive: false, pods: [podUid] },
    async (signal) => {
      const { host, world } = context;
      const block = blockOf(volume);
      if (hasDriver(volume)) await context.journal.settle(volume);
      mount.state = "uncertain";
      const bound = join(block.globalMapPath(spec), podUid);
      const map = block.podDeviceMap(spec, podUid);
      await host.devices.detachLoop(bound);
      await host.files.removeFile(join(map.directory, map.name));
      await host.mounts.cleanUp(bound);
      const known = volume.held?.unknown ? undefined : spec;
      await block.unmapPodDevice?.({ volume: volume.name, podUid, specName: name, spec: known, signal });
      removeMount(world, volume, podUid);
    },
  );
}

export function startUnmapDevice(context: Context, volume: VolumeState): void {
  begin(context, volume, { operation: "unmap_device", exclusive: true, pods: [] }, async (signal) => {
    const { host } = context;
    const held = holdOf(volume);
    const block = blockOf(volume);
    const globalMapPath = held.deviceMountPath || block.globalMapPath(held.spec);
    const left = await removeUnbound(host, globalMapPath);
    if (left.length > 0)
      throw new VolumeError(
        "transient",
        `the device "${globalMapPath}" is still referenced from other Pods [${left.join(" ")}]`,
      );
    if (hasDriver(volume)) await context.journal.settle(volume);
    held.device = "uncertain";
    await block.tearDownDevice?.({
      volume: volume.name,
      spec: held.unknown ? undefined : held.spec,
      specName: specName(held.spec),
      globalMapPath,
      devicePath: held.devicePath,
      signal,
    });
    await host.files.removeTree(globalMapPath);
    await refuseOpenDevice(context, held);
    held.device = "not-mounted";
  });
}

function blockOf({ plugin }: VolumeState): BlockSteps {
  if (plugin.block) return plugin.block;
  throw new VolumeError("final", `plugin ${plugin.name} has no raw block volumes`);
}

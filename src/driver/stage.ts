import type { NodeStageVolumeRequest, NodeUnstageVolumeRequest } from "../csi/gen/csi_pb.ts";
import { CsiError } from "../csi/errors.ts";
import { CONTEXT_VOLUME } from "./attachments.ts";
import { readyVolume, type Context } from "./context.ts";
import {
  boundDevices,
  detachVerified,
  deviceOf,
  isDeviceOf,
  isMounted,
  leftDeviceOf,
  mountsAt,
  unmountOurs,
  usingDevice,
} from "./devices.ts";
import { alreadyExists, failedPrecondition, quoted, toAnswer } from "./errors.ts";
import { isSmaller, noteFormatted, prepareFilesystem } from "./filesystem.ts";
import { HostError, type LoopDevice } from "./host.ts";
import { samePlace, toPath } from "./paths.ts";
import { ID, LETTING_GO, type Attachment, type NodeRecord, type VolumeRecord } from "./records.ts";
import { checkLeft } from "./released.ts";
import { dropSpares } from "./spares.ts";
import { checkPresent, isReaderOnly, sameCapability, toCapability, type Capability } from "./validate.ts";

/** NodeStageVolume and NodeUnstageVolume: an image becomes a device, and a device a filesystem at the staging path. */

export async function stageVolume(context: Context, request: NodeStageVolumeRequest): Promise<void> {
  const { volumeId, publishContext } = request;
  checkPresent(volumeId, "volume_id");
  const path = toPath(request.stagingTargetPath, "staging_target_path");
  const capability = toCapability(request.volumeCapability);
  await context.locks.hold([{ key: `volume/${volumeId}` }], async () => {
    const volume = await readyVolume(context, volumeId);
    const attachment = checkAttached(context, volume, publishContext);
    if (capability.accessType !== volume.accessType) {
      throw failedPrecondition(`volume ${volumeId} is a ${volume.accessType} volume`);
    }
    const existing = context.staged.get(volumeId);
    if (existing !== undefined) await checkSame(context, existing, path, capability);
    if (existing?.phase === "staged" && (await isStaged(context, existing))) return;
    await checkDirectory(context, path);
    const record: NodeRecord = {
      id: volumeId,
      nodeId: context.settings.nodeId,
      targets: existing?.targets ?? [],
      phase: "staging",
      stagingPath: path,
      capability,
    };
    await makeStaged(context, {
      volume,
      record,
      readonly: (attachment?.readonly ?? false) || isReaderOnly(capability),
    });
  });
}

function checkAttached(
  { settings }: Context,
  volume: VolumeRecord,
  publishContext: Readonly<Record<string, string>>,
): Attachment | undefined {
  if (!settings.attach) return undefined;
  const attachment = volume.attachments.find(({ nodeId }) => nodeId === settings.nodeId);
  if (attachment === undefined) {
    throw failedPrecondition(
      `volume ${volume.id} is not attached to node ${quoted(settings.nodeId)}; publish it first`,
    );
  }
  const named = publishContext[CONTEXT_VOLUME];
  if (named !== undefined && named !== volume.id) {
    throw failedPrecondition(
      `the publish context names ${quoted(named)}, not volume ${volume.id}: a wrong device`,
    );
  }
  return attachment;
}

async function checkSame(
  context: Context,
  existing: NodeRecord,
  path: string,
  capability: Capability,
): Promise<void> {
  if (!(await isStagedAt(context, existing, path))) {
    throw failedPrecondition(`volume ${existing.id} is staged at another path; unstage it there first`);
  }
  if (!sameCapability(existing.capability, capability) && existing.adopted !== true) {
    throw alreadyExists(`volume ${existing.id} is staged there with another capability`);
  }
}

async function checkDirectory({ host }: Context, path: string): Promise<void> {
  const resolved = await host.files.resolve(path);
  const found = resolved === undefined ? undefined : await host.files.stat(resolved);
  if (found?.kind === "directory") return;
  throw failedPrecondition(
    found === undefined
      ? "staging_target_path does not exist; the orchestrator makes it"
      : `staging_target_path is a ${found.kind}, not a directory`,
  );
}

/** As the kernel sees it: records outlive a reboot, mounts do not. */
export async function isStaged(context: Context, record: NodeRecord): Promise<boolean> {
  const device = await deviceOf(context, context.paths.volumeImage(record.id));
  if (device === undefined || device.autoclear || !isDeviceOf(record, device)) return false;
  if (record.capability.accessType === "block") return true;
  return (await isMounted(context, record.stagingPath, device)) !== undefined;
}

/**
 * A record outlives a reboot, what it tells of does not. Once its last target is gone too, nothing is staged: whoever detaches
 * the volume from this node need not wait for an unstage, which nobody sends while the next pod here waits for that detach.
 */
export async function forgetUnlessStaged(context: Context, id: string): Promise<void> {
  const record = context.staged.get(id);
  if (record?.phase !== "staged" || record.targets.length > 0) return;
  const device = await leftDeviceOf(context, context.paths.volumeImage(id));
  if (device !== undefined) {
    if (record.capability.accessType === "block") return;
    if ((await isMounted(context, record.stagingPath, device)) !== undefined) return;
  }
  await tearDown(context, record);
  context.log.info("no longer staged: the machine was restarted", { volume: id, path: record.stagingPath });
}

interface Staging {
  readonly volume: VolumeRecord;
  readonly record: NodeRecord;
  readonly readonly: boolean;
}

async function makeStaged(context: Context, staging: Staging): Promise<void> {
  const { staged, log } = context;
  const { volume, record } = staging;
  try {
    await staged.put(record);
    if (volume.filesystem?.phase === "formatting") await detachLeftover(context, volume);
    const device = await attachDevice(context, staging);
    const { path, diskseq, backing } = device;
    await usingDevice(context, device, async () => {
      await fitDevice(context, volume, device);
      if (record.capability.accessType === "mount") await mountStaging(context, staging, device);
    });
    await staged.put({ ...record, phase: "staged", device: { path, diskseq, backing } });
  } catch (error) {
    await undo(context, record, error);
  }
  log.info("volume staged", { volume: volume.id, path: record.stagingPath });
}

/** An mkfs outlives the driver that began it: while it has the device open this fails, and no second one is started. */
async function detachLeftover(context: Context, { id }: VolumeRecord): Promise<void> {
  const device = await deviceOf(context, context.paths.volumeImage(id));
  if (device !== undefined) await detachVerified(context, device);
}

/** A final code may only leave when nothing is left behind; otherwise the caller has to come again. */
async function undo(context: Context, record: NodeRecord, error: unknown): Promise<never> {
  const doing = `stage volume ${record.id}`;
  try {
    await tearDown(context, record);
  } catch (second) {
    const why = toAnswer(second, "roll back").detail;
    throw new CsiError("ABORTED", `${toAnswer(error, doing).detail}; and could not be undone yet: ${why}`, {
      cause: error,
    });
  }
  throw toAnswer(error, doing);
}

async function attachDevice(context: Context, { volume, record, readonly }: Staging): Promise<LoopDevice> {
  // A filesystem may have a journal to replay even for a read-only mount, so only raw devices are attached read-only.
  return context.host.loops.attach(context.paths.volumeImage(volume.id), {
    readonly: readonly && record.capability.accessType === "block",
    avoid: await boundDevices(context),
  });
}

async function fitDevice({ host }: Context, volume: VolumeRecord, { path }: LoopDevice): Promise<void> {
  if ((await host.loops.sizeBytes(path)) < volume.sizeBytes) await host.loops.refresh(path);
}

async function mountStaging(
  context: Context,
  { volume, record, readonly }: Staging,
  device: LoopDevice,
): Promise<void> {
  const { host } = context;
  if (await isMounted(context, record.stagingPath, device)) return;
  const path = await host.files.resolve(record.stagingPath);
  if (path === undefined) throw failedPrecondition("the directory above staging_target_path does not exist");
  const { type, isRecorded } = await prepareFilesystem(context, {
    volume,
    device,
    capability: record.capability,
  });
  await host.mounts.mount(device.path, path, type, [
    ...record.capability.mountFlags,
    ...(readonly ? ["ro"] : []),
    ...(type === "ext4" ? ["errors=remount-ro"] : ["nouuid"]),
  ]);
  if ((await isMounted(context, record.stagingPath, device)) === undefined)
    throw new HostError(
      "Failed",
      `mount reported success, but ${device.path} is not mounted at the staging path`,
    );
  if (!isRecorded) await noteFormatted(context, volume, type);
  const grows = type === "xfs" && !readonly && (await isSmaller(context, device, type));
  if (grows) await host.filesystems.grow(device.path, type, path);
}

export async function unstageVolume(context: Context, request: NodeUnstageVolumeRequest): Promise<void> {
  const { volumeId } = request;
  checkPresent(volumeId, "volume_id");
  const path = toPath(request.stagingTargetPath, "staging_target_path");
  if (!ID.test(volumeId)) return checkLeft(context, volumeId, path);
  await context.locks.hold([{ key: `volume/${volumeId}` }], async () => {
    const record = context.staged.get(volumeId);
    if (record === undefined || !(await isStagedAt(context, record, path)))
      return checkLeft(context, volumeId, path);
    if (record.targets.length > 0) {
      throw failedPrecondition(`volume ${volumeId} is still published at ${record.targets.length} paths`);
    }
    try {
      const unstaging: NodeRecord = { ...record, phase: "unstaging" };
      await context.staged.put(unstaging, LETTING_GO);
      await tearDown(context, unstaging);
    } catch (error) {
      throw toAnswer(error, `unstage volume ${volumeId}`);
    }
    await checkLeft(context, volumeId, path);
    context.log.info("volume unstaged", { volume: volumeId, path });
  });
}

/** Where an adopted raw device was staged nobody knows: nothing is mounted there. */
async function isStagedAt(
  context: Context,
  { stagingPath, adopted }: NodeRecord,
  path: string,
): Promise<boolean> {
  if (stagingPath === "") return adopted === true;
  return (await samePlace(context, [stagingPath], path)) !== undefined;
}

/** The kernel's number of the loop driver, for ever. */
const LOOP_MAJOR = "7:";

/** No device of the volume was found, and yet a loop device is mounted at its place: one of the two is not true. */
async function refuseUnknownMount(context: Context, path: string): Promise<void> {
  const top = (await mountsAt(context, path)).at(-1);
  if (top === undefined || !top.deviceNumber.startsWith(LOOP_MAJOR)) return;
  throw new HostError(
    "Busy",
    `device ${top.deviceNumber} is mounted at the staging path, and is not known as the volume's; it is left there`,
  );
}

/** Mount, device, then record: cut off anywhere, it can be called again. */
export async function tearDown(context: Context, record: NodeRecord): Promise<void> {
  const { host, paths, settings, staged } = context;
  const image = paths.volumeImage(record.id);
  const device = await leftDeviceOf(context, image);
  if (device !== undefined) {
    // A controller that died in the middle of a snapshot leaves it frozen. Unmounted like that it would hold its device
    // for ever, and no path would be left to thaw it by.
    if (await isMounted(context, record.stagingPath, device)) await host.mounts.thaw(record.stagingPath);
    await unmountOurs(context, record.stagingPath, (top) => top.deviceNumber === device.deviceNumber);
    const others = (await context.stagedAnywhere(record.id)).filter(
      ({ nodeId }) => nodeId !== settings.nodeId,
    );
    if (others.length === 0) {
      // One that an unpublish did not see would hold it.
      await dropSpares(context, record, device);
      await detachVerified(context, device);
    }
  } else await refuseUnknownMount(context, record.stagingPath);
  // Targets outlive a failed repair: they still have to be unpublished.
  if (record.targets.length > 0) await staged.put({ ...record, phase: "staged" }, LETTING_GO);
  else await staged.remove(record.id);
}

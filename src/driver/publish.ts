import type { NodePublishVolumeRequest, NodeUnpublishVolumeRequest } from "../csi/gen/csi_pb.ts";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { CsiError } from "../csi/errors.ts";
import { readyVolume, type Context } from "./context.ts";
import {
  boundDevice,
  boundDevices,
  deviceOf,
  isDeviceNode,
  isMounted,
  keepDevice,
  leftDeviceOf,
  mountsAt,
  readonlyDeviceOf,
  unmountOurs,
  usingDevice,
} from "./devices.ts";
import { alreadyExists, failedPrecondition, invalid, toAnswer } from "./errors.ts";
import { HostError, type LoopDevice, type Mount } from "./host.ts";
import { samePlace, toPath } from "./paths.ts";
import { ID, LETTING_GO, type NodeRecord, type Target } from "./records.ts";
import { checkLeft } from "./released.ts";
import { dropSpares } from "./spares.ts";
import { forgetUnlessStaged, isStaged } from "./stage.ts";
import { checkPresent, isReaderOnly, sameCapability, toCapability, type Capability } from "./validate.ts";

/** NodePublishVolume and NodeUnpublishVolume: what is staged appears in a workload, and goes again. */

export async function publishVolume(context: Context, request: NodePublishVolumeRequest): Promise<void> {
  const { volumeId } = request;
  checkPresent(volumeId, "volume_id");
  const targetPath = toPath(request.targetPath, "target_path");
  const capability = toCapability(request.volumeCapability);
  const stagingTargetPath =
    request.stagingTargetPath === "" ? "" : toPath(request.stagingTargetPath, "staging_target_path");
  await context.locks.hold([{ key: `volume/${volumeId}` }], async () => {
    const volume = await readyVolume(context, volumeId);
    const record = await checkStaged(context, volumeId, stagingTargetPath);
    if (capability.accessType !== volume.accessType) {
      throw failedPrecondition(`volume ${volumeId} is a ${volume.accessType} volume`);
    }
    const attachment = volume.attachments.find(({ nodeId }) => nodeId === context.settings.nodeId);
    const existing = await targetAt(context, record, targetPath);
    const path = existing?.path ?? targetPath;
    const target: Target = { path, phase: "publishing", readonly: request.readonly, capability };
    if (existing !== undefined) checkSame(volumeId, existing, target);
    else checkSingle(record, capability);
    const readonly = request.readonly || (attachment?.readonly ?? false) || isReaderOnly(capability);
    await publishTarget(context, record, target, readonly);
  });
}

async function checkStaged(context: Context, volumeId: string, stagingPath: string): Promise<NodeRecord> {
  if (stagingPath === "")
    throw failedPrecondition("staging_target_path is missing; this driver stages volumes first");
  const record = context.staged.get(volumeId);
  if (
    record?.phase !== "staged" ||
    (await samePlace(context, [record.stagingPath], stagingPath)) === undefined
  ) {
    throw failedPrecondition(`volume ${volumeId} is not staged at this path`);
  }
  try {
    await keepDevice(context, record);
  } catch (error) {
    throw toAnswer(error, `publish volume ${volumeId}`);
  }
  // An empty directory must never be handed out as if it were the volume.
  if (!(await isStaged(context, record))) {
    throw failedPrecondition(`the staging mount of volume ${volumeId} is gone; stage it again`);
  }
  return record;
}

export async function targetAt(
  context: Context,
  record: NodeRecord,
  path: string | undefined,
): Promise<Target | undefined> {
  const { targets } = record;
  const known = await samePlace(
    context,
    targets.map((target) => target.path),
    path,
  );
  return targets.find((target) => target.path === known);
}

function checkSame(volumeId: string, existing: Target, wanted: Target): void {
  if (existing.readonly === wanted.readonly && sameCapability(existing.capability, wanted.capability)) return;
  throw alreadyExists(`volume ${volumeId} is published there with other arguments`);
}

const ONE_WRITER: number = Mode.SINGLE_NODE_SINGLE_WRITER;

/** SINGLE_NODE_SINGLE_WRITER means one target; the other single-node modes may have several, as kubelet does it. */
function checkSingle({ id, targets }: NodeRecord, capability: Capability): void {
  const single = [capability, ...targets.map((target) => target.capability)].some(
    ({ mode }) => mode === ONE_WRITER,
  );
  if (single && targets.length > 0) {
    throw failedPrecondition(`volume ${id} is published at another path and allows one writer only`);
  }
}

async function publishTarget(
  context: Context,
  record: NodeRecord,
  target: Target,
  readonly: boolean,
): Promise<void> {
  const device = await deviceOf(context, context.paths.volumeImage(record.id));
  if (device === undefined)
    throw failedPrecondition(`the device of volume ${record.id} is gone; stage it again`);
  const existing = record.targets.find(({ path }) => path === target.path);
  if (existing?.phase === "published" && (await isPublished(context, target, device))) return;
  if (existing !== undefined) await clearTarget(context, record, existing);
  const path = await checkTarget(context, target);
  const publishing = withTarget(record, target);
  await noteIntent(context, publishing);
  try {
    if (target.capability.accessType === "mount")
      await bindMount(context, { record, target, path, readonly });
    else await usingDevice(context, device, () => bindDevice(context, { path, device, readonly }));
    if (!(await isPublished(context, target, device)))
      throw new HostError("Failed", "mount reported success, but nothing of the volume is at target_path");
    await context.staged.put(withTarget(record, { ...target, phase: "published" }));
  } catch (error) {
    await undo(context, publishing, target, error);
  }
  context.log.info("volume published", { volume: record.id, path: target.path, readonly });
}

/**
 * What an earlier try left at the target and could not take back then, or a device node whose device is gone and whose number is
 * nobody's or another's by now: ours to replace. It would stand in the way for ever. Its spare device is let go with the
 * unpublish: who holds that open keeps nobody from the volume.
 */
async function clearTarget(context: Context, record: NodeRecord, left: Target): Promise<void> {
  try {
    await takeOff(context, left, await leftDeviceOf(context, context.paths.volumeImage(record.id)));
  } catch (error) {
    throw toAnswer(error, `publish volume ${record.id}: clear its target`);
  }
}

/** Nothing was done yet, so there is nothing to undo: on a full disk undoing, which writes as well, could only fail. */
async function noteIntent({ staged }: Context, publishing: NodeRecord): Promise<void> {
  try {
    await staged.put(publishing);
  } catch (error) {
    throw toAnswer(error, `publish volume ${publishing.id}`);
  }
}

function withTarget(record: NodeRecord, target: Target): NodeRecord {
  return { ...record, targets: [...record.targets.filter(({ path }) => path !== target.path), target] };
}

export async function isPublished(context: Context, target: Target, device: LoopDevice): Promise<boolean> {
  if (target.capability.accessType === "mount")
    return (await isMounted(context, target.path, device)) !== undefined;
  return isDeviceNode(context, target.path, [device, await readonlyDeviceOf(context, device)]);
}

/** Nothing foreign may be at the target; a link there could lead anywhere. */
async function checkTarget(context: Context, { path, capability }: Target): Promise<string> {
  const resolved = await context.host.files.resolve(path);
  if (resolved === undefined) throw failedPrecondition("the directory above target_path does not exist");
  // Not by `path`: with a slash at its end a link would be followed.
  const found = await context.host.files.stat(resolved);
  if (found?.kind === "symlink") throw invalid("target_path is a symbolic link");
  if ((await mountsAt(context, path)).length > 0)
    throw failedPrecondition("something is mounted at target_path already");
  const wanted = capability.accessType === "mount" ? "directory" : "file";
  if (found !== undefined && found.kind !== wanted) {
    throw failedPrecondition(`target_path is a ${found.kind}, not a ${wanted}`);
  }
  return resolved;
}

/** Flags that a bind can have of its own, whatever the filesystem below was mounted with. */
const BIND_FLAGS = new Set(["noexec", "nosuid", "nodev", "noatime", "nodiratime", "relatime"]);

async function bindMount(
  context: Context,
  { record, target, path, readonly }: { record: NodeRecord; target: Target; path: string; readonly: boolean },
): Promise<void> {
  const { files, mounts } = context.host;
  const staging = (await files.resolve(record.stagingPath)) ?? record.stagingPath;
  await files.makeDirectory(path, 0o750);
  await mounts.bind(staging, path);
  const flags = target.capability.mountFlags.filter((flag) => BIND_FLAGS.has(flag));
  if (readonly) flags.push("ro");
  if (flags.length > 0) await mounts.remountBind(path, flags);
}

async function bindDevice(
  context: Context,
  { path, device, readonly }: { path: string; device: LoopDevice; readonly: boolean },
): Promise<void> {
  const { files, mounts, loops } = context.host;
  await files.makeFile(path);
  // A read-only bind does not stop writes to a device node; a read-only device on top of ours does.
  if (readonly && !device.readonly) {
    const spare =
      (await readonlyDeviceOf(context, device)) ??
      (await loops.attach(device.path, { readonly: true, avoid: await boundDevices(context) }));
    return usingDevice(context, spare, () => mounts.bind(spare.path, path));
  }
  await mounts.bind(device.path, path);
}

async function undo(context: Context, record: NodeRecord, target: Target, error: unknown): Promise<never> {
  const doing = `publish volume ${record.id}`;
  try {
    await removeTarget(context, record, target);
  } catch (second) {
    const why = toAnswer(second, "roll back").detail;
    throw new CsiError("ABORTED", `${toAnswer(error, doing).detail}; and could not be undone yet: ${why}`, {
      cause: error,
    });
  }
  throw toAnswer(error, doing);
}

export async function unpublishVolume(context: Context, request: NodeUnpublishVolumeRequest): Promise<void> {
  const { volumeId } = request;
  checkPresent(volumeId, "volume_id");
  const targetPath = toPath(request.targetPath, "target_path");
  // Not an id of ours: an ephemeral volume, whose turn comes next.
  if (!ID.test(volumeId)) return;
  await context.locks.hold([{ key: `volume/${volumeId}` }], async () => {
    const record = context.staged.get(volumeId);
    const target = record === undefined ? undefined : await targetAt(context, record, targetPath);
    if (record === undefined || target === undefined) return checkLeft(context, volumeId, targetPath);
    try {
      const going = withTarget(record, { ...target, phase: "unpublishing" });
      await context.staged.put(going, LETTING_GO);
      await removeTarget(context, going, target);
      await forgetUnlessStaged(context, volumeId);
    } catch (error) {
      throw toAnswer(error, `unpublish volume ${volumeId}`);
    }
    await checkLeft(context, volumeId, targetPath);
    context.log.info("volume unpublished", { volume: volumeId, path: targetPath });
  });
}

/** Mounts, entry, spare device, record: cut off anywhere, it can be called again. Nothing is removed recursively. */
export async function removeTarget(context: Context, record: NodeRecord, target: Target): Promise<void> {
  const device = await leftDeviceOf(context, context.paths.volumeImage(record.id));
  await takeOff(context, target, device);
  const left = { ...record, targets: record.targets.filter(({ path }) => path !== target.path) };
  if (device !== undefined) await dropSpares(context, left, device);
  await context.staged.put(left, LETTING_GO);
}

async function takeOff(context: Context, target: Target, device: LoopDevice | undefined): Promise<void> {
  await unmountOurs(context, target.path, (top) => isOurs(target, device, top));
  await removeEntry(context, target);
}

/**
 * Of what the record says we put there. A device node that is bound there is ours by that alone: its device may be gone
 * and its number another's by now, in which case it is taken off and never used.
 */
function isOurs({ capability }: Target, device: LoopDevice | undefined, top: Mount): boolean {
  if (capability.accessType === "block") return boundDevice(top) !== undefined;
  return top.deviceNumber === device?.deviceNumber;
}

async function removeEntry({ host }: Context, { path, capability }: Target): Promise<void> {
  const resolved = await host.files.resolve(path);
  const found = resolved === undefined ? undefined : await host.files.stat(resolved);
  if (resolved === undefined || found === undefined) return;
  if (capability.accessType === "mount" && found.kind === "directory") {
    await host.files.removeDirectory(resolved);
  } else if (capability.accessType === "block" && found.kind === "file" && found.sizeBytes === 0n) {
    await host.files.removeFile(resolved);
  } else {
    throw new CsiError(
      "INTERNAL",
      `what is at the target now (a ${found.kind}) was not made by this driver; it is left there`,
    );
  }
}

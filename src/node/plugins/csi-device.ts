import { dirname, join } from "node:path";
import { Node } from "../../csi/gen/csi_pb.ts";
import { CSI_PLUGIN, splitCsiVolume, splitVolumeName } from "../../volumes/names.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError, withStep } from "../errors.ts";
import { HostError } from "../host.ts";
import { escapeName, sha256, type Paths } from "../paths.ts";
import type { DeviceSteps, MountDeviceRequest, UnmountDeviceRequest } from "../plugin.ts";
import { fromDriver, messageOf } from "./csi-errors.ts";
import {
  checkLifecycle,
  probe,
  publishContextOf,
  rulesFor,
  secretsOf,
  type CsiContext,
} from "./csi-lookups.ts";
import { readRecord, removeRecord, writeRecord } from "./csi-records.ts";
import { stageRequest } from "./csi-requests.ts";
import { csiVolumeOf, type PersistentCsiVolume } from "./csi-source.ts";

/** Staging: once a volume and node, however many pods use it. */
export function createCsiDevice(context: CsiContext): DeviceSteps {
  return {
    mountPath: (spec) => stagingPathOf(context.paths, persistent(spec)),
    mount: (request) => stage(context, request),
    unmount: (request) => unstage(context, request),
    isUnstaged: (spec, signal) => isUnstaged(context, persistent(spec), signal),
  };
}

/** `plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/globalmount` */
export function stagingPathOf(paths: Paths, { driver, handle }: { driver: string; handle: string }): string {
  return join(paths.plugin(CSI_PLUGIN), escapeName(driver), sha256(handle), "globalmount");
}

async function stage(context: CsiContext, request: MountDeviceRequest): Promise<void> {
  const { deviceMountPath: stagingPath, signal, fsGroup, selinuxLabel } = request;
  const volume = persistent(request.spec);
  if (stagingPath === "")
    throw new VolumeError("final", `staging ${volume.handle}: no staging path was given`);
  const rules = rulesFor(context, volume.driver);
  checkLifecycle(rules, volume.driver, "Persistent");
  const { driver, can } = await probe(context, volume.driver, signal);
  // Nothing to stage: no directory is made either, because nobody would remove it again (FIX 17).
  if (!can.stage) return forgetAttempt(context, stagingPath);
  const publishContext = await publishContextOf(context, volume, { rules, signal, first: true });
  const podNamespace = request.pod.metadata.namespace ?? "";
  const secrets = await secretsOf(context, volume.stageSecret, {
    field: "NodeStageSecretRef",
    podNamespace,
    signal,
  });

  const facts = { volume, stagingPath, publishContext, secrets, traits: can, fsGroup, selinuxLabel };
  try {
    await prepareStaging(context, volume, { stagingPath, selinuxLabel });
    await driver.call(Node.method.nodeStageVolume, stageRequest(facts), {
      signal,
      migrated: volume.migrated,
    });
  } catch (error) {
    throw await afterFailedStage(context, fromStep(error), request);
  }
}

/** The record comes first: whoever finds the directory after a crash can then tell whose it is. */
async function prepareStaging(
  { host: { files } }: CsiContext,
  { driver, handle }: PersistentCsiVolume,
  { stagingPath, selinuxLabel }: { stagingPath: string; selinuxLabel: string | undefined },
): Promise<void> {
  const directory = dirname(stagingPath);
  try {
    await files.makeDirectories(directory, 0o750);
    await writeRecord(files, directory, {
      driverName: driver,
      volumeHandle: handle,
      ...(selinuxLabel ? { seLinuxMountContext: selinuxLabel } : {}),
    });
    await files.makeDirectories(stagingPath, 0o750);
  } catch (error) {
    throw new VolumeError("final", `preparing ${stagingPath}: ${messageOf(error)}`, { cause: error });
  }
}

/** The record is written before a driver is asked to stage, and where it does not stage there is none. */
async function isUnstaged(
  context: CsiContext,
  volume: PersistentCsiVolume,
  signal: AbortSignal,
): Promise<boolean> {
  const { files, mounts } = context.host;
  const { can } = await probe(context, volume.driver, signal);
  if (!can.stage) return false;
  const stagingPath = stagingPathOf(context.paths, volume);
  const { kind } = await readRecord(files, dirname(stagingPath));
  return kind === "missing" && !(await mounts.isMountPoint(stagingPath));
}

/**
 * The version before may have been asked to stage, and was replaced before it answered. Its record would say for ever that this is
 * staged, and a version that stages again would refuse to publish it.
 */
async function forgetAttempt(context: CsiContext, stagingPath: string): Promise<void> {
  const { files, mounts } = context.host;
  const { kind } = await readRecord(files, dirname(stagingPath));
  if (kind === "missing" || (await mounts.isMountPoint(stagingPath))) return;
  await unlessStaged(() => removeStaging(context, stagingPath));
}

/** A staging directory in which there is something was staged: it stays. */
export async function unlessStaged(remove: () => Promise<void>): Promise<void> {
  try {
    await remove();
  } catch (error) {
    if (!(error instanceof HostError && (error.code === "NotEmpty" || error.code === "Busy"))) throw error;
  }
}

/** Errors of ours have their class already; whatever else was thrown came from the driver. */
export function fromStep(error: unknown): VolumeError {
  return error instanceof VolumeError ? error : fromDriver(error);
}

/**
 * A final failure leaves nothing to remember, unless an earlier stage may have worked, or the volume was found after a restart
 * (FIX 18): without its record nobody would ever unstage it.
 */
async function afterFailedStage(
  context: CsiContext,
  failure: VolumeError,
  { deviceMountPath, mayBeThere }: MountDeviceRequest,
): Promise<VolumeError> {
  if (failure.outcome !== "final" || mayBeThere) return failure;
  return forgetOr(context, failure, () => removeStaging(context, deviceMountPath));
}

/** Cleans up after a final failure; where something is mounted all the same, or may be, the failure was not so final. */
export async function forgetOr(
  { log }: CsiContext,
  failure: VolumeError,
  clean: () => Promise<void>,
): Promise<VolumeError> {
  try {
    await clean();
    return failure;
  } catch (error) {
    log.warn("csi clean-up failed", { error: messageOf(error) });
    if (!(error instanceof VolumeError) || error.outcome !== "uncertain") return failure;
    const { kind, blockedBy, message } = failure;
    return new VolumeError("uncertain", `${message}; ${error.message}`, { cause: failure, kind, blockedBy });
  }
}

/** An `uncertain` VolumeError unless it is known that nothing is mounted there. */
export async function refuseMounted(
  { host: { mounts } }: Pick<CsiContext, "host">,
  path: string,
  message: string,
): Promise<void> {
  const isMounted = await mounts.isMountPoint(path).catch((error: unknown) => {
    throw new VolumeError("uncertain", `whether ${path} is still mounted: ${messageOf(error)}`, {
      cause: error,
    });
  });
  if (isMounted) throw new VolumeError("uncertain", message);
}

/** The directory, the record and their parent; an `uncertain` VolumeError where it is, or may be, still a mount point. */
async function removeStaging(context: CsiContext, stagingPath: string): Promise<void> {
  const { host } = context;
  await refuseMounted(context, stagingPath, `${stagingPath} is still mounted`);
  const directory = dirname(stagingPath);
  await host.files.removeDirectory(stagingPath);
  await removeRecord(host.files, directory);
  await host.files.removeDirectory(directory);
}

async function unstage(context: CsiContext, request: UnmountDeviceRequest): Promise<void> {
  const { deviceMountPath: stagingPath, signal } = request;
  const staged = await stagedAs(context, request);
  if (staged === undefined) return removeStaging(context, stagingPath);
  const { driver, can } = await probe(context, staged.driver, signal);
  if (can.stage) {
    const message = { volumeId: staged.handle, stagingTargetPath: stagingPath };
    try {
      await driver.call(Node.method.nodeUnstageVolume, message, { signal });
    } catch (error) {
      throw fromStep(error);
    }
  }
  try {
    await removeStaging(context, stagingPath);
  } catch (error) {
    throw withStep(`after NodeUnstageVolume of ${staged.handle}: `, error);
  }
}

/**
 * Which volume of which driver is staged there. The record says so; where it cannot be read the volume's own name does
 * (FIX 13). Undefined where no record was written and nothing is mounted: then nothing was ever asked of a driver.
 */
async function stagedAs(
  { host, log }: CsiContext,
  { deviceMountPath, volume }: UnmountDeviceRequest,
): Promise<{ driver: string; handle: string } | undefined> {
  const lookup = await readRecord(host.files, dirname(deviceMountPath));
  if (lookup.kind === "found")
    return { driver: lookup.record.driverName, handle: lookup.record.volumeHandle };
  if (lookup.kind === "missing" && !(await host.mounts.isMountPoint(deviceMountPath))) return undefined;
  const named = namedBy(volume);
  if (named === undefined) {
    throw new VolumeError(
      "final",
      `unstaging ${deviceMountPath}: ${volume} names no CSI volume and vol_data.json is ${lookup.kind}`,
    );
  }
  log.warn("csi record unusable, using the volume's name", { volume, record: lookup.kind });
  return named;
}

/** Driver and handle by the unique name of a volume of this plugin; a pod's own (ephemeral) volume has none. */
export function namedBy(volume: string): { driver: string; handle: string } | undefined {
  const split = splitVolumeName(volume);
  const csi = split?.plugin === CSI_PLUGIN ? splitCsiVolume(split.pluginVolume) : undefined;
  return csi && { driver: csi.driver, handle: csi.volumeHandle };
}

export function persistent(spec: VolumeSpec): PersistentCsiVolume {
  const volume = csiVolumeOf(spec);
  if (volume?.kind === "persistent") return volume;
  throw new VolumeError("final", "the volume names no CSI driver and handle, so it cannot be staged");
}

import { VolumeHealthErrorType as Status } from "../csi/gen/csi_pb.ts";
import type { Context } from "./context.ts";
import { deviceOf, mountsAt } from "./devices.ts";
import type { NodeRecord, VolumeRecord } from "./records.ts";

/** What is wrong with a volume, if anything: `volume_condition` of CSI 1.12 and the health calls after it both say it. */
export interface Health {
  /** Undefined for a volume that is well. */
  readonly problem?: { readonly status: Status; readonly reason: string };
  readonly message: string;
}

/** Below this thin volumes may run out of disk while their filesystems show room. */
const POOL_FREE_PERCENT_MIN = 5n;

const bad = (status: Status, reason: string, message: string): Health => ({
  problem: { status, reason },
  message,
});

/** A volume whose record cannot be read: it is there, but nothing can be said of it. */
export const DAMAGED: Health = bad(
  Status.INACCESSIBLE,
  "RecordDamaged",
  "the record of this volume is damaged; its image is kept",
);

/** What the controller sees of a volume: its image and the disk below. Never waits for a child process. */
export async function controllerHealth(context: Context, record: VolumeRecord): Promise<Health> {
  const { host, paths } = context;
  const image = await host.files.stat(paths.volumeImage(record.id));
  if (image === undefined)
    return bad(Status.DATA_LOSS, "ImageMissing", "the image file is missing: data is lost");
  if (image.sizeBytes < record.sizeBytes) {
    const message = `the image has ${image.sizeBytes} of ${record.sizeBytes} bytes: data is lost`;
    return bad(Status.DATA_LOSS, "ImageTruncated", message);
  }
  const pool = record.thick ? undefined : await poolProblem(context);
  return pool === undefined
    ? { message: "the image is complete" }
    : bad(Status.DEGRADED, "PoolNearlyFull", pool);
}

export async function poolProblem({ host, paths }: Context): Promise<string | undefined> {
  const { freeBytes, totalBytes } = await host.images.pool(paths.root);
  if (freeBytes * 100n >= totalBytes * POOL_FREE_PERCENT_MIN) return undefined;
  return `the storage pool is nearly full: ${freeBytes} bytes left`;
}

/** What a node sees: device and mount of a staged volume. */
export async function nodeHealth(context: Context, record: NodeRecord): Promise<Health> {
  const device = await deviceOf(context, context.paths.volumeImage(record.id));
  if (device === undefined) {
    const message = "the loop device is missing; stage the volume again";
    return bad(Status.INACCESSIBLE, "DeviceMissing", message);
  }
  if (device.autoclear) {
    const message = `${device.path} is marked to be detached when it is closed; stage the volume again`;
    return bad(Status.INACCESSIBLE, "DeviceGoing", message);
  }
  if (record.capability.accessType === "block") return { message: "the device is there" };
  const mount = (await mountsAt(context, record.stagingPath)).at(-1);
  if (mount?.deviceNumber !== device.deviceNumber) {
    const message = "the staging mount is missing; stage the volume again";
    return bad(Status.INACCESSIBLE, "MountMissing", message);
  }
  if (mount.failure !== undefined) {
    const message = `the filesystem failed and takes no more writes (${mount.failure}); stage the volume anew`;
    return bad(Status.DEGRADED, "FilesystemReadOnly", message);
  }
  if (!(await isReadable(context, record.stagingPath))) {
    const message = "the filesystem cannot be read any more; stage the volume anew";
    return bad(Status.INACCESSIBLE, "FilesystemUnreadable", message);
  }
  if (mount.filesystemReadonly && !mount.readonly) {
    return bad(Status.DEGRADED, "FilesystemReadOnly", "the filesystem turned read-only after an error");
  }
  return { message: "device and mount are there" };
}

/** An xfs that was shut down looks well in the mount table and answers EIO to whoever looks at its root. */
async function isReadable({ host }: Context, path: string): Promise<boolean> {
  try {
    return (await host.files.stat(path)) !== undefined;
  } catch {
    return false;
  }
}

export function toCondition({ problem, message }: Health): { abnormal: boolean; message: string } {
  return { abnormal: problem !== undefined, message };
}

import type { Context } from "./context.ts";
import { deviceOf, mountsAt } from "./devices.ts";
import type { NodeRecord, VolumeRecord } from "./records.ts";

export interface Condition {
  readonly abnormal: boolean;
  readonly message: string;
}

/** Below this thin volumes may run out of disk while their filesystems show room. */
const POOL_FREE_PERCENT_MIN = 5n;

/** What the controller sees of a volume: its image and the disk below. Never waits for a child process. */
export async function controllerCondition(context: Context, record: VolumeRecord): Promise<Condition> {
  const { host, paths } = context;
  const image = await host.files.stat(paths.volumeImage(record.id));
  if (image === undefined) return { abnormal: true, message: "the image file is missing: data is lost" };
  if (image.sizeBytes < record.sizeBytes) {
    return {
      abnormal: true,
      message: `the image has ${image.sizeBytes} of ${record.sizeBytes} bytes: data is lost`,
    };
  }
  const { freeBytes, totalBytes } = await host.images.pool(paths.root);
  if (!record.thick && freeBytes * 100n < totalBytes * POOL_FREE_PERCENT_MIN) {
    return { abnormal: true, message: `the storage pool is nearly full: ${freeBytes} bytes left` };
  }
  return { abnormal: false, message: "the image is complete" };
}

/** What a node sees: device and mount of a staged volume. */
export async function nodeCondition(context: Context, record: NodeRecord): Promise<Condition> {
  const device = await deviceOf(context, context.paths.volumeImage(record.id));
  if (device === undefined)
    return { abnormal: true, message: "the loop device is missing; stage the volume again" };
  if (record.capability.accessType === "block") return { abnormal: false, message: "the device is there" };
  const mount = (await mountsAt(context, record.stagingPath)).at(-1);
  if (mount?.deviceNumber !== device.deviceNumber) {
    return { abnormal: true, message: "the staging mount is missing; stage the volume again" };
  }
  if (mount.filesystemReadonly && !mount.readonly) {
    return { abnormal: true, message: "the filesystem turned read-only after an error" };
  }
  return { abnormal: false, message: "device and mount are there" };
}

import { abortReason, withDeadline } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";
import type { Context } from "./context.ts";
import { deviceOf, isMounted } from "./devices.ts";
import type { VolumeRecord } from "./records.ts";

/**
 * Copies of volumes as of one moment. A mounted filesystem is frozen while its image is copied, so the copy is as if
 * cleanly unmounted; a raw device in use is flushed, so its copy is as after a power cut. Writers stall for at most
 * `freezeMsMax`; whoever needs longer gets ABORTED and no copy. The thaw runs on every path; should the process die
 * first, recovery thaws.
 */
export async function cutImages(
  context: Context,
  cuts: readonly { readonly volume: VolumeRecord; readonly to: string }[],
): Promise<{ readonly cutAt: Date }> {
  const { host, clock, settings } = context;
  const ms = settings.freezeMsMax;
  const onDeadline = () =>
    new CsiError("ABORTED", `the copy took longer than ${ms} ms with writers stalled; nothing was kept`);
  const frozen: string[] = [];
  try {
    return await withDeadline(clock, { ms, onDeadline }, async (signal) => {
      for (const { volume } of cuts) await quiesce(context, volume, frozen);
      const cutAt = clock.wall();
      for (const { volume, to } of cuts) {
        await copyUntil(signal, frozen.length > 0, (options) =>
          host.images.copy(context.paths.volumeImage(volume.id), to, options),
        );
      }
      return { cutAt };
    });
  } finally {
    for (const path of frozen.reverse()) await host.mounts.thaw(path);
  }
}

/** Only frozen writers are waiting: without them a copy may take as long as it takes. */
async function copyUntil(
  signal: AbortSignal,
  bounded: boolean,
  copy: (options: { signal?: AbortSignal }) => Promise<void>,
): Promise<void> {
  if (!bounded) return copy({});
  try {
    await copy({ signal });
  } catch (error) {
    throw signal.aborted ? abortReason(signal) : error;
  }
}

/** Notes a path before freezing it: a freeze that reports failure may have happened all the same. */
async function quiesce(context: Context, volume: VolumeRecord, frozen: string[]): Promise<void> {
  const { host, paths } = context;
  const device = await deviceOf(context, paths.volumeImage(volume.id));
  if (device === undefined) return;
  if (volume.accessType === "block") return host.loops.flush(device.path);
  for (const { stagingPath } of await context.stagedAnywhere(volume.id)) {
    if ((await isMounted(context, stagingPath, device)) === undefined) continue;
    frozen.push(stagingPath);
    await host.mounts.freeze(stagingPath);
    // Two nodes of one machine share the filesystem, and a second freeze of it fails.
    return;
  }
}

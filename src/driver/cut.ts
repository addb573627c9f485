import { abortReason, withDeadline } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";
import type { Context } from "./context.ts";
import { isMounted } from "./devices.ts";
import { failedPrecondition } from "./errors.ts";
import { HostError, type LoopDevice } from "./host.ts";
import type { VolumeRecord } from "./records.ts";

/**
 * Copies of volumes as of one moment, or none. A mounted filesystem is frozen while its image is copied, so the copy is
 * as if cleanly unmounted. A raw device that can be written has nothing that could be frozen: its image is cloned in one
 * step of the filesystem below (FICLONE), as after a power cut, and where that filesystem cannot, the copy is refused: one
 * that is read while somebody writes shows a state that never was.
 *
 * Writers stall for at most `freezeMsMax`; whoever needs longer gets ABORTED and no copy. The thaw runs on every path;
 * should the process die first, recovery thaws.
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
      const live: VolumeRecord[] = [];
      for (const { volume } of cuts)
        if ((await quiesce(context, volume, frozen)) === "live") live.push(volume);
      checkOneMoment(live);
      const cutAt = clock.wall();
      for (const { volume, to } of cuts) {
        const image = context.paths.volumeImage(volume.id);
        if (live.includes(volume)) await cloneLive(context, volume, to);
        else await copyUntil(signal, frozen.length > 0, (options) => host.images.copy(image, to, options));
      }
      return { cutAt };
    });
  } finally {
    for (const path of frozen.reverse()) await host.mounts.thaw(path);
  }
}

const WAYS_OUT = "unpublish and unstage it first, or use a filesystem volume, which is frozen for the copy";

/** Each clone is a moment of its own. Frozen ones wait for it; a second that is written meanwhile does not. */
function checkOneMoment(live: readonly VolumeRecord[]): void {
  const [first, second] = live;
  if (first === undefined || second === undefined) return;
  throw failedPrecondition(
    `volumes ${first.id} and ${second.id} can both be written as raw devices, and cannot be copied as of one ` +
      `moment: of one of them, ${WAYS_OUT}`,
  );
}

async function cloneLive(context: Context, volume: VolumeRecord, to: string): Promise<void> {
  try {
    await context.host.images.clone(context.paths.volumeImage(volume.id), to);
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== "NotSupported") throw error;
    throw failedPrecondition(
      `volume ${volume.id} can be written at this moment, and the filesystem of the state directory cannot copy a file ` +
        `as of one moment: ${WAYS_OUT}; or have the state directory on xfs with reflink or on btrfs`,
    );
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

/**
 * `still`: nobody can write until the copy is made; the volume's lock, which the caller holds, keeps new devices away.
 * `live`: somebody can, or we cannot tell: a raw device, or a filesystem that is mounted where we do not see it.
 */
async function quiesce(context: Context, volume: VolumeRecord, frozen: string[]): Promise<"still" | "live"> {
  const { host, paths } = context;
  const image = await host.files.stat(paths.volumeImage(volume.id));
  const devices = (await host.loops.list()).filter(({ backing }) => backing === image?.identity);
  const writable = devices.filter(({ readonly }) => !readonly);
  const [device] = writable;
  if (device === undefined) return "still";
  const mounted =
    volume.accessType === "mount" && writable.length === 1
      ? await mountPointOf(context, volume.id, device)
      : undefined;
  if (mounted === undefined) {
    for (const one of writable) await flush(context, one);
    return "live";
  }
  // Noted before: a freeze that reports failure may have happened all the same.
  frozen.push(mounted);
  await host.mounts.freeze(mounted);
  return "still";
}

/** One is enough: all mounts of a filesystem freeze together, and a second freeze of it fails. */
async function mountPointOf(
  context: Context,
  volumeId: string,
  device: LoopDevice,
): Promise<string | undefined> {
  for (const { stagingPath } of await context.stagedAnywhere(volumeId))
    if ((await isMounted(context, stagingPath, device)) !== undefined) return stagingPath;
  const whole = (await context.host.mounts.list()).filter(
    ({ deviceNumber, root }) => deviceNumber === device.deviceNumber && root === "/",
  );
  // Of two at one path only the upper is reached.
  for (const { path } of whole) if ((await isMounted(context, path, device)) !== undefined) return path;
  return undefined;
}

/** What its page cache holds is in no file yet. */
async function flush({ host }: Context, device: LoopDevice): Promise<void> {
  const release = await host.loops.pin(device);
  try {
    await host.loops.flush(device.path);
  } finally {
    await release();
  }
}

import { uuid, type Random } from "../base/random.ts";
import type { Logger } from "../base/log.ts";
import { HostError, type Host } from "./host.ts";

/**
 * Room for the records of calls that let go. On a disk without a free block or inode a record cannot be replaced in the
 * usual way, and so nothing could be unpublished, unstaged, detached or deleted: the very calls that make room. The
 * reserve is a few files that are really allocated. Such a call writes its record over one of them, in place, and renames
 * it over the old record. That takes no block and no inode, and what the old record held makes the next spare.
 *
 * Spares are used up rather than freed: blocks that are given back to a full disk go to whoever writes next, and thin
 * images of workloads always do. One reserve a process of the pool, so that none can spend another's.
 */
export interface Reserve {
  /** Takes stock at start and makes what is missing. Never fails: a full disk is what it is for. */
  open(): Promise<void>;
  /** The record at `path` becomes `text`; false where no spare is left. */
  replace(path: string, text: string): Promise<boolean>;
  /** Called when something was written or removed: there may be room again. Cheap while nothing is missing. */
  refill(): Promise<void>;
  /** Records that can be written on a full disk. */
  spares(): number;
}

/** Two for an unpublish, one each for unstage, detach and delete: three volumes at once, if others take every block freed. */
export const RESERVE_SPARES = 16;
/** One block: as much as the record that it replaces gives back. A record takes 0.5 to 1 KiB. */
const SPARE_BYTES = 4_096;

export function createReserve(
  { host, random, log }: { readonly host: Host; readonly random: Random; readonly log: Logger },
  { parent, directory }: { readonly parent: string; readonly directory: string },
): Reserve {
  const { files } = host;
  const ready: string[] = [];
  let isRefilling = false;
  let isShort = false;

  async function open(): Promise<void> {
    try {
      for (const path of [parent, directory]) await files.makeDirectory(path, 0o700);
      for (const name of await files.list(directory)) {
        const path = `${directory}/${name}`;
        const isWhole = (await files.stat(path))?.sizeBytes === BigInt(SPARE_BYTES);
        if (isWhole && ready.length < RESERVE_SPARES) ready.push(path);
        else await files.removeFile(path);
      }
    } catch (error) {
      log.warn("reserve not usable", { path: directory, error });
    }
    await refill();
  }

  async function makeSpare(): Promise<void> {
    const path = `${directory}/${uuid(random)}`;
    try {
      await files.writeDurable(path, " ".repeat(SPARE_BYTES));
      ready.push(path);
    } catch (error) {
      await files.removeFile(path);
      throw error;
    }
  }

  async function refill(): Promise<void> {
    if (isRefilling || ready.length >= RESERVE_SPARES) return;
    isRefilling = true;
    try {
      while (ready.length < RESERVE_SPARES) await makeSpare();
      if (isShort) log.info("reserve whole again", { path: directory });
      isShort = false;
    } catch (error) {
      const next = "calls that let go of volumes may fail once the disk is full; free some of it";
      if (!isShort) log.warn("reserve short", { path: directory, spares: ready.length, error, next });
      isShort = true;
    } finally {
      isRefilling = false;
    }
  }

  /** A record longer than a block takes the blocks of other spares with it. */
  async function makeRoomFor(text: string): Promise<void> {
    const more = Math.ceil(Buffer.byteLength(text) / SPARE_BYTES) - 1;
    for (const path of ready.splice(0, more)) await files.removeFile(path);
  }

  async function replace(path: string, text: string): Promise<boolean> {
    for (let spare = ready.pop(); spare !== undefined; spare = ready.pop()) {
      try {
        await makeRoomFor(text);
        await files.overwrite(spare, text);
      } catch (error) {
        // A start on a full disk takes a spare for its lock.
        if (error instanceof HostError && error.code === "NotFound") continue;
        throw error;
      }
      await files.rename(spare, path);
      log.info("record written from the reserve: the disk is full", { path, spares: ready.length });
      return true;
    }
    return false;
  }

  return { open, replace, refill, spares: () => ready.length };
}

import { watch, type FSWatcher } from "node:fs";
import { lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Sockets, SocketWatch } from "./sockets.ts";

/** Safety net for events the kernel dropped: inotify queues hold 16,384. */
const SWEEP_MS = 60_000;
/** After a scan that failed, say because somebody removed the folder. */
const RETRY_MS = 1_000;
/** Folders watched; drivers make none or one. Past it sockets are still found, by the sweep. */
const FOLDERS_MAX = 256;
const DEPTH_MAX = 8;

/** inotify on the folder and those inside it. An event only says that it is time to look. */
export function createLinuxSockets(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  { folder }: { readonly folder: string },
): SocketWatch {
  return {
    async run(onSockets, signal) {
      const watchers = new Map<string, FSWatcher>();
      const bell = createBell(clock);
      signal.addEventListener("abort", bell.ring, { once: true });
      let told: string | undefined;
      try {
        while (!signal.aborted) {
          const found = await scan(folder, { watchers, onEvent: bell.ring, log });
          if (found === undefined) {
            await bell.wait(RETRY_MS);
            continue;
          }
          const print = JSON.stringify([...found]);
          if (print !== told) onSockets(found);
          told = print;
          await bell.wait(SWEEP_MS);
        }
      } finally {
        signal.removeEventListener("abort", bell.ring);
        for (const watcher of watchers.values()) watcher.close();
      }
    },
  };
}

/** Remembers one ring, so that an event in the middle of a scan leads to another scan. */
function createBell(clock: Clock) {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    ring: () => {
      rung = true;
      wake?.();
    },
    async wait(ms: number): Promise<void> {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = clock.after(ms, resolve);
          wake = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      wake = undefined;
      rung = false;
    },
  };
}

interface Scan {
  readonly watchers: Map<string, FSWatcher>;
  readonly onEvent: () => void;
  readonly log: Logger;
}

async function scan(folder: string, scanning: Scan): Promise<Sockets | undefined> {
  const seen = new Set<string>();
  const found = new Map<string, string>();
  try {
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await scanFolder(folder, { ...scanning, seen, found, depth: 0 });
  } catch (error) {
    scanning.log.warn("plugin sockets not read; tried again", { folder, error });
    return undefined;
  }
  for (const [path, watcher] of scanning.watchers) {
    if (seen.has(path)) continue;
    watcher.close();
    scanning.watchers.delete(path);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface FolderScan extends Scan {
  readonly seen: Set<string>;
  readonly found: Map<string, string>;
  readonly depth: number;
}

async function scanFolder(folder: string, scanning: FolderScan): Promise<void> {
  scanning.seen.add(folder);
  // Watched before it is read: what comes in between is told by the watch.
  listen(folder, scanning);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = join(folder, entry.name);
    if (entry.isSocket()) await addSocket(path, scanning.found);
    else if (entry.isDirectory() && scanning.depth < DEPTH_MAX)
      await scanFolder(path, { ...scanning, depth: scanning.depth + 1 }).catch(ignoreGone);
  }
}

function listen(folder: string, { watchers, onEvent, log }: Scan): void {
  if (watchers.has(folder) || watchers.size >= FOLDERS_MAX) return;
  const watcher = watch(folder, onEvent);
  watcher.on("error", (error) => {
    log.warn("plugin folder no longer watched", { folder, error });
    watcher.close();
    watchers.delete(folder);
    onEvent();
  });
  // A folder that was removed and made again under the same name is another one, and needs another watch.
  watcher.on("change", (_event, name) => {
    if (name !== folder.slice(folder.lastIndexOf("/") + 1)) return;
    watcher.close();
    watchers.delete(folder);
  });
  watchers.set(folder, watcher);
}

async function addSocket(path: string, found: Map<string, string>): Promise<void> {
  try {
    const { dev, ino, birthtimeNs } = await lstat(path, { bigint: true });
    // An inode number alone is used again at once; its time of birth is not, and chmod leaves it alone.
    found.set(path, `${dev}:${ino}:${birthtimeNs}`);
  } catch (error) {
    ignoreGone(error);
  }
}

/** Gone between two looks: the event of its going leads to the next one. */
function ignoreGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

import { join } from "node:path";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { VolumeName } from "../../volumes/names.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { isObject } from "../../volumes/untrusted.ts";
import type { HostFiles } from "../host.ts";
import { sha256, type Paths } from "../paths.ts";
import { inParallel } from "./parallel.ts";
import { twice } from "./twice.ts";
import { hasDriver, RENEW_MS } from "../late-calls.ts";
import { identityOf } from "../replaced.ts";
import type { OperationName, VolumeIdentity, VolumeMode, VolumeState } from "../world.ts";

/**
 * Intents on disk: a volume that is shared or staged gets a record before anything is done with it, fsynced, and keeps it
 * until nothing of it is left. What a crash interrupts is then found again, whatever the plugin wrote itself: its spec,
 * the pods it may be in, whether it may be staged. One file a volume; a record that names too much does no harm. No path
 * of a device: after a reboot it would name another disk.
 */
export interface Journal {
  /** Resolves once the record, with this step in it, would survive a crash. */
  intend(volume: VolumeState, intent: Intent): Promise<void>;
  /**
   * After a step: what is left of the volume. Never rejects; a record that is out of date is only too careful, and is tried
   * again: found by the next start, weeks later, it would be taken for something that is here.
   */
  settle(volume: VolumeState): Promise<void>;
  read(): Promise<JournalContent>;
}

export interface JournalContent {
  readonly records: readonly JournalRecord[];
  /** Files that the disk did not give: what they speak of is not known. */
  readonly unread: readonly string[];
}

export interface Intent {
  readonly podUid?: string;
  readonly device?: boolean;
}

export interface JournalRecord {
  readonly volume: VolumeName;
  readonly plugin: string;
  readonly spec: VolumeSpec;
  readonly mode: VolumeMode;
  /** May be staged. */
  readonly device: boolean;
  readonly deviceMountPath: string;
  readonly pods: readonly JournaledPod[];
  /** Mounted with this context; without one where undefined. */
  readonly selinuxLabel?: string;
  /** Calls that a driver may be at, whoever reads this. */
  readonly calls?: readonly JournaledCall[];
}

export interface JournaledPod {
  readonly uid: string;
  readonly path: string;
  /** Which of the pod's volumes it is. */
  readonly volumes?: readonly string[];
  readonly identity?: VolumeIdentity;
  /** Where it is another PersistentVolume of the same disk than the record's: its directories have that one's name. */
  readonly spec?: VolumeSpec;
}

export interface JournaledCall {
  readonly operation: OperationName;
  readonly podUid?: string;
  /** Wall time: counts as over then. */
  readonly until: string;
}

const VERSION = 1;
/** Between two tries to bring a record up to date. */
const AGAIN_MS = 30_000;
/** A PersistentVolume has about 2 kB; whatever is larger was not written by this. */
const RECORD_CHARS_MAX = 1024 * 1024;

export function createJournal({
  files,
  paths,
  log,
  clock,
  callWindowMs,
  stopping,
}: {
  files: HostFiles;
  paths: Paths;
  log: Logger;
  clock: Clock;
  callWindowMs: number;
  stopping: AbortSignal;
}): Journal {
  const directory = join(paths.journal, "volumes");
  const written = new Map<VolumeName, string>();
  /** Of these the last write failed, so that it may be there or not. */
  const unsure = new Set<VolumeName>();
  /** Writes of one volume follow each other. Bound: volumes with a write under way. */
  const chains = new Map<VolumeName, Promise<void>>();
  /** Whose record is to be written: a volume that was forgotten may have a successor. Bound: writes under way or failed. */
  const latest = new Map<VolumeName, { readonly volume: VolumeState; again?: Timer }>();
  let made: Promise<void> | undefined;

  function inOrder(name: VolumeName, write: () => Promise<void>): Promise<void> {
    const next = (chains.get(name) ?? Promise.resolve()).catch(() => undefined).then(write);
    chains.set(name, next);
    const drop = () => {
      if (chains.get(name) === next) chains.delete(name);
    };
    next.then(drop, drop);
    return next;
  }

  async function save(volume: VolumeState, intent: Intent): Promise<void> {
    const toWall = (ms: number) => new Date(clock.wall().getTime() + ms - clock.now()).toISOString();
    // Any of them may call its driver until the record is renewed.
    const underUntilMs = clock.now() + RENEW_MS + callWindowMs;
    const calls = hasDriver(volume) ? callsOf(volume, { underUntilMs, toWall }) : [];
    const record = recordOf(volume, intent, calls);
    const path = join(directory, `${sha256(volume.name)}.json`);
    const text = record && `${JSON.stringify({ version: VERSION, ...record })}\n`;
    if (text === written.get(volume.name) && !unsure.has(volume.name)) return;
    unsure.add(volume.name);
    if (text === undefined) await files.removeFile(path);
    else {
      made ??= files.makeDirectories(directory, 0o700).catch((error: unknown) => {
        made = undefined;
        throw error;
      });
      await made;
      await files.writeDurable(path, text, 0o600);
    }
    if (text === undefined) written.delete(volume.name);
    else written.set(volume.name, text);
    unsure.delete(volume.name);
  }

  async function write(volume: VolumeState, intent: Intent): Promise<void> {
    const { name } = volume;
    latest.get(name)?.again?.cancel();
    latest.set(name, { volume });
    await inOrder(name, () => save(volume, intent));
    if (latest.get(name)?.volume === volume) latest.delete(name);
  }

  function tryAgain(volume: VolumeState): void {
    const entry = latest.get(volume.name);
    if (entry?.volume !== volume || stopping.aborted) return;
    entry.again?.cancel();
    entry.again = clock.after(AGAIN_MS, () => void settle(volume));
  }

  async function settle(volume: VolumeState): Promise<void> {
    try {
      await write(volume, {});
    } catch (error) {
      log.warn("journal record not updated", { volume: volume.name, error, retryInMs: AGAIN_MS });
      tryAgain(volume);
    }
  }

  return {
    intend: write,
    settle,
    async read() {
      const unread: string[] = [];
      const records = new Map<string, JournalRecord>();
      const names = ((await files.list(directory)) ?? []).map(({ name }) => name);
      await inParallel(names, async (name) => {
        // A write that a crash cut short: the record it was to replace is whole.
        if (name.endsWith(".draft")) await files.removeFile(join(directory, name));
        if (!name.endsWith(".json")) return;
        const path = join(directory, name);
        const text = await twice(clock, () => files.read(path)).catch((error: unknown) => {
          log.error("journal record not read; what was in use stays", { file: name, error });
          unread.push(path);
        });
        if (unread.includes(path)) return;
        const record = parseRecord(text ?? "");
        if (record) {
          records.set(name, record);
          written.set(record.volume, text ?? "");
        } else log.error("journal record cannot be read; what is on disk has to do", { file: name });
      });
      // In one order, whoever answered first: one seed gives one run.
      return { records: names.flatMap((name) => records.get(name) ?? []), unread };
    },
  };
}

/** Undefined where nothing of the volume is, or may be, here. */
function recordOf(
  volume: VolumeState,
  intent: Intent,
  calls: readonly JournaledCall[],
): JournalRecord | undefined {
  const { name, plugin, held, running } = volume;
  if (!held) return undefined;
  const mounting = running.filter(({ operation }) => operation !== "volume_fs_resize");
  const device =
    intent.device === true ||
    held.device !== "not-mounted" ||
    mounting.some(({ podUid }) => podUid === undefined);
  const uids = [
    ...held.mounts.keys(),
    ...mounting.flatMap(({ podUid }) => podUid ?? []),
    ...(intent.podUid ? [intent.podUid] : []),
  ];
  if (!device && uids.length === 0 && calls.length === 0) return undefined;
  const { spec, mode, deviceMountPath, selinuxLabel } = held;
  const pods = [...new Set(uids)].sort().map((uid) => podOf(volume, uid));
  return {
    ...{ volume: name, plugin: plugin.name, spec, mode, device, deviceMountPath, pods },
    ...(selinuxLabel !== "" && { selinuxLabel }),
    ...(calls.length > 0 && { calls }),
  };
}

function podOf({ held, wants }: VolumeState, uid: string): JournaledPod {
  const [mount, want] = [held?.mounts.get(uid), wants.get(uid)];
  const volumes = mount?.outerNames ?? want?.outerNames ?? [];
  const identity = mount?.identity ?? (want && identityOf(want.spec));
  const spec = mount?.spec ?? want?.spec;
  return {
    ...{ uid, path: mount?.path ?? "" },
    ...(volumes.length > 0 && { volumes }),
    ...(identity && (identity.volumeUid || identity.claimUid) && { identity }),
    ...(spec && held && specName(spec) !== specName(held.spec) && { spec }),
  };
}

/** What is under way now may be cut off with this process; what was cut off may go on. */
function callsOf(
  { running, late }: VolumeState,
  { underUntilMs, toWall }: { readonly underUntilMs: number; readonly toWall: (ms: number) => string },
): readonly JournaledCall[] {
  const under = running.map((step) => ({ ...step, untilMs: underUntilMs }));
  return [...under, ...late].map(({ operation, podUid, untilMs }) => ({
    operation,
    ...(podUid !== undefined && { podUid }),
    until: toWall(untilMs),
  }));
}

function parseRecord(text: string): JournalRecord | undefined {
  if (text.length > RECORD_CHARS_MAX) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isRecord(value) ? value : undefined;
}

function isRecord(value: unknown): value is JournalRecord {
  if (!isObject(value)) return false;
  const { version, volume, plugin, spec, mode, device, deviceMountPath, pods, selinuxLabel, calls } =
    value as Partial<JournalRecord> & {
      version?: unknown;
    };
  const texts = [volume, plugin, deviceMountPath];
  return (
    version === VERSION &&
    texts.every((text) => typeof text === "string") &&
    isObject(spec) &&
    isObject(spec.volume) &&
    (mode === "Filesystem" || mode === "Block") &&
    typeof device === "boolean" &&
    ["undefined", "string"].includes(typeof selinuxLabel) &&
    (calls === undefined || (Array.isArray(calls) && calls.every(isObject))) &&
    Array.isArray(pods) &&
    pods.every(isPod)
  );
}

function isPod(pod: unknown): boolean {
  if (!isObject(pod)) return false;
  const { uid, volumes, identity, spec } = pod as Partial<JournaledPod>;
  return (
    typeof uid === "string" &&
    (volumes === undefined ||
      (Array.isArray(volumes) && volumes.every((name) => typeof name === "string"))) &&
    (identity === undefined || isObject(identity)) &&
    (spec === undefined || (isObject(spec) && isObject(spec.volume)))
  );
}

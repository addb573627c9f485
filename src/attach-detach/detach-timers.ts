import { configMaps, type ConfigMap } from "../kube/api/config-map.ts";
import { isKubeError } from "../kube/errors.ts";
import type { NodeName } from "../volumes/names.ts";
import { attachmentOf } from "./attachments.ts";
import { mark, type Context } from "./context.ts";
import type { AttachDetachOptions } from "./options.ts";
import { readPodHistory, type PodHistory } from "./pod-history.ts";
import { forceRuleOf } from "./policy.ts";
import {
  claimOf,
  findPlacement,
  placementKey,
  type Hold,
  type Placement,
  type PlacementKey,
} from "./world.ts";

/**
 * For how long no pod has used a volume, kept over restarts: the six minutes until a dead node's volume is forced off it
 * would otherwise begin anew each time another process leads. Kept in a ConfigMap beside the Lease; where the rights for
 * that are missing, in memory only, as upstream.
 *
 * What is kept is a length of time, measured by the clock of one process, and the version of the pods it is true of; no time
 * of day, because no two clocks agree. A successor counts it only with proof that nothing has happened since: the same
 * VolumeAttachment by uid, and the server's own history of the node's pods from that version on (`pod-history.ts`). So a pod
 * that came back, whoever led then or nobody, makes the entry worthless by itself, and it need not be cleared in time.
 * The time during which nobody of ours led is not counted.
 *
 * Within one process the witness is its own watch of pods. Where that had to be replaced by a list, no history reaches from one
 * to the other (the server has forgotten it, or it could not be read), and every timer begins anew with the list; while no watch
 * is open nothing is forced (`plan.ts`).
 *
 * The ConfigMap is written when what waits has changed, looked at every `LOOK_MS`; only what has waited for `WORTH_KEEPING_MS`
 * counts, so a normal detach costs no request. That all of it still waits, so much later and at a newer version, is a note on
 * the Lease, which is renewed every 2 s anyway: a server under load remembers its pods for little more than a minute
 * (75 s of a kube-apiserver's watch cache), so the version has to follow. A note vouches for the whole ConfigMap as it is: once
 * one entry is no longer true none is written, until the ConfigMap is. Without a Lease it is rewritten every `LOOK_MS`.
 */
export const TIMERS_NAME = "mooring-detach-timers";
const LOOK_MS = 30_000;
const WORTH_KEEPING_MS = 30_000;
/** At 270 bytes each 810 kB, below the 1 MiB an object may take. The oldest are kept: they are due first. */
const ENTRIES_MAX = 3_000;
/** Left to wait after a start, however long it was before: a node that is alive gets to say so. */
const START_MS = 30_000;
/** At most so many histories are read at a time: one a node, and dead nodes are few. */
const READERS = 4;

export interface DetachTimers {
  /** Reads what an earlier leader kept; to be called when stock is taken and before anything is done. */
  load(signal: AbortSignal): Promise<void>;
  /** Gives placements the time they are proven to have waited already, and keeps what they wait from now on. */
  run(signal: AbortSignal): Promise<void>;
  /** Pods may have come and gone unseen: whatever has waited until now, here or under an earlier leader, counts for nothing. */
  beginAnew(): void;
}

/** What is kept of one placement. */
interface Kept {
  /** Of the VolumeAttachment; empty where there is none, as with iSCSI. */
  readonly uid: string;
  readonly waitedMs: number;
}

/** An entry that a placement of ours may still be entitled to. */
interface Claimant {
  readonly placement: Placement;
  readonly hold: Hold;
  readonly sinceMs: number;
  readonly waitedMs: number;
}

/** What the ConfigMap says, as long as it does. */
interface Written {
  readonly entries: readonly Waiting[];
  /** When it was true, in the clock's `now()`. */
  readonly atMs: number;
  readonly resourceVersion: string;
}

interface Waiting {
  readonly key: string;
  readonly placement: Placement;
  readonly hold: Hold;
  readonly sinceMs: number;
  readonly uid: string;
}

export function createDetachTimers(context: Context, { namespace }: { namespace: string }): DetachTimers {
  const { client, clock, log, mayAct, caches, notes } = context;
  const ref = { namespace, name: TIMERS_NAME };
  let stored: ConfigMap | undefined;
  let usable = true;
  let fromVersion: string | undefined;
  let toVersion: string | undefined;
  let claimants: readonly Claimant[] = [];
  let written: Written | undefined;

  async function load(signal: AbortSignal): Promise<void> {
    try {
      stored = await client.get(configMaps, ref, { signal });
      const { version, entries } = parse(stored.data?.["timers"]);
      // Without the note, what the ConfigMap says by itself counts.
      const note = parseNote(await notes?.read(signal).catch(() => undefined));
      // From here on our own watch is the witness: a pod that came and went during the reads belongs to the history.
      toVersion = caches.pods.version();
      const vouched = note !== undefined && note.timers === stored.metadata.resourceVersion;
      fromVersion = vouched ? note.version : version;
      claimants = claimantsOf(context, entries, vouched ? note.waitedMs : 0);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return;
      giveUp(error);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const end = notes?.carry(note);
    try {
      await Promise.all([prove(signal), keep(signal)]);
    } finally {
      end?.();
    }
  }

  async function prove(signal: AbortSignal): Promise<void> {
    const [from, to] = [fromVersion, toVersion];
    if (from === undefined || to === undefined) return;
    const byNode = [...groupByNode(claimants)];
    const reader = async () => {
      for (let next = byNode.pop(); next !== undefined; next = byNode.pop()) {
        const [node, waiting] = next;
        const history = await readPodHistory(
          { client, clock },
          { node, fromVersion: from, toVersion: to },
          signal,
        );
        if (history === undefined) {
          log.warn("detach timers of a node begin anew: the server cannot tell what its pods did since", {
            node,
          });
        } else for (const claimant of waiting) if (!mayHaveUsed(history, claimant)) credit(context, claimant);
      }
    };
    await Promise.all(Array.from({ length: READERS }, reader));
  }

  async function keep(signal: AbortSignal): Promise<void> {
    let empty = stored?.data?.["timers"] === undefined;
    while (usable) {
      await clock.sleep(LOOK_MS, signal);
      const entries = collect(context);
      const version = caches.pods.version();
      const same = written !== undefined && isSame(written.entries, entries);
      const fresh = notes !== undefined || entries.length === 0;
      if ((entries.length === 0 && empty) || (same && fresh) || version === undefined || !mayAct()) continue;
      const atMs = clock.now();
      // From the moment the request leaves the ConfigMap may be another than the one that was vouched for.
      written = undefined;
      const resourceVersion = await save(toText(entries, { version, atMs }), signal);
      if (resourceVersion === undefined) continue;
      written = { entries, atMs, resourceVersion };
      empty = entries.length === 0;
    }
  }

  /** Answers the version of what was written; undefined where it was not. */
  async function save(timers: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const data = { timers };
      const object: ConfigMap = stored ? { ...stored, data } : { metadata: { ...ref }, data };
      stored = stored
        ? await client.update(configMaps, object, { signal })
        : await client.create(configMaps, object, { signal });
      return stored.metadata.resourceVersion ?? "";
    } catch (error) {
      if (signal.aborted) throw error;
      if (isKubeError(error, "Forbidden")) giveUp(error);
      // Somebody else wrote or removed it: the next round writes onto what is there.
      else stored = await client.get(configMaps, ref, { signal }).catch(() => undefined);
      return undefined;
    }
  }

  /** All that the ConfigMap says is still so, at the version that the cache has now. */
  function note(): string | undefined {
    const version = caches.pods.version();
    // After its end a term hears nothing more, while the cache goes on and the Lease is renewed until its last call has ended.
    if (!context.active() || version === undefined) return undefined;
    if (written === undefined || written.entries.length === 0) return undefined;
    if (!written.entries.every((entry) => stillWaits(context, entry))) return undefined;
    const { resourceVersion: timers, atMs } = written;
    return JSON.stringify({ timers, waitedMs: Math.floor(clock.now() - atMs), version } satisfies Note);
  }

  function giveUp(error: unknown): void {
    usable = false;
    log.warn("detach timers are kept in memory only: a restart begins them anew", { ...ref, error });
  }

  function beginAnew(): void {
    const waiting = [...context.world.unwanted];
    for (const placement of waiting) {
      if (placement.hold) placement.hold.unwantedSinceMs = clock.now();
      mark(context, placement);
    }
    if (waiting.length === 0 || !context.active()) return;
    log.warn("detach timers begin anew: pods may have come and gone while their watch was cut off", {
      volumes: waiting.length,
    });
  }

  return { load, run, beginAnew };
}

/** What the Lease says of the ConfigMap. */
interface Note {
  /** The `resourceVersion` of the ConfigMap that it vouches for. */
  readonly timers: string;
  /** How long after the ConfigMap was true. */
  readonly waitedMs: number;
  /** Of the pods. */
  readonly version: string;
}

function parseNote(text: string | undefined): Note | undefined {
  try {
    const { timers, waitedMs, version } = JSON.parse(text ?? "{}") as Partial<Note>;
    if (typeof timers !== "string" || typeof version !== "string") return undefined;
    if (typeof waitedMs !== "number" || !(waitedMs >= 0)) return undefined;
    return { timers, waitedMs, version };
  } catch {
    return undefined;
  }
}

/** What has waited long enough to be worth it, by its key: what nobody wants is found without a walk over what is wanted. */
function collect(context: Context): Waiting[] {
  const nowMs = context.clock.now();
  const waiting = [...context.world.unwanted].flatMap((placement): Waiting[] => {
    const { hold } = placement;
    const sinceMs = hold?.unwantedSinceMs;
    if (hold === undefined || sinceMs === undefined || nowMs - sinceMs < WORTH_KEEPING_MS) return [];
    const uid = attachmentUid(context, placement);
    return [{ key: placementKey(placement), placement, hold, sinceMs, uid }];
  });
  return waiting.sort((a, b) => a.sinceMs - b.sinceMs).slice(0, ENTRIES_MAX);
}

function stillWaits(context: Context, { placement, hold, sinceMs, uid }: Waiting): boolean {
  const same = placement.hold === hold && hold.unwantedSinceMs === sinceMs && placement.want === undefined;
  return same && uid === attachmentUid(context, placement);
}

function isSame(before: readonly Waiting[], now: readonly Waiting[]): boolean {
  if (before.length !== now.length) return false;
  const known = new Map(before.map((entry) => [entry.key, entry]));
  return now.every(({ key, hold, sinceMs, uid }) => {
    const entry = known.get(key);
    return entry?.hold === hold && entry.sinceMs === sinceMs && entry.uid === uid;
  });
}

/** `placement key -> what is kept`, and the version of the pods it is true of. */
function toText(
  entries: readonly Waiting[],
  { version, atMs }: { readonly version: string; readonly atMs: number },
): string {
  const kept = entries.map(({ key, uid, sinceMs }): [string, Kept] => [
    key,
    { uid, waitedMs: Math.floor(atMs - sinceMs) },
  ]);
  return JSON.stringify({ version, entries: Object.fromEntries(kept) });
}

function attachmentUid(context: Context, placement: Placement): string {
  return attachmentOf(context, placement)?.metadata.uid ?? "";
}

/** What earlier versions kept, times of day, is not understood any more: it proves nothing. */
function parse(text: string | undefined): {
  version: string | undefined;
  entries: ReadonlyMap<string, Kept>;
} {
  const nothing = { version: undefined, entries: new Map<string, Kept>() };
  try {
    const { version, entries } = JSON.parse(text ?? "{}") as { version?: unknown; entries?: unknown };
    if (typeof version !== "string" || typeof entries !== "object" || entries === null) return nothing;
    return { version, entries: new Map(Object.entries(entries).filter(isEntry)) };
  } catch {
    return nothing;
  }
}

function isEntry(entry: [string, unknown]): entry is [string, Kept] {
  const { uid, waitedMs } = (entry[1] ?? {}) as Partial<Kept>;
  return typeof uid === "string" && typeof waitedMs === "number" && waitedMs > 0;
}

function claimantsOf(context: Context, entries: ReadonlyMap<string, Kept>, sinceThenMs: number): Claimant[] {
  return [...entries].flatMap(([key, kept]) => {
    const placement = findPlacement(context.world, key as PlacementKey);
    const hold = placement?.hold;
    if (!placement || placement.want || hold?.unwantedSinceMs === undefined) return [];
    if (kept.uid !== attachmentUid(context, placement)) return [];
    const waitedMs = kept.waitedMs + sinceThenMs;
    return [{ placement, hold, sinceMs: hold.unwantedSinceMs, waitedMs }];
  });
}

function groupByNode(claimants: readonly Claimant[]): ReadonlyMap<NodeName, readonly Claimant[]> {
  const groups = new Map<NodeName, Claimant[]>();
  for (const claimant of claimants) {
    const { name } = claimant.placement.node;
    groups.set(name, [...(groups.get(name) ?? []), claimant]);
  }
  return groups;
}

/** Where the claim is not known, any pod may have used the volume. */
function mayHaveUsed(history: PodHistory, { hold }: Claimant): boolean {
  const claim = claimOf(hold.spec);
  return history.newcomers || (claim === undefined ? history.anyVolumes : history.claims.has(claim));
}

/** Unless a pod has used it since this process began: then its time has begun anew. */
function credit(context: Context, { placement, hold, sinceMs, waitedMs }: Claimant): void {
  if (placement.hold !== hold || placement.want || hold.unwantedSinceMs !== sinceMs) return;
  hold.unwantedSinceMs = sinceMs - Math.min(waitedMs, creditMax(placement, hold, context.options));
  context.placements.add(placementKey(placement));
}

function creditMax({ volume }: Placement, { spec }: Hold, options: AttachDetachOptions): number {
  const rule = forceRuleOf(volume.name, spec, options);
  return rule.kind === "after" ? Math.max(0, rule.ms - START_MS) : Infinity;
}

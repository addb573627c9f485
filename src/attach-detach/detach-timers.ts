import { configMaps, type ConfigMap } from "../kube/api/config-map.ts";
import { isKubeError } from "../kube/errors.ts";
import type { NodeName } from "../volumes/names.ts";
import { attachmentOf } from "./attachments.ts";
import type { Context } from "./context.ts";
import type { AttachDetachOptions } from "./options.ts";
import { readPodHistory, type PodHistory } from "./pod-history.ts";
import { forceRuleOf } from "./policy.ts";
import { claimOf, placementKey, type Hold, type Placement, type World } from "./world.ts";

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
 * Only what has waited for `WORTH_KEEPING_MS` is written, every `SAVE_MS` while there is anything: a normal detach is over
 * long before and costs no request. What is lost at worst is that much of the six minutes.
 */
export const TIMERS_NAME = "mooring-detach-timers";
const SAVE_MS = 30_000;
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

export function createDetachTimers(context: Context, { namespace }: { namespace: string }): DetachTimers {
  const { client, clock, log, world, mayAct, caches } = context;
  const ref = { namespace, name: TIMERS_NAME };
  let stored: ConfigMap | undefined;
  let usable = true;
  let fromVersion: string | undefined;
  let toVersion: string | undefined;
  let claimants: readonly Claimant[] = [];

  async function load(signal: AbortSignal): Promise<void> {
    toVersion = caches.pods.version();
    try {
      stored = await client.get(configMaps, ref, { signal });
      const { version, entries } = parse(stored.data?.["timers"]);
      fromVersion = version;
      claimants = claimantsOf(context, entries);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return;
      giveUp(error);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    await Promise.all([prove(signal), keep(signal)]);
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
    let kept = stored?.data?.["timers"] !== undefined;
    while (usable) {
      await clock.sleep(SAVE_MS, signal);
      const entries = collect(context, world);
      const version = caches.pods.version();
      if ((entries.length === 0 && !kept) || version === undefined || !mayAct()) continue;
      const timers = JSON.stringify({ version, entries: Object.fromEntries(entries) });
      if (await save(timers, signal)) kept = entries.length > 0;
    }
  }

  async function save(timers: string, signal: AbortSignal): Promise<boolean> {
    try {
      const data = { timers };
      const object: ConfigMap = stored ? { ...stored, data } : { metadata: { ...ref }, data };
      stored = stored
        ? await client.update(configMaps, object, { signal })
        : await client.create(configMaps, object, { signal });
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isKubeError(error, "Forbidden")) giveUp(error);
      // Somebody else wrote or removed it: the next round writes onto what is there.
      else stored = await client.get(configMaps, ref, { signal }).catch(() => undefined);
      return false;
    }
  }

  function giveUp(error: unknown): void {
    usable = false;
    log.warn("detach timers are kept in memory only: a restart begins them anew", { ...ref, error });
  }

  return { load, run };
}

/** `placement key -> what is kept`, of what has waited long enough to be worth it. */
function collect(context: Context, world: World): [string, Kept][] {
  const nowMs = context.clock.now();
  const waiting: { placement: Placement; sinceMs: number }[] = [];
  for (const placement of world.placements()) {
    const sinceMs = placement.hold?.unwantedSinceMs;
    const unwanted = placement.want === undefined && sinceMs !== undefined;
    if (unwanted && nowMs - sinceMs >= WORTH_KEEPING_MS) waiting.push({ placement, sinceMs });
  }
  waiting.sort((a, b) => a.sinceMs - b.sinceMs);
  return waiting.slice(0, ENTRIES_MAX).map(({ placement, sinceMs }) => {
    const waitedMs = Math.round(nowMs - sinceMs);
    return [placementKey(placement), { uid: attachmentUid(context, placement), waitedMs }];
  });
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

function claimantsOf(context: Context, entries: ReadonlyMap<string, Kept>): Claimant[] {
  if (entries.size === 0) return [];
  return [...context.world.placements()].flatMap((placement) => {
    const { hold, want } = placement;
    const kept = entries.get(placementKey(placement));
    if (!kept || want || hold?.unwantedSinceMs === undefined) return [];
    if (kept.uid !== attachmentUid(context, placement)) return [];
    return [{ placement, hold, sinceMs: hold.unwantedSinceMs, waitedMs: kept.waitedMs }];
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

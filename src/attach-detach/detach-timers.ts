import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { configMaps, type ConfigMap } from "../kube/api/config-map.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { placementKey, type Placement, type World } from "./world.ts";

/**
 * Since when nobody wants a volume, kept over restarts: the six minutes until a dead node's volume is forced off it would
 * otherwise begin anew each time another process leads. Kept in a ConfigMap beside the Lease; where the rights for
 * that are missing, in memory only, as upstream.
 *
 * Only what has waited for `WORTH_KEEPING_MS` is written, at most every `SAVE_MS`: a normal detach is over long before
 * and costs no request. What is lost at worst is that much of the six minutes.
 */
export const TIMERS_NAME = "mooring-detach-timers";
const SAVE_MS = 30_000;
const WORTH_KEEPING_MS = 30_000;
/** At 200 bytes each 800 kB, below the 1 MiB an object may take. The oldest are kept: they are due first. */
const ENTRIES_MAX = 4_000;

export interface DetachTimersDeps {
  readonly client: Pick<Client, "get" | "create" | "update">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly world: World;
  readonly mayAct: () => boolean;
}

export interface DetachTimers {
  /** Gives the placements found at the start the time they had already waited. */
  load(signal: AbortSignal): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

export function createDetachTimers(
  deps: DetachTimersDeps,
  { namespace }: { namespace: string },
): DetachTimers {
  const { client, clock, log, world, mayAct } = deps;
  const ref = { namespace, name: TIMERS_NAME };
  let stored: ConfigMap | undefined;
  let usable = true;

  async function load(signal: AbortSignal): Promise<void> {
    try {
      stored = await client.get(configMaps, ref, { signal });
      restore(deps, parse(stored.data?.["timers"]));
    } catch (error) {
      if (isKubeError(error, "NotFound")) return;
      giveUp(error);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let saved = stored?.data?.["timers"] ?? "{}";
    while (usable) {
      await clock.sleep(SAVE_MS, signal);
      const timers = JSON.stringify(Object.fromEntries(collect(world, clock)));
      if (timers === saved || !mayAct()) continue;
      if (await save(timers, signal)) saved = timers;
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

/** `placement key -> wall time`, of what has waited long enough to be worth it. */
function collect(world: World, clock: Clock): [string, string][] {
  const nowMs = clock.now();
  const waiting: { placement: Placement; sinceMs: number }[] = [];
  for (const placement of world.placements()) {
    const sinceMs = placement.hold?.unwantedSinceMs;
    if (sinceMs !== undefined && nowMs - sinceMs >= WORTH_KEEPING_MS) waiting.push({ placement, sinceMs });
  }
  waiting.sort((a, b) => a.sinceMs - b.sinceMs);
  const wallMs = clock.wall().getTime();
  return waiting
    .slice(0, ENTRIES_MAX)
    .map(({ placement, sinceMs }) => [
      placementKey(placement),
      new Date(wallMs - (nowMs - sinceMs)).toISOString(),
    ]);
}

function parse(text: string | undefined): ReadonlyMap<string, number> {
  try {
    const times = JSON.parse(text ?? "{}") as Record<string, unknown>;
    return new Map(
      Object.entries(times).flatMap(([key, time]) => {
        const ms = typeof time === "string" ? Date.parse(time) : NaN;
        return Number.isNaN(ms) ? [] : [[key, ms] as const];
      }),
    );
  } catch {
    return new Map();
  }
}

/** A time in the future, from a clock that was wrong, counts as now: unsure means wait. */
function restore({ world, clock }: DetachTimersDeps, timers: ReadonlyMap<string, number>): void {
  if (timers.size === 0) return;
  const wallMs = clock.wall().getTime();
  for (const placement of world.placements()) {
    const { hold } = placement;
    const unwantedAtMs = timers.get(placementKey(placement));
    if (hold?.unwantedSinceMs === undefined || unwantedAtMs === undefined) continue;
    hold.unwantedSinceMs = clock.now() - Math.max(0, wallMs - unwantedAtMs);
  }
}

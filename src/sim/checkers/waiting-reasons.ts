import { reportedWaits, waitLine, type Reported } from "../reported-waits.ts";
import type { World } from "../world.ts";
import { ATTACHER_JUDGES } from "./attacher-reasons.ts";
import { CALM_MS, createCalm } from "./calm.ts";
import { CONTROLLER_JUDGES } from "./controller-reasons.ts";
import { Facts } from "./facts.ts";
import { NODE_JUDGES } from "./node-reasons.ts";

/**
 * What a program shows may be as old as what it could know: events and its own timers take moments, and a reason that is
 * replaced by the next within that time was not seen by anybody. A node looks every 15 s whether a process has let go of a
 * volume, by a clock that may be slow, and the look takes moments too.
 */
const FALSE_MS_MAX = 20_000;

/**
 * Every waiting reason that the controller, the attacher or a node agent shows is true: one that has been untrue for 20 s, of
 * a process that had all the time and a good network, misleads whoever reads it.
 */
export function watchWaitingReasons(world: World): () => void {
  const facts = new Facts(world);
  const calm = createCalm(world);
  const told = new Set<string>();
  let untrue = new Map<string, number>();

  return () => {
    const { nowMs } = world.scheduler;
    const still = new Map<string, number>();
    calm.look();
    for (const wait of reportedWaits(world)) {
      const problem = calm.forMs(wait.process) < CALM_MS ? undefined : judge(wait, facts);
      if (problem === undefined) continue;
      const key = keyOf(wait);
      const sinceMs = untrue.get(key) ?? nowMs;
      still.set(key, sinceMs);
      if (nowMs - sinceMs < FALSE_MS_MAX || told.has(key)) continue;
      told.add(key);
      world.violate(
        `reason: ${waitLine(wait)}, but for ${Math.round((nowMs - sinceMs) / 1_000)} s ${problem}`,
      );
    }
    untrue = still;
  };
}

function judge(wait: Reported, facts: Facts): string | undefined {
  switch (wait.who) {
    case "controller":
      return CONTROLLER_JUDGES[wait.reason](wait, facts);
    case "attacher":
      return ATTACHER_JUDGES[wait.reason](wait, facts);
    case "node":
      return NODE_JUDGES[wait.reason](wait, facts);
  }
}

function keyOf({ process, reason, object, handle, node, pod, podUid, attachment }: Reported): string {
  return [process, reason, object.kind, object.name, handle, node, pod, podUid, attachment].join(" ");
}

import { hasStarted } from "../conditions.ts";
import { isDeleting, objectsAt, textAt, timeAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { AGREEMENTS } from "./agreements.ts";

/** Two facts of neighbouring links that cannot both be so. */
export interface Contradiction {
  readonly between: string;
  readonly one: string;
  readonly other: string;
}

/**
 * How long two objects may disagree because one was read or written a moment after the other. Kubelets report every 10 s and
 * controllers write within seconds; a minute is beyond both.
 */
const SETTLING_MS = 60_000;

/** None of a pod that ends or has just started: what changes is not contradictory. */
export function contradictionsOf(view: VolumeView): readonly Contradiction[] {
  const waits = view.pod !== undefined && !hasStarted(view.pod) && !isDeleting(view.pod);
  if (!waits && !isSettled(view)) return [];
  return AGREEMENTS.flatMap(({ between, reads, verdict, beforeStart }) => {
    if (waits && !beforeStart) return [];
    const [namespace] = view.claimId.split("/");
    if (!reads.every((kind) => view.cluster.knows(kind, namespace))) return [];
    const answer = verdict(view);
    return answer === undefined || answer === "agree" ? [] : [{ between, ...answer }];
  });
}

function isSettled({ pod, cluster }: VolumeView): boolean {
  const phase = textAt(pod, "status", "phase");
  if (pod === undefined || !hasStarted(pod) || isDeleting(pod)) return false;
  if (phase === "Succeeded" || phase === "Failed") return false;
  const startedMs = objectsAt(pod, "status", "containerStatuses")
    .map((status) => timeAt(status, "state", "running", "startedAt"))
    .filter((ms) => ms !== undefined);
  return !startedMs.some((ms) => cluster.nowMs - ms < SETTLING_MS);
}

/** In one line, as the first sentence and the list have it. */
export function inWords({ one, other }: Contradiction): string {
  return `${one}, but ${other}`;
}

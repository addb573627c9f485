import { basename, dirname } from "node:path";
import { jittered } from "../base/backoff.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import type { Context } from "./context.ts";
import { uidOf } from "./desired.ts";
import type { Progress } from "./progress.ts";
import { listOrphans } from "./restart/orphans.ts";
import { stillStray } from "./restart/strays.ts";
import { lookAgain } from "./restart/unlisted.ts";

/**
 * The safety net below the events: every few minutes each pod and volume is looked at once more, directories of pods that
 * are gone are looked for. A look at something settled changes nothing,
 * so what the audit finds to do is an event that was lost.
 */
const AUDIT_MS = 300_000;
/** Agents that were started together do not audit together. */
const JITTER = 0.2;
/** 1,000 volumes are looked at in 20 slices within 2 s, between which everything else has its turn. */
const SLICE = 50;
const PAUSE_MS = 100;

export interface Audited {
  readonly pods: WorkQueue<string>;
  readonly orphans: WorkQueue<string>;
  readonly state: Pick<Progress, "found">;
}

/** Whether a stray has gone is looked at this often, while there is one: `volumesInUse` is not free until then. */
const STRAYS_MS = 10_000;

export async function runAudit(context: Context, audited: Audited, signal: AbortSignal): Promise<void> {
  await Promise.all([
    every(
      context,
      () => jittered(AUDIT_MS, JITTER, context.random),
      signal,
      () => audit(context, audited, signal),
    ),
    every(
      context,
      () => STRAYS_MS,
      signal,
      () => lookAtStrays(context, audited),
    ),
  ]);
}

async function every(
  { clock, log }: Context,
  periodMs: () => number,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await clock.sleep(periodMs(), signal);
      await work();
    } catch (error) {
      // A directory that cannot be read now is read next time.
      if (!isOver(signal)) log.warn("audit not finished", { error });
    }
  }
}

async function audit(context: Context, audited: Audited, signal: AbortSignal): Promise<void> {
  const { world, caches, volumes, inUse } = context;
  const inSlices = async <T>(items: readonly T[], look: (item: T) => void) => {
    for (let at = 0; at < items.length; at += SLICE) {
      for (const item of items.slice(at, at + SLICE)) look(item);
      await context.clock.sleep(PAUSE_MS, signal);
    }
  };
  const uids = new Set([...world.pods.keys(), ...[...caches.pods.objects()].map(uidOf)]);
  await inSlices([...uids], (uid) => audited.pods.add(uid));
  await inSlices([...world.volumes.keys()], (name) => volumes.add(name));
  if (!context.readyToUnmount()) return;
  for (const { podUid } of await listOrphans(context)) audited.orphans.add(podUid);
  inUse.changed();
}

async function lookAtStrays(context: Context, { state }: Audited): Promise<void> {
  const before = state.found?.strays ?? [];
  if (before.length === 0) return;
  const strays: string[] = [];
  for (const path of await stillStray(context, before))
    strays.push(
      ...(dirname(path) === context.paths.pods ? await lookAgain(context, basename(path)) : [path]),
    );
  if (strays.length === before.length && strays.every((path, index) => path === before[index])) return;
  state.found = { strays };
  context.inUse.changed();
}

/** Asked again after an await, which the compiler takes for the same answer. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}

import { jittered } from "../base/backoff.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import type { Context } from "./context.ts";
import { uidOf } from "./desired.ts";
import { listOrphans } from "./restart/orphans.ts";
import { stillStray } from "./restart/strays.ts";

/**
 * The safety net below the events: every few minutes each pod and volume is looked at once more, directories of pods that
 * are gone are looked for, and strays that have gone meanwhile are dropped. A look at something settled changes nothing,
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
  strays(): readonly string[];
  setStrays(strays: readonly string[]): void;
}

export async function runAudit(context: Context, audited: Audited, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = context;
  while (!signal.aborted) {
    try {
      await clock.sleep(jittered(AUDIT_MS, JITTER, random), signal);
      await audit(context, audited, signal);
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
  if (audited.strays().length > 0) audited.setStrays(await stillStray(context, audited.strays()));
  inUse.changed();
}

/** Asked again after an await, which the compiler takes for the same answer. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}

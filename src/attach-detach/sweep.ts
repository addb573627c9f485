import { keyOf } from "../kube/object.ts";
import type { Context } from "./context.ts";
import { removePod, setPod, uidOf, type DesiredDeps } from "./desired.ts";
import { markAllUnsettled } from "./recover.ts";
import { inSlices } from "./slices.ts";

/**
 * The safety net: once a minute, in slices, every pod is compared with what we made of it, and every placement that is
 * on its way somewhere is looked at again. Events do all this sooner; this is for the one that got lost. A look at a
 * pod that has not changed costs two map lookups.
 */
const SWEEP_MS = 60_000;

export async function runSweep(context: Context, desired: DesiredDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    await context.clock.sleep(SWEEP_MS, signal);
    await sweep(context, desired, signal);
  }
}

async function sweep(context: Context, desired: DesiredDeps, signal: AbortSignal): Promise<void> {
  const { caches, clock, world } = context;
  await inSlices(clock, world.pods.values(), signal, ({ pod }) => {
    const cached = caches.pods.get(keyOf(pod));
    if (cached === undefined || uidOf(cached) !== uidOf(pod)) removePod(desired, pod, clock.now());
  });
  await inSlices(clock, caches.pods.objects(), signal, (pod) => {
    const again = world.pods.get(uidOf(pod))?.references.some(({ unresolved }) => unresolved) ?? false;
    setPod(desired, pod, { nowMs: clock.now(), again });
  });
  await markAllUnsettled(context, signal);
}

/**
 * Whether volumes of a driver are attached at all has changed, or a plugin came or went: every pod is followed anew, and what
 * no pod uses may be understood now. Rare, so it may be a walk.
 */
export async function followAll(context: Context, desired: DesiredDeps, signal: AbortSignal): Promise<void> {
  const { caches, clock } = context;
  await inSlices(clock, [...caches.pods.objects()], signal, (pod) =>
    setPod(desired, pod, { nowMs: clock.now(), again: true }),
  );
  await markAllUnsettled(context, signal);
}

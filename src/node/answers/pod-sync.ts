import { withEither } from "../../base/signals.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { referenceTo } from "../../kube/events/events.ts";
import type { Context } from "../context.ts";
import { uidOf } from "../desired.ts";
import { VolumeWaitError, type VolumeWaits } from "./waits.ts";

/**
 * Watches over every pod as a kubelet's pod worker does: waits for its volumes, and when the time is over says on the
 * pod which are missing and why, once a wait (2 min 3 s). Ends with the pod.
 */
export async function runPodSync(context: Context, waits: VolumeWaits, signal: AbortSignal): Promise<void> {
  /** Bound: one a pod of this node. */
  const watching = new Map<string, AbortController>();
  const running = new Set<Promise<void>>();
  const leave = context.caches.pods.addHandler(({ kind, object }) => {
    const uid = uidOf(object);
    if (kind === "deleted") {
      watching.get(uid)?.abort(new Error("the pod is gone"));
      watching.delete(uid);
    } else if (!watching.has(uid)) {
      const stop = new AbortController();
      watching.set(uid, stop);
      const work = withEither([stop.signal, signal], (either) =>
        watch(context, { waits, pod: object, signal: either }),
      );
      running.add(work);
      void work.finally(() => running.delete(work));
    }
  });
  if (!signal.aborted)
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  leave();
  await Promise.all(running);
}

async function watch(
  context: Context,
  { waits, pod, signal }: { waits: VolumeWaits; pod: Pod; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    try {
      await waits.waitForAttachAndMount(pod, signal);
      return;
    } catch (error) {
      if (signal.aborted || context.podStates.containersTerminating(uidOf(pod))) return;
      const message = error instanceof Error ? error.message : String(error);
      context.events.record({
        ref: referenceTo(pods, pod),
        type: "Warning",
        reason: "FailedMount",
        message: `Unable to attach or mount volumes: ${message}`,
      });
      // Nothing heals this by itself; the next look is as far away as a wait is long.
      const refused = error instanceof VolumeWaitError && error.reason !== "timeout";
      if (refused) await context.clock.sleep(REFUSED_MS, signal).catch(() => undefined);
    }
  }
}

const REFUSED_MS = 123_000;

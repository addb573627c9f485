import { jittered } from "../base/backoff.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Outcome } from "../kube/workqueue/controller.ts";
import type { ObjectRef, Resource } from "../kube/object.ts";
import { mark, type Context } from "./context.ts";
import { podRef } from "./populate.ts";
import { blockerKeyOf, objectsOf } from "./references.ts";
import type { VolumeState } from "./world.ts";

/**
 * Volumes whose content changes under the pod: set up again when an object they are made of changes, when labels or
 * annotations of the pod do, and now and then for what nobody announces: tokens that grow old, drivers that want to
 * publish again. A volume that cannot be refreshed delays none of the pod's others.
 */
const REFRESH_MS = 60_000;
/** Pods that came together should not refresh together. */
const REFRESH_JITTER = 0.5;

/** A token that could not be renewed is due at once, and for ever until it is. */
const TOKEN_RETRY_MS = 10_000;

export function refreshDelayMs({ random }: Pick<Context, "random">): number {
  return jittered(REFRESH_MS, REFRESH_JITTER, random);
}

/**
 * A pod's turn: everything of it that wants to be refreshed. The next comes when the first of its tokens is due, and in
 * a minute at the latest, also where nothing wants it now: a claim may be bound or a CSIDriver change meanwhile.
 */
export function refreshPod(context: Context, podUid: string): Outcome {
  const { world, clock, tokenDueAtMs } = context;
  if (!world.pods.has(podUid)) return { kind: "done" };
  for (const volume of world.volumesOf(podUid)) requestRefresh(context, volume, podUid);
  const dueMs = (tokenDueAtMs(podUid) ?? Infinity) - clock.now();
  return { kind: "after", ms: Math.min(refreshDelayMs(context), Math.max(dueMs, TOKEN_RETRY_MS)) };
}

/** An object changed that volumes of this pod may be made of. */
export function refreshByObject(context: Context, podUid: string, resource: Resource, ref: ObjectRef): void {
  const key = blockerKeyOf(resource, ref);
  const pod = context.world.pods.get(podUid)?.pod;
  if (!pod) return;
  const place = { podNamespace: podRef(pod).namespace, nodeName: context.nodeName };
  for (const volume of context.world.volumesOf(podUid)) {
    const spec = volume.wants.get(podUid)?.spec;
    if (spec && objectsOf(spec, place).some((use) => blockerKeyOf(use.resource, use.ref) === key))
      requestRefresh(context, volume, podUid);
  }
}

/** Labels and annotations are content of downwardAPI volumes. */
export function metadataChanged(before: Pod, after: Pod): boolean {
  const content = ({ metadata }: Pod) => JSON.stringify([metadata.labels ?? {}, metadata.annotations ?? {}]);
  return content(before) !== content(after);
}

/** A volume that is not mounted yet gets its content when it is. */
export function requestRefresh(context: Context, volume: VolumeState, podUid: string): void {
  const want = volume.wants.get(podUid);
  const mount = volume.held?.mounts.get(podUid);
  if (!want || !mount || !volume.plugin.traits(want.spec).requiresRemount) return;
  mount.remountRequired = true;
  mark(context, volume);
}

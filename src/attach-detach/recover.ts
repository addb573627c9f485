import type { Node } from "../kube/api/node.ts";
import type { NodeName, VolumeName } from "../volumes/names.ts";
import { markAttached } from "./actual.ts";
import { onAttachment } from "./attachments.ts";
import { isSettled, mark, type Context } from "./context.ts";
import { setPod, type DesiredDeps } from "./desired.ts";
import { endPresumptions } from "./node-view.ts";
import { nodeSeen, writeAgain } from "./nodes.ts";
import { keyOf } from "../kube/object.ts";
import { inSlices } from "./slices.ts";

/**
 * Takes stock after a start, from the API alone. The order matters:
 * - nodes first: what they list is attached, and what they use is mounted;
 * - then VolumeAttachments: one whose volume no node lists was interrupted on its way in or out, so it is uncertain;
 * - then pods. Only when all that is wanted is known may anything be detached.
 */
export async function takeStock(context: Context, desired: DesiredDeps, signal: AbortSignal): Promise<void> {
  const { caches, clock } = context;
  const nowMs = clock.now();
  await inSlices(clock, [...caches.nodes.objects()], signal, (node) => recoverNode(context, node));
  await inSlices(clock, [...caches.attachments.objects()], signal, (object) =>
    onAttachment(context, { kind: "added", key: keyOf(object), object }),
  );
  await inSlices(clock, [...caches.pods.objects()], signal, (pod) => setPod(desired, pod, { nowMs }));
}

/** Stock is taken: looks at every placement that is not where it should be. */
export async function markAllUnsettled(context: Context, signal: AbortSignal): Promise<void> {
  const { clock, world } = context;
  await inSlices(clock, world.placements(), signal, (placement) => {
    if (!isSettled(placement)) mark(context, placement);
  });
  await inSlices(clock, world.nodes.values(), signal, (state) => writeAgain(context, state));
}

function recoverNode(context: Context, node: Node): void {
  const { world, clock } = context;
  const name = node.metadata.name as NodeName;
  for (const { name: volume, devicePath } of node.status?.volumesAttached ?? []) {
    if (typeof volume !== "string" || volume === "") continue;
    const placement = world.placement(volume as VolumeName, name);
    markAttached(context, placement, {
      spec: undefined,
      devicePath,
      listed: true,
      proven: false,
      nowMs: clock.now(),
    });
  }
  // What is mounted is what the node says: of one that has just been read only that is presumed which is older than it.
  endPresumptions(world.node(name));
  nodeSeen(context, node);
}

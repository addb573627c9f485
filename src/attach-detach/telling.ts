import type { ObjectReference } from "kubernetes-types/core/v1.js";
import { nodes } from "../kube/api/node.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import { referenceTo } from "../kube/events/events.ts";
import { specName } from "../volumes/spec.ts";
import type { Context } from "./context.ts";
import type { TracedHolder } from "./foreign.ts";
import { describeHolder, isSurelyHeld } from "./holders.ts";
import { waitingForDetach } from "./messages.ts";
import { including, type Placement, type Want } from "./world.ts";

/** Events: upstream's to pods, ours also to nodes. `docs/reference/events.md` lists them. */

type Type = "Normal" | "Warning";

export function tellPods(
  { events }: Context,
  told: readonly Pod[],
  { type, reason, message }: { readonly type: Type; readonly reason: string; readonly message: string },
): void {
  for (const pod of new Set(told)) events.record({ ref: referenceTo(pods, pod), type, reason, message });
}

export function tellNode(
  { events }: Context,
  { node }: Placement,
  { type, reason, message }: { readonly type: Type; readonly reason: string; readonly message: string },
): void {
  events.record({ ref: nodeReference(node), type, reason, message });
}

/** Kubelets refer to their node by name also as uid, and `kubectl describe node` looks for that. */
function nodeReference({ name, node }: Placement["node"]): ObjectReference {
  return node
    ? { ...referenceTo(nodes, node), uid: name }
    : { apiVersion: "v1", kind: "Node", name, uid: name };
}

/**
 * The volume is still elsewhere. The first pods are told as upstream does; those that come later, and those
 * that wait for a node which only may hold it, get an event of our own, so that no pod waits without a word.
 */
export function tellWaiting(
  context: Context,
  want: Want,
  { holders, traced }: { readonly holders: readonly Placement[]; readonly traced: readonly TracedHolder[] },
): void {
  const users = holders.flatMap(({ want: other }) => other?.pods ?? []);
  const surely = holders.some(isSurelyHeld);
  // Upstream has no words for what somebody else attached: there is nothing of its own to be detached.
  const ours = holders.some(({ hold }) => hold?.confirmed === true);
  const first = want.told.size === 0;
  const volume = specName(want.spec);
  for (const pod of new Set(want.pods)) {
    const uid = pod.metadata.uid ?? "";
    if (want.told.has(uid)) continue;
    want.told = including(want.told, uid);
    if (ours && first) {
      const message = waitingForDetach(volume, pod, users);
      tellPods(context, [pod], { type: "Warning", reason: "FailedAttachVolume", message });
    } else {
      const nodeNames = [...holders.map(describeHolder), ...traced.map(({ node }) => node)].join(", ");
      const message = `Volume "${volume}" ${surely ? "is still" : "may be"} attached to ${nodeNames}; it is attached here once it is let go there`;
      tellPods(context, [pod], { type: "Warning", reason: "WaitingForDetach", message });
    }
  }
}

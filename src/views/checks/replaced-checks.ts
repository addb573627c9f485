import type { KubeObject } from "../../kube/object.ts";
import { eventTime } from "../cluster.ts";
import { createdAt, idOf, oneLine, textAt, timeAt } from "../fields.ts";
import type { MooringWait } from "../objects.ts";
import type { Evidence, Finding } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";
import { seenWait } from "./agent-checks.ts";
import { found, seen, type Check } from "./check.ts";

/**
 * A pod that runs keeps what was mounted when it started. Where its claim or PersistentVolume is gone or another by now,
 * the objects speak of something that the pod does not have: said by its node, by the objects themselves, or in an event.
 */
export const volumeReplaced: Check = (view) => {
  const { pod, claimId } = view;
  const phase = textAt(pod, "status", "phase");
  if (pod === undefined || claimId === "" || phase === "Succeeded" || phase === "Failed") return undefined;
  return goneInApi(view) ?? saidByNode(view) ?? seenInObjects(view) ?? toldByEvent(view);
};

/**
 * The object that led to the disk does not exist: said before the node's words, which are that the claim is not bound. What the
 * node knows is the disk itself, from which a PersistentVolume can be made again.
 */
function goneInApi(view: VolumeView): Finding | undefined {
  const { cluster, claim, claimId, pv, pvName } = view;
  const [namespace] = claimId.split("/");
  const named = `PersistentVolumeClaim ${claimId}`;
  if (claim === undefined)
    return cluster.knows("claims", namespace)
      ? gone(view, `its claim ${claimId} does not exist any more`, seen(named, "metadata.name", ""))
      : undefined;
  if (pvName === "" || pv !== undefined || !cluster.knows("volumes")) return undefined;
  if (isYounger(view, claim)) return undefined;
  return gone(
    view,
    `its PersistentVolume ${pvName} does not exist any more`,
    seen(named, "spec.volumeName", pvName),
  );
}

function saidByNode(view: VolumeView): Finding | undefined {
  const wait = waitOfNode(view);
  return wait && replaced(view, wait.message, [seenWait(wait)], wait.sinceMs);
}

function waitOfNode(view: VolumeView): MooringWait | undefined {
  return view.cluster
    .waitsAbout(idOf(view.pod))
    .find((item) => item.process === "node" && item.node === view.nodeName && concerns(view, item.message));
}

/** As the agent words it, with the pod's own name of the volume. */
function concerns({ volumeName }: VolumeView, message: string): boolean {
  return message.startsWith(`volume "${volumeName}" of the pod stays `);
}

function seenInObjects(view: VolumeView): Finding | undefined {
  const { claim, claimId, pv, pvName } = view;
  const named = `PersistentVolumeClaim ${claimId}`;
  const younger =
    bornAfterStart(view, claim, named) ?? bornAfterStart(view, pv, `PersistentVolume ${pvName}`);
  if (younger !== undefined) return younger;
  const [bound, uid] = [textAt(pv, "spec", "claimRef", "uid"), textAt(claim, "metadata", "uid")];
  if (pv === undefined || bound === uid || bound === "" || uid === "") return undefined;
  return replaced(view, `PersistentVolume ${pvName} is bound to another claim than ${claimId} now`, [
    seen(`PersistentVolume ${pvName}`, "spec.claimRef.uid", bound),
    seen(named, "metadata.uid", uid),
  ]);
}

/** Nothing leads to the data but the pod: whoever ends it before saving them loses them. */
function gone(view: VolumeView, message: string, evidence: Evidence): Finding {
  const wait = waitOfNode(view);
  return {
    ...replaced(view, message, [evidence, ...(wait ? [seenWait(wait)] : [])], wait?.sinceMs),
    next: "nothing: what is mounted stays until the pod ends, and no new pod can get it",
    help: {
      none: "do not end the pod before what its volume has is saved: nothing else in the API leads to it",
      look: "kubectl --namespace {ns} get pod {podName} --output yaml",
    },
  };
}

/** A pod starts after its claims are bound: what is younger than its start took the place of what it has. */
function bornAfterStart(
  view: VolumeView,
  object: KubeObject | undefined,
  named: string,
): Finding | undefined {
  if (!isYounger(view, object)) return undefined;
  const evidence = [
    seen(named, "metadata.creationTimestamp", textAt(object, "metadata", "creationTimestamp")),
    seen(`Pod ${idOf(view.pod)}`, "status.startTime", textAt(view.pod, "status", "startTime")),
  ];
  return replaced(
    view,
    `${named} was made after the pod had started, in place of another`,
    evidence,
    createdAt(object),
  );
}

function isYounger({ pod }: VolumeView, object: KubeObject | undefined): boolean {
  const [bornMs, startedMs] = [createdAt(object), timeAt(pod, "status", "startTime")];
  return bornMs !== undefined && startedMs !== undefined && bornMs > startedMs;
}

function toldByEvent(view: VolumeView): Finding | undefined {
  const { cluster, pod } = view;
  const event = cluster
    .eventsOf("Pod", idOf(pod))
    .find((item) => textAt(item, "reason") === "VolumeReplaced" && concerns(view, textAt(item, "message")));
  if (event === undefined) return undefined;
  const message = textAt(event, "message");
  return replaced(
    view,
    message,
    [seen(`Event of Pod ${idOf(pod)}`, "VolumeReplaced", message)],
    eventTime(event),
  );
}

function replaced(
  view: VolumeView,
  message: string,
  evidence: readonly Evidence[],
  sinceMs?: number,
): Finding {
  return found("volume-replaced", view, { names: { message: oneLine(message) }, evidence, sinceMs });
}

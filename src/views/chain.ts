import { seenWait, waitOf } from "./checks/agent-checks.ts";
import { seen } from "./checks/check.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { eventTime } from "./cluster.ts";
import { hasStarted, isOutOfService, readinessOf } from "./conditions.ts";
import { createdAt, field, idOf, isDeleting, nameOf, objectsAt, textAt, textsAt } from "./fields.ts";
import type { Evidence } from "./reasons/reasons.ts";
import type { Link } from "./reasons/words.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "./volume-view.ts";

/** One link between a pod and its data, as the objects show it now. */
export interface ChainLink {
  readonly link: Link;
  readonly object: string;
  readonly state: string;
  readonly sinceMs: number | undefined;
  readonly evidence: readonly Evidence[];
}

/** pod -> claim -> PersistentVolume -> attachment -> node -> driver -> mount. */
export function chainOf(view: VolumeView): readonly ChainLink[] {
  const links = [podLink, claimLink, volumeLink, attachmentLinks, nodeLink, driverLink, mountLink];
  return links.flatMap((describe) => describe(view) ?? []);
}

type Describe = (view: VolumeView) => ChainLink | undefined;

const podLink: Describe = ({ pod }) => {
  if (pod === undefined) return undefined;
  const node = textAt(pod, "spec", "nodeName");
  return {
    link: "pod",
    object: idOf(pod),
    state: isDeleting(pod) ? "ending" : textAt(pod, "status", "phase") || "unknown",
    sinceMs: createdAt(pod),
    evidence: [seen(`Pod ${idOf(pod)}`, "spec.nodeName", node)],
  };
};

const claimLink: Describe = ({ cluster, claim, claimId }) => {
  if (claimId === "") return undefined;
  const phase = textAt(claim, "status", "phase") || "no phase";
  return {
    link: "claim",
    object: claimId,
    state:
      claim === undefined
        ? absent(cluster.knows("claims", claimId.split("/")[0]))
        : isDeleting(claim)
          ? `${phase}, deleting`
          : phase,
    sinceMs: createdAt(claim),
    evidence: [
      seen(
        `PersistentVolumeClaim ${claimId}`,
        "spec.storageClassName",
        field(claim, "spec", "storageClassName"),
      ),
      seen(
        `PersistentVolumeClaim ${claimId}`,
        "spec.accessModes",
        textsAt(claim, "spec", "accessModes").join(", "),
      ),
    ],
  };
};

const volumeLink: Describe = ({ cluster, pv, pvName, claimId }) => {
  if (pvName === "") return claimId === "" ? undefined : unknown("volume", "no PersistentVolume yet");
  const phase = textAt(pv, "status", "phase") || "no phase";
  const [driver, handle] = ["driver", "volumeHandle"].map((key) => textAt(pv, "spec", "csi", key));
  return {
    link: "volume",
    object: pvName,
    state:
      pv === undefined ? absent(cluster.knows("volumes")) : isDeleting(pv) ? `${phase}, deleting` : phase,
    sinceMs: createdAt(pv),
    evidence: [seen(`PersistentVolume ${pvName}`, "spec.csi", driver && `${driver} ${handle ?? ""}`)],
  };
};

/** One; or, where others have the volume, one for each of them. */
function attachmentLinks(view: VolumeView): readonly ChainLink[] | undefined {
  const { attachment, cluster, needsAttach, driver } = view;
  if (driver === "") return undefined;
  if (!needsAttach) return [unknown("attachment", "not needed by this driver")];
  const foreign = view.foreign.map((item) => linkElsewhere(item, "not a controller's, "));
  if (attachment === undefined) {
    const others = [...foreign, ...view.otherAttachments.map((item) => linkElsewhere(item))];
    return others.length > 0 ? others : [unknown("attachment", absent(cluster.knows("attachments")))];
  }
  const attached = isAttachedHere(view) ? "attached" : "not attached";
  const named = `VolumeAttachment ${nameOf(attachment)}`;
  return [
    {
      link: "attachment",
      object: nameOf(attachment),
      state: isDeleting(attachment) ? "detaching" : attached,
      sinceMs: createdAt(attachment),
      evidence: [seen(named, "status.attached", field(attachment, "status", "attached"))],
    },
    ...foreign,
    ...(view.exclusive && isAttachedHere(view)
      ? view.otherAttachments.map((item) => linkElsewhere(item))
      : []),
  ];
}

/** Not here, but there: which is the answer where only one node may have it. Or here, but somebody else's. */
function linkElsewhere(other: VolumeAttachment, whose = ""): ChainLink {
  const node = textAt(other, "spec", "nodeName");
  return {
    link: "attachment",
    object: nameOf(other),
    state: `${whose}${isDeleting(other) ? `detaching from ${node}` : `on ${node}`}`,
    sinceMs: createdAt(other),
    evidence: [
      seen(`VolumeAttachment ${nameOf(other)}`, "spec.nodeName", node),
      seen(`VolumeAttachment ${nameOf(other)}`, "status.attached", field(other, "status", "attached")),
    ],
  };
}

const nodeLink: Describe = ({ cluster, node, nodeName, uniqueName }) => {
  if (nodeName === "") return undefined;
  const { ready, condition, sinceMs } = readinessOf(node);
  const state = isOutOfService(node) ? "out of service" : ready ? "ready" : "not ready";
  return {
    link: "node",
    object: nodeName,
    state: node === undefined ? absent(cluster.knows("nodes")) : state,
    sinceMs,
    evidence: [
      ...(node === undefined ? [] : [seen(`Node ${nodeName}`, "status.conditions[Ready]", condition)]),
      ...(uniqueName === ""
        ? []
        : [
            seen(`Node ${nodeName}`, "status.volumesAttached", nodeLists(node, uniqueName) ? "lists it" : ""),
          ]),
    ],
  };
};

const driverLink: Describe = ({ cluster, driver, nodeName }) => {
  if (driver === "" || nodeName === "") return undefined;
  const csiNode = cluster.find("csiNodes", nodeName);
  const drivers = objectsAt(csiNode, "spec", "drivers").map((item) => textAt(item, "name"));
  const state = drivers.includes(driver) ? "registered" : "not registered";
  return {
    link: "driver",
    object: driver,
    state: cluster.knows("csiNodes") ? state : absent(false),
    sinceMs: createdAt(cluster.find("csiDrivers", driver)),
    evidence: [seen(`CSINode ${nodeName}`, "spec.drivers", drivers.join(", "))],
  };
};

const mountLink: Describe = (view) => {
  const { cluster, pod, node, nodeName, uniqueName, volumeName } = view;
  if (pod === undefined || nodeName === "") return undefined;
  const inUse = uniqueName !== "" && textsAt(node, "status", "volumesInUse").includes(uniqueName);
  const usage = seen(`Node ${nodeName}`, "status.volumesInUse", inUse ? "lists it" : "");
  const link = { link: "mount", object: volumeName || "–" } as const;
  if (hasStarted(pod)) return { ...link, state: "mounted", sinceMs: undefined, evidence: [usage] };
  const state = inUse ? "in use, not mounted yet" : "not mounted";
  // What the node says now is worth more than what it once wrote into an event.
  const wait = waitOf(view);
  if (wait !== undefined) return { ...link, state, sinceMs: wait.sinceMs, evidence: [usage, seenWait(wait)] };
  const event = cluster
    .eventsOf("Pod", idOf(pod))
    .find((item) => /^Failed(Mount|Map)/.test(textAt(item, "reason")));
  if (event === undefined) return { ...link, state, sinceMs: undefined, evidence: [usage] };
  const failure = seen(`Event of Pod ${idOf(pod)}`, textAt(event, "reason"), textAt(event, "message"));
  return { ...link, state, sinceMs: eventTime(event), evidence: [usage, failure] };
};

function absent(known: boolean): string {
  return known ? "missing" : "unknown: not permitted to read";
}

function unknown(link: Link, state: string): ChainLink {
  return { link, object: "–", state, sinceMs: undefined, evidence: [] };
}

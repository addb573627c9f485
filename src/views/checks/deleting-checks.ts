import { hasStarted } from "../conditions.ts";
import { field, idOf, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";
import type { Evidence } from "../reasons/reasons.ts";

/*
 * Claims and PersistentVolumes that were deleted and are still there. A finalizer says who has to let go: what is said is who
 * that is, since "it waits for its finalizers" leaves the reader with a command that destroys data.
 */

const CLAIM_PROTECTION = "kubernetes.io/pvc-protection";

/** Who set the finalizers that Kubernetes and its sidecars use on claims. */
const CLAIM_KEEPERS: Readonly<Record<string, string>> = {
  "snapshot.storage.kubernetes.io/pvc-as-source-protection": "a VolumeSnapshot that is being taken of it",
  "provisioner.storage.kubernetes.io/cloning-protection": "a claim that is being cloned from it",
};

/** A pod that runs keeps the claim: only one that has not started is stopped by its deletion. */
export const claimDeleting: Check = (view) => {
  const { claim, cluster, pod } = view;
  if (!isDeleting(claim) || (pod !== undefined && hasStarted(pod))) return undefined;
  const users = cluster.podsOfClaim(view.claimId).filter(isPlaced).map(idOf);
  const others = textsAt(claim, "metadata", "finalizers").filter((name) => name !== CLAIM_PROTECTION);
  const shared = { evidence: claimDeletion(view), sinceMs: timeAt(claim, "metadata", "deletionTimestamp") };
  if (users.length === 0 && others.length > 0)
    return found("claim-finalizers", view, {
      names: { keepers: others.map((name) => keeper(name, CLAIM_KEEPERS)).join(" and ") },
      ...shared,
    });
  return found("claim-deleting", view, {
    names: { users: users.length === 0 ? "none is left" : `pod ${users.join(", ")}` },
    ...shared,
  });
};

/** What the protection of claims counts: a pod that has a node and is not over. */
function isPlaced(pod: object): boolean {
  return textAt(pod, "spec", "nodeName") !== "";
}

/** The pod goes on, but what it writes is lost when it ends: it is not well. */
export const claimDeletedInUse: Check = (view) => {
  const { claim, pod, pv } = view;
  if (!isDeleting(claim) || !isAlive(pod)) return undefined;
  const policy = textAt(pv, "spec", "persistentVolumeReclaimPolicy");
  const fate = policy === "Retain" ? "its volume stays, Released" : "with it its volume and the data";
  return found("claim-deleted-in-use", view, {
    names: { users: idOf(pod), fate },
    evidence: claimDeletion(view),
    sinceMs: timeAt(claim, "metadata", "deletionTimestamp"),
  });
};

export const volumeDeletedInUse: Check = (view) => {
  const { pv, pod } = view;
  if (!isDeleting(pv) || !isAlive(pod)) return undefined;
  const policy = textAt(pv, "spec", "persistentVolumeReclaimPolicy");
  const fate =
    policy === "Retain" ? "its disk stays" : `its disk is deleted with it (policy ${policy || "Delete"})`;
  return found("volume-deleted-in-use", view, {
    names: { fate },
    evidence: volumeDeletion(view),
    sinceMs: timeAt(pv, "metadata", "deletionTimestamp"),
    ...(policy === "Retain" && {
      help: {
        none: "a deletion cannot be taken back; the disk can be given a new PersistentVolume afterwards",
        look: "kubectl get pv {pv} --output yaml",
      },
    }),
  });
};

function isAlive(pod: VolumeView["pod"]): boolean {
  const phase = textAt(pod, "status", "phase");
  return pod !== undefined && hasStarted(pod) && phase !== "Succeeded" && phase !== "Failed";
}

/** Of a volume that no pod which runs has: who keeps it, the more certain first. */
export const volumeDeleting: Check = (view) => {
  const { pv, pod } = view;
  if (!isDeleting(pv) || (pod !== undefined && hasStarted(pod))) return undefined;
  return found("volume-deleting", view, {
    names: { keepers: volumeKeepers(view) },
    evidence: volumeDeletion(view),
    sinceMs: timeAt(pv, "metadata", "deletionTimestamp"),
  });
};

/** Protection looks at the claim, an attacher at its attachments, and a provisioner at the disk. */
function volumeKeepers({ cluster, pv, pvName }: VolumeView): string {
  const attached = cluster
    .attachmentsOf(pvName)
    .map((item) => `VolumeAttachment ${nameOf(item)} has it on node ${textAt(item, "spec", "nodeName")}`);
  const claims = cluster
    .claimsOf(pvName)
    .filter((id) => textAt(cluster.find("claims", id), "status", "phase") === "Bound")
    .map((id) => `claim ${id} is bound to it`);
  const failed = cluster
    .eventsOf("PersistentVolume", pvName)
    .find((event) => textAt(event, "reason") === "VolumeFailedDelete");
  const disk =
    failed === undefined ? [] : [`its disk cannot be deleted: ${oneLine(textAt(failed, "message"))}`];
  const finalizers = textsAt(pv, "metadata", "finalizers").join(", ") || "none";
  const known = [...claims, ...attached, ...disk];
  return known.length === 0 ? `its finalizers keep it (${finalizers})` : known.join(", and ");
}

function keeper(finalizer: string, known: Readonly<Record<string, string>>): string {
  const who = Object.hasOwn(known, finalizer) ? known[finalizer] : undefined;
  return who === undefined ? `the finalizer ${finalizer}` : `${who} (finalizer ${finalizer})`;
}

function claimDeletion({ claim, claimId }: VolumeView): Evidence[] {
  return deletion(claim, `PersistentVolumeClaim ${claimId}`);
}

function volumeDeletion({ pv, pvName }: VolumeView): Evidence[] {
  return deletion(pv, `PersistentVolume ${pvName}`);
}

function deletion(object: unknown, named: string): Evidence[] {
  return [
    seen(named, "metadata.deletionTimestamp", field(object, "metadata", "deletionTimestamp")),
    seen(named, "metadata.finalizers", field(object, "metadata", "finalizers")),
  ];
}

import { field, idOf, isDeleting, createdAt, textAt, textsAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { seen, type Check, found } from "./check.ts";
import { hasStarted } from "../conditions.ts";

const claimNamed = ({ claimId }: VolumeView) => `PersistentVolumeClaim ${claimId}`;

export const claimMissing: Check = (view) => {
  const { cluster, claimId, claim } = view;
  if (claimId === "" || claim !== undefined || !cluster.knows("claims", claimId.split("/")[0]))
    return undefined;
  const evidence = [seen(`Pod ${idOf(view.pod)}`, `spec.volumes[${view.volumeName}]`, claimId)];
  return found("claim-missing", view, { evidence, sinceMs: createdAt(view.pod) });
};

export const claimNotOwned: Check = (view) => {
  if (view.resolution?.kind !== "unresolved" || view.resolution.why !== "claim-not-owned") return undefined;
  const owners = field(view.claim, "metadata", "ownerReferences");
  return found("claim-not-owned", view, {
    evidence: [seen(claimNamed(view), "metadata.ownerReferences", owners)],
  });
};

/** A pod that runs keeps the claim: only one that has not started is stopped by its deletion. */
export const claimDeleting: Check = (view) => {
  const { claim, cluster, pod } = view;
  if (!isDeleting(claim) || (pod !== undefined && hasStarted(pod))) return undefined;
  const users = cluster.podsOfClaim(view.claimId).filter(hasStarted).map(idOf);
  return found("claim-deleting", view, {
    names: { users: users.length === 0 ? "none is left" : `pod ${users.join(", ")}` },
    evidence: [
      seen(claimNamed(view), "metadata.deletionTimestamp", field(claim, "metadata", "deletionTimestamp")),
      seen(claimNamed(view), "metadata.finalizers", field(claim, "metadata", "finalizers")),
    ],
  });
};

export const claimLost: Check = (view) => {
  if (phaseOf(view) !== "Lost") return undefined;
  return found("claim-lost", view, { evidence: [seen(claimNamed(view), "status.phase", "Lost")] });
};

/** The claim names its volume, and that one is somebody else's or cannot be used. */
export const namedVolumeTaken: Check = (view) => {
  const { claim, pv, claimId } = view;
  if (claim === undefined || pv === undefined || phaseOf(view) === "Bound" || phaseOf(view) === "Lost")
    return undefined;
  const uid = textAt(pv, "spec", "claimRef", "uid");
  const other = `${textAt(pv, "spec", "claimRef", "namespace")}/${textAt(pv, "spec", "claimRef", "name")}`;
  if (uid !== "" && uid !== textAt(claim, "metadata", "uid") && other !== claimId) {
    const evidence = [
      seen(claimNamed(view), "spec.volumeName", view.pvName),
      seen(`PersistentVolume ${view.pvName}`, "spec.claimRef", other),
    ];
    return found("volume-bound-elsewhere", view, { names: { other }, evidence });
  }
  return undefined;
};

export const accessModeUnmet: Check = (view) => {
  if (view.claim === undefined || view.pv === undefined) return undefined;
  const modes = textsAt(view.claim, "spec", "accessModes");
  const offered = textsAt(view.pv, "spec", "accessModes");
  if (phaseOf(view) === "Bound" || offered.length === 0) return undefined;
  const unmet = modes.filter((mode) => !offered.includes(mode));
  if (unmet.length === 0) return undefined;
  return found("access-mode-unmet", view, {
    names: { modes: unmet.join(", "), offered: offered.join(", ") },
    evidence: [
      seen(claimNamed(view), "spec.accessModes", modes),
      seen(`PersistentVolume ${view.pvName}`, "spec.accessModes", offered),
    ],
  });
};

export function phaseOf({ claim }: VolumeView): string {
  return textAt(claim, "status", "phase");
}

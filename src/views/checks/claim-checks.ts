import { field, idOf, createdAt, nameOf, objectsAt, textAt, textsAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { seen, type Check, found } from "./check.ts";

const claimNamed = ({ claimId }: VolumeView) => `PersistentVolumeClaim ${claimId}`;

export const claimMissing: Check = (view) => {
  const { cluster, claimId, claim } = view;
  if (claimId === "" || claim !== undefined || !cluster.knows("claims", claimId.split("/")[0]))
    return undefined;
  const evidence = [seen(`Pod ${idOf(view.pod)}`, `spec.volumes[${view.volumeName}]`, claimId)];
  const elsewhere = namespacesWith(view);
  const besides =
    elsewhere.length === 0
      ? undefined
      : `one of that name is in namespace ${elsewhere.join(", ")}, but a pod can use claims of its own namespace only`;
  const sinceMs = createdAt(view.pod);
  if (isEphemeral(view)) return found("claim-not-made", view, { evidence, sinceMs });
  return found("claim-missing", view, { evidence, besides, sinceMs });
};

/** Written into the pod: a controller makes the claim, and nobody else should. */
function isEphemeral({ pod, volumeName }: VolumeView): boolean {
  const volume = objectsAt(pod, "spec", "volumes").find((item) => textAt(item, "name") === volumeName);
  return field(volume, "ephemeral") !== undefined;
}

/** Who has no claim here often made it there. */
function namespacesWith({ cluster, claimId }: VolumeView): readonly string[] {
  const [, name = ""] = claimId.split("/");
  return cluster.objects.claims
    .filter((claim) => nameOf(claim) === name)
    .map((claim) => textAt(claim, "metadata", "namespace"));
}

export const claimNotOwned: Check = (view) => {
  if (view.resolution?.kind !== "unresolved" || view.resolution.why !== "claim-not-owned") return undefined;
  const owners = field(view.claim, "metadata", "ownerReferences");
  return found("claim-not-owned", view, {
    evidence: [seen(claimNamed(view), "metadata.ownerReferences", owners)],
  });
};

export const claimLost: Check = (view) => {
  if (phaseOf(view) !== "Lost") return undefined;
  return found("claim-lost", view, {
    names: { pv: view.pvName || "(it names none any more)" },
    evidence: [seen(claimNamed(view), "status.phase", "Lost")],
  });
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

import { matchesNodeAffinity, termsInWords } from "../node-terms.ts";
import { hasStarted } from "../conditions.ts";
import { field, idOf, isDeleting, objectsAt, textAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";
import { phaseOf } from "./claim-checks.ts";

const volumeNamed = ({ pvName }: VolumeView) => `PersistentVolume ${pvName}`;

export const volumeMissing: Check = (view) => {
  const { cluster, pv, pvName } = view;
  if (pvName === "" || pv !== undefined || !cluster.knows("volumes")) return undefined;
  const evidence = [seen(`PersistentVolumeClaim ${view.claimId}`, "spec.volumeName", pvName)];
  return found("volume-missing", view, { evidence });
};

export const volumeNotBoundBack: Check = (view) => {
  const { claim, pv } = view;
  if (claim === undefined || pv === undefined || phaseOf(view) !== "Bound") return undefined;
  const uid = textAt(pv, "spec", "claimRef", "uid");
  if (uid === textAt(claim, "metadata", "uid")) return undefined;
  const name = textAt(pv, "spec", "claimRef", "name");
  const other = name === "" ? "no claim" : `claim ${textAt(pv, "spec", "claimRef", "namespace")}/${name}`;
  return found("volume-not-bound-back", view, {
    names: { other: uid === "" || name === "" ? other : `${other} with uid ${uid}` },
    evidence: [seen(volumeNamed(view), "spec.claimRef.uid", uid)],
  });
};

/** A claim that waits for a volume by name, or a PersistentVolume that somebody asks about. */
export const volumeReleased: Check = (view) => {
  const phase = textAt(view.pv, "status", "phase");
  if (phase !== "Released" && phase !== "Failed") return undefined;
  const other = `${textAt(view.pv, "spec", "claimRef", "namespace")}/${textAt(view.pv, "spec", "claimRef", "name")}`;
  const policy = textAt(view.pv, "spec", "persistentVolumeReclaimPolicy");
  return found(phase === "Released" ? "volume-released" : "volume-failed", view, {
    names: {
      other,
      policy,
      message: textAt(view.pv, "status", "message") || textAt(view.pv, "status", "reason"),
    },
    evidence: [
      seen(volumeNamed(view), "status.phase", phase),
      seen(volumeNamed(view), "spec.persistentVolumeReclaimPolicy", policy),
    ],
  });
};

export const volumeDeleting: Check = (view) => {
  if (!isDeleting(view.pv) || (view.pod !== undefined && hasStarted(view.pod))) return undefined;
  const holders = view.cluster.attachmentsOf(view.pvName).map((item) => textAt(item, "spec", "nodeName"));
  return found("volume-deleting", view, {
    names: {
      finalizers: listed(field(view.pv, "metadata", "finalizers")),
      holders: holders.length === 0 ? "it is attached nowhere" : `attached to ${holders.join(", ")}`,
    },
    evidence: [
      seen(volumeNamed(view), "metadata.deletionTimestamp", field(view.pv, "metadata", "deletionTimestamp")),
    ],
  });
};

export const volumeNodeConflict: Check = (view) => {
  const { node, pv } = view;
  if (node === undefined || pv === undefined) return undefined;
  const terms = objectsAt(pv, "spec", "nodeAffinity", "required", "nodeSelectorTerms");
  if (terms.length === 0 || matchesNodeAffinity(node, terms)) return undefined;
  return found("volume-node-conflict", view, {
    names: { terms: termsInWords(terms) },
    evidence: [
      seen(volumeNamed(view), "spec.nodeAffinity", termsInWords(terms)),
      seen(`Node ${view.nodeName}`, "metadata.labels", field(node, "metadata", "labels")),
    ],
  });
};

/** Raw devices and file systems cannot stand for each other; the pod is admitted all the same. */
export const volumeModeMismatch: Check = (view) => {
  if (view.claim === undefined || view.pod === undefined) return undefined;
  const mode = textAt(view.claim, "spec", "volumeMode") || "Filesystem";
  const [wrong, wanted] =
    mode === "Block"
      ? (["volumeMounts", "volumeDevices"] as const)
      : (["volumeDevices", "volumeMounts"] as const);
  const containers = [
    ...objectsAt(view.pod, "spec", "containers"),
    ...objectsAt(view.pod, "spec", "initContainers"),
  ];
  const container = containers.find((item) =>
    objectsAt(item, wrong).some((use) => textAt(use, "name") === view.volumeName),
  );
  if (container === undefined) return undefined;
  return found("volume-mode-mismatch", view, {
    names: { mode, wanted, field: wrong, container: textAt(container, "name") },
    evidence: [
      seen(`PersistentVolumeClaim ${view.claimId}`, "spec.volumeMode", mode),
      seen(
        `Pod ${idOf(view.pod)}`,
        `spec.containers[${textAt(container, "name")}].${wrong}`,
        view.volumeName,
      ),
    ],
  });
};

export const untranslatable: Check = (view) => {
  if (view.resolution?.kind !== "unresolved" || view.resolution.why !== "untranslatable") return undefined;
  const { message } = view.resolution;
  const object = view.pvName === "" ? `Pod ${idOf(view.pod)}` : volumeNamed(view);
  return found("untranslatable", view, { names: { message }, evidence: [seen(object, "spec", message)] });
};

function listed(value: unknown): string {
  return Array.isArray(value)
    ? value.filter((item) => typeof item === "string").join(", ") || "none"
    : "none";
}

import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Cluster } from "../cluster.ts";
import { claimRefOf } from "../fit.ts";
import { matchesNodeAffinity, termsInWords } from "../node-terms.ts";
import { field, idOf, isDeleting, nameOf, objectsAt, textAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import type { Finding } from "../reasons/reasons.ts";
import { found, seen, type Check } from "./check.ts";
import { phaseOf } from "./claim-checks.ts";

const volumeNamed = ({ pvName }: VolumeView) => `PersistentVolume ${pvName}`;

/** Another PersistentVolume of the same disk: each is attached, formatted and deleted as if it were alone. */
export const handleShared: Check = (view) => {
  const { cluster, pv, pvName } = view;
  const [driver, handle] = [textAt(pv, "spec", "csi", "driver"), textAt(pv, "spec", "csi", "volumeHandle")];
  if (handle === "") return undefined;
  const others = cluster.volumesOfDisk(driver, handle).filter((other) => nameOf(other) !== pvName);
  if (others.length === 0) return undefined;
  return found("volume-handle-shared", view, {
    names: { driver, handle, others: others.map((other) => usedAs(cluster, other)).join(", ") },
    evidence: [pv, ...others].map((item) =>
      seen(`PersistentVolume ${nameOf(item)}`, "spec.csi.volumeHandle", handle),
    ),
  });
};

/** Of a pod that waits, it is the cause only where the other one has the disk: attached, or with a pod that uses it. */
export const handleSharedInUse: Check = (view) => {
  const { cluster, pvName, pv } = view;
  const inUse = cluster
    .volumesOfDisk(textAt(pv, "spec", "csi", "driver"), textAt(pv, "spec", "csi", "volumeHandle"))
    .filter((other) => nameOf(other) !== pvName)
    .some((other) => cluster.attachmentsOf(nameOf(other)).length > 0 || podsOf(cluster, other).length > 0);
  return inUse ? handleShared(view) : undefined;
};

function podsOf(cluster: Cluster, volume: PersistentVolume): readonly Pod[] {
  return cluster.podsOfClaim(claimRefOf(volume));
}

function usedAs(cluster: Cluster, volume: PersistentVolume): string {
  const claim = claimRefOf(volume);
  const pods = podsOf(cluster, volume).map((pod) => {
    const node = textAt(pod, "spec", "nodeName");
    return node === "" ? idOf(pod) : `${idOf(pod)} on node ${node}`;
  });
  const use = pods.length === 0 ? "no pod uses it" : `pod ${pods.join(", ")} uses it`;
  return `${nameOf(volume)} (${claim === "" ? "no claim" : `claim ${claim}`}; ${use})`;
}

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
  if ((phase !== "Released" && phase !== "Failed") || isDeleting(view.pv)) return undefined;
  const other = claimRefOf(view.pv);
  const owner = view.cluster.find("claims", other);
  if (phase === "Released" && owner?.metadata.uid === textAt(view.pv, "spec", "claimRef", "uid"))
    return releasedWithOwner(view, other);
  const policy = textAt(view.pv, "spec", "persistentVolumeReclaimPolicy");
  const kept = policy === "Retain" ? "volume-released" : "volume-not-reclaimed";
  return found(phase === "Released" ? kept : "volume-failed", view, {
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

/** Only a claim that is gone releases its volume. */
function releasedWithOwner(view: VolumeView, claim: string): Finding {
  const [one, two] = [
    `PersistentVolume ${view.pvName} is Released`,
    `claim ${claim}, which it is for, exists`,
  ];
  return found("contradiction", view, {
    names: { facts: `${one}, but ${two}` },
    evidence: [seen("PersistentVolume and claim", one, two)],
  });
}

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

import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { KubeObject } from "../../kube/object.ts";
import { createdAt, field, oneLine, textAt } from "../fields.ts";
import { candidatesFor, meantFor, misfitsInWords } from "../fit.ts";
import type { Finding, Reason } from "../reasons/reasons.ts";
import type { Help } from "../reasons/words.ts";
import type { VolumeView } from "../volume-view.ts";
import { phaseOf } from "./claim-checks.ts";
import { found, seen, type Check } from "./check.ts";

const DEFAULT_CLASS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];
const SELECTED_NODE = "volume.kubernetes.io/selected-node";

/** Why a claim that is not bound has no volume: its class, then whom it waits for, then the provisioner. */
export const claimUnbound: Check = (view) => {
  const { claim, cluster } = view;
  if (claim === undefined || phaseOf(view) === "Bound" || phaseOf(view) === "Lost") return undefined;
  const name = field(claim, "spec", "storageClassName");
  if (name === "") return withoutVolume(view, "its class is empty");
  if (typeof name !== "string") return withoutClass(view);
  const storageClass = cluster.find("storageClasses", name);
  if (storageClass === undefined && cluster.knows("storageClasses")) return classMissing(view, name);
  return ofClass(view, name, storageClass);
};

/** Volumes that somebody makes by hand have a class in common that need not exist: then it is one of them that is missing. */
function classMissing(view: VolumeView, name: string): Finding {
  if (candidates(view).length > 0) return withoutVolume(view, `nobody makes volumes of class ${name}`);
  const names = view.cluster.objects.storageClasses.map(({ metadata }) => metadata.name ?? "").sort();
  const there = names.length === 0 ? "there is none at all" : `there is: ${names.join(", ")}`;
  return { ...unbound("class-missing", view, { class: name }), besides: there };
}

function candidates({ cluster, claim }: VolumeView): readonly PersistentVolume[] {
  return claim === undefined ? [] : candidatesFor(cluster, claim);
}

/** It takes only what exists: what speaks against each that it could have. */
function withoutVolume(view: VolumeView, why: string): Finding {
  const { claim } = view;
  const misfits = claim === undefined ? "" : misfitsInWords(claim, candidates(view));
  if (misfits === "") return unbound("claim-static-unmatched", view, { which: why });
  return unbound("claim-volume-unfit", view, { which: why, misfits });
}

/** A claim that names its volume, or a volume that names its claim, and the two do not fit. */
export const namedVolumeUnfit: Check = (view) => {
  const { claim, cluster } = view;
  if (claim === undefined || phaseOf(view) === "Bound" || phaseOf(view) === "Lost") return undefined;
  const meant = meantFor(cluster, claim);
  const [first] = meant;
  if (first === undefined) return undefined;
  const misfits = misfitsInWords(claim, meant);
  return misfits === ""
    ? unbound("binder-silent", view, { meant: first.metadata.name ?? "" })
    : unbound("claim-volume-unfit", view, { which: "it is meant for one", misfits });
};

/** A node that was chosen for the claim, and is no more: no provisioner makes a volume for it. */
export const selectedNodeMissing: Check = (view) => {
  const { claim, cluster } = view;
  const selected = textAt(claim, "metadata", "annotations", SELECTED_NODE);
  if (selected === "" || phaseOf(view) === "Bound" || phaseOf(view) === "Lost") return undefined;
  if (cluster.find("nodes", selected) !== undefined || !cluster.knows("nodes")) return undefined;
  return found("selected-node-missing", view, {
    names: { selected },
    evidence: [
      seen(`PersistentVolumeClaim ${view.claimId}`, `metadata.annotations[${SELECTED_NODE}]`, selected),
      seen("Node", "metadata.name", `no ${selected}`),
    ],
    sinceMs: createdAt(claim),
  });
};

function withoutClass(view: VolumeView): Finding | undefined {
  const { cluster } = view;
  const fallback = cluster.objects.storageClasses.find((item) =>
    DEFAULT_CLASS.some((key) => field(item, "metadata", "annotations", key) === "true"),
  );
  if (fallback !== undefined) return ofClass(view, fallback.metadata.name ?? "", fallback);
  if (!cluster.knows("storageClasses")) return undefined;
  const misfits = view.claim === undefined ? "" : misfitsInWords(view.claim, candidates(view));
  const finding = unbound("claim-no-class", view, { class: "" });
  const [only, ...others] = cluster.objects.storageClasses;
  // A command needs the one class that is meant.
  const help = only !== undefined && others.length === 0 ? undefined : NO_DEFAULT;
  return {
    ...finding,
    names: { ...finding.names, class: only?.metadata.name ?? "" },
    ...(help && { help }),
    ...(misfits !== "" && { besides: misfits }),
  };
}

const NO_DEFAULT: Help = {
  none: "make one class the default with the annotation storageclass.kubernetes.io/is-default-class=true",
  look: "kubectl get storageclasses",
};

const NO_PROVISIONER = "kubernetes.io/no-provisioner";

function ofClass(view: VolumeView, name: string, storageClass: KubeObject | undefined): Finding | undefined {
  const names = { class: name, provisioner: textAt(storageClass, "provisioner") };
  const selected = textAt(view.claim, "metadata", "annotations", SELECTED_NODE);
  const waits = textAt(storageClass, "volumeBindingMode") === "WaitForFirstConsumer" && selected === "";
  if (waits && view.pod === undefined) return unbound("claim-waits-for-pod", view, names);
  // The scheduler is asked first: it says in an event of the pod why it chose no node. A class that could not be read
  // may be one that waits for it.
  if ((waits || storageClass === undefined) && view.pod !== undefined && view.nodeName === "")
    return undefined;
  if (waits) return unbound("claim-bypasses-scheduler", view, names);
  if (names.provisioner === NO_PROVISIONER) return withoutVolume(view, `class ${name} has no provisioner`);
  return unbound("provisioner-silent", view, names);
}

/** Events of the claim in which a provisioner or the binder says what went wrong. */
const FAILURES = new Set(["ProvisioningFailed", "FailedBinding", "VolumeFailed", "VolumeMismatch"]);

export const provisionFailed: Check = (view) => {
  if (view.claim === undefined || phaseOf(view) === "Bound" || phaseOf(view) === "Lost") return undefined;
  const events = view.cluster.eventsOf("PersistentVolumeClaim", view.claimId);
  const event = events.find((item) => FAILURES.has(textAt(item, "reason")));
  const message = textAt(event, "message");
  // These two only repeat what the claim itself says, and less exactly.
  if (event === undefined || /storageclass.*not found|no persistent volumes available/.test(message)) {
    return undefined;
  }
  // The binder says this, which makes no volumes.
  if (textAt(event, "reason") === "VolumeMismatch")
    return unbound("claim-volume-unfit", view, { which: "it is meant for one", misfits: oneLine(message) });
  const provisioner =
    textAt(view.claim, "metadata", "annotations", "volume.kubernetes.io/storage-provisioner") ||
    textAt(event, "source", "component") ||
    textAt(event, "reportingComponent") ||
    textAt(
      view.cluster.find("storageClasses", textAt(view.claim, "spec", "storageClassName")),
      "provisioner",
    ) ||
    "of the claim";
  return found("provision-failed", view, {
    names: { message, provisioner },
    evidence: [seen(`Event of PersistentVolumeClaim ${view.claimId}`, textAt(event, "reason"), message)],
    sinceMs: createdAt(view.claim),
  });
};

function unbound(reason: Reason, view: VolumeView, names: Readonly<Record<string, string>>): Finding {
  const claim = `PersistentVolumeClaim ${view.claimId}`;
  return found(reason, view, {
    names,
    evidence: [
      seen(claim, "status.phase", phaseOf(view)),
      seen(claim, "spec.storageClassName", field(view.claim, "spec", "storageClassName")),
    ],
    sinceMs: createdAt(view.claim),
  });
}

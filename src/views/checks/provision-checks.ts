import type { KubeObject } from "../../kube/object.ts";
import { createdAt, field, textAt } from "../fields.ts";
import type { Finding, Reason } from "../reasons/reasons.ts";
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
  if (name === "") return unbound("claim-static-unmatched", view, { class: "" });
  if (typeof name !== "string") return withoutClass(view);
  const storageClass = cluster.find("storageClasses", name);
  if (storageClass === undefined && cluster.knows("storageClasses")) {
    return unbound("class-missing", view, { class: name });
  }
  return ofClass(view, name, storageClass);
};

function withoutClass(view: VolumeView): Finding | undefined {
  const { cluster } = view;
  const fallback = cluster.objects.storageClasses.find((item) =>
    DEFAULT_CLASS.some((key) => field(item, "metadata", "annotations", key) === "true"),
  );
  if (fallback !== undefined) return ofClass(view, fallback.metadata.name ?? "", fallback);
  return cluster.knows("storageClasses") ? unbound("claim-no-class", view, { class: "" }) : undefined;
}

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
  const provisioner =
    textAt(view.claim, "metadata", "annotations", "volume.kubernetes.io/storage-provisioner") ||
    textAt(event, "source", "component") ||
    textAt(event, "reportingComponent");
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

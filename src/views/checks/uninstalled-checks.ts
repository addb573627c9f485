import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { Cluster } from "../cluster.ts";
import { isDeleting, nameOf, objectsAt, textAt, textsAt, timeAt } from "../fields.ts";
import type { Finding } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen } from "./check.ts";

/** Whether nothing in the cluster speaks for the driver. A CSIDriver is optional, so that its absence alone says nothing. */
export function isUninstalled(cluster: Cluster, driver: string): boolean {
  if (driver === "" || !cluster.knows("csiDrivers") || !cluster.knows("csiNodes")) return false;
  if (cluster.find("csiDrivers", driver) !== undefined) return false;
  return !cluster.objects.csiNodes.some((csiNode) =>
    objectsAt(csiNode, "spec", "drivers").some((item) => textAt(item, "name") === driver),
  );
}

/** A VolumeAttachment that is deleted, and whose driver is not there to let go of it. */
export function driverUninstalled(
  view: VolumeView,
  attachment: VolumeAttachment | undefined,
): Finding | undefined {
  const driver = textAt(attachment, "spec", "attacher");
  if (!isDeleting(attachment) || !isUninstalled(view.cluster, driver)) return undefined;
  const finalizers = textsAt(attachment, "metadata", "finalizers").join(", ") || "none";
  const node = textAt(attachment, "spec", "nodeName");
  const pv = textAt(attachment, "spec", "source", "persistentVolumeName") || "(inline)";
  return found("driver-uninstalled", view, {
    names: { attachment: nameOf(attachment), driver, node, holder: node, pv, finalizers },
    evidence: [
      seen(`VolumeAttachment ${nameOf(attachment)}`, "metadata.finalizers", finalizers),
      seen("CSIDriver", "metadata.name", `no ${driver}`),
      seen("CSINodes", "spec.drivers", `none has ${driver}`),
    ],
    sinceMs: timeAt(attachment, "metadata", "deletionTimestamp"),
  });
}

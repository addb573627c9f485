import { MANAGED_ATTACH_ANNOTATION } from "../../kube/api/node.ts";
import { readinessOf } from "../conditions.ts";
import type { Cluster } from "../cluster.ts";
import { createdAt, field, idOf, nameOf, numberAt, objectsAt, textAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";
import { isUninstalled } from "./uninstalled-checks.ts";

export const nodeMissing: Check = (view) => {
  const { cluster, node, nodeName } = view;
  if (nodeName === "" || node !== undefined || !cluster.knows("nodes")) return undefined;
  const evidence = [seen(`Pod ${idOf(view.pod)}`, "spec.nodeName", nodeName)];
  return found("node-missing", view, { evidence, sinceMs: createdAt(view.pod) });
};

export const nodeNotReady: Check = (view) => {
  if (view.node === undefined) return undefined;
  const { ready, condition, sinceMs } = readinessOf(view.node);
  if (ready) return undefined;
  const evidence = [seen(`Node ${view.nodeName}`, "status.conditions[Ready]", condition)];
  return found("node-not-ready", view, { names: { condition }, evidence, sinceMs });
};

export const nodeNotManaged: Check = (view) => {
  if (view.node === undefined || !view.needsAttach || view.attachment !== undefined) return undefined;
  const annotation = field(view.node, "metadata", "annotations", MANAGED_ATTACH_ANNOTATION);
  if (annotation !== undefined) return undefined;
  const evidence = [seen(`Node ${view.nodeName}`, `metadata.annotations[${MANAGED_ATTACH_ANNOTATION}]`, "")];
  return found("node-not-managed", view, { evidence });
};

/** The driver's node plugin; without it nothing of the driver can be attached or mounted there. */
export const driverNotRegistered: Check = (view) => {
  const { cluster, driver, nodeName, node } = view;
  if (driver === "" || node === undefined || !cluster.knows("csiNodes")) return undefined;
  const csiNode = cluster.find("csiNodes", nodeName);
  if (csiNode === undefined) {
    const evidence = [seen("CSINode", "metadata.name", `no ${nodeName}`)];
    return found("csinode-missing", view, { evidence, besides: notInstalled(view) });
  }
  const drivers = objectsAt(csiNode, "spec", "drivers").map((item) => textAt(item, "name"));
  if (drivers.includes(driver)) return undefined;
  const evidence = [seen(`CSINode ${nodeName}`, "spec.drivers", drivers.join(", "))];
  return found("driver-not-registered", view, { evidence, besides: notInstalled(view) });
};

function notInstalled({ cluster, driver }: VolumeView): string | undefined {
  return isUninstalled(cluster, driver)
    ? "the driver is not installed at all: no CSIDriver has its name, and no node has registered it"
    : undefined;
}

/** Only while it is not attached yet: what is attached has its place. */
export const attachLimit: Check = (view) => {
  const { cluster, driver, nodeName, attachment } = view;
  if (!view.needsAttach || nodeName === "" || field(attachment, "status", "attached") === true)
    return undefined;
  const limit = limitOf(cluster, nodeName, driver);
  const used = attachedCount(cluster, nodeName, driver, nameOf(attachment));
  if (limit === undefined || used < limit) return undefined;
  return found("attach-limit", view, {
    names: { limit: String(limit) },
    evidence: [
      seen(`CSINode ${nodeName}`, `spec.drivers[${driver}].allocatable.count`, limit),
      seen("VolumeAttachments", `on ${nodeName} by ${driver}`, used),
    ],
  });
};

export function limitOf(cluster: Cluster, node: string, driver: string): number | undefined {
  const drivers = objectsAt(cluster.find("csiNodes", node), "spec", "drivers");
  return numberAt(
    drivers.find((item) => textAt(item, "name") === driver),
    "allocatable",
    "count",
  );
}

export function attachedCount(cluster: Cluster, node: string, driver: string, except = ""): number {
  return cluster
    .attachmentsOn(node)
    .filter((item) => textAt(item, "spec", "attacher") === driver && nameOf(item) !== except).length;
}

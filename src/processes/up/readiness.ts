import type { KubeObject } from "../../kube/object.ts";
import { compareQuantities, parseQuantity } from "../../kube/quantity.ts";
import { field, objectsAt, textAt } from "../../views/fields.ts";

/** What has become of an object of a manifest, once it is as whoever wrote it wants it; undefined while it is not. Pure. */
export function readyAs(kind: string, object: KubeObject): string | undefined {
  return (READY[kind] ?? (() => "made"))(object);
}

const READY: Readonly<Record<string, (object: KubeObject) => string | undefined>> = {
  Pod(pod) {
    const isReady = objectsAt(pod, "status", "conditions").some(
      (condition) => textAt(condition, "type") === "Ready" && textAt(condition, "status") === "True",
    );
    return isReady ? `ready on ${textAt(pod, "spec", "nodeName")}` : undefined;
  },
  PersistentVolumeClaim(claim) {
    if (textAt(claim, "status", "phase") !== "Bound") return undefined;
    const wanted = textAt(claim, "spec", "resources", "requests", "storage");
    const has = textAt(claim, "status", "capacity", "storage");
    if (isLess(has, wanted)) return undefined;
    return `bound to ${textAt(claim, "spec", "volumeName")}, ${has}`;
  },
  VolumeSnapshot: (snapshot) =>
    field(snapshot, "status", "readyToUse") === true
      ? `ready to use, ${textAt(snapshot, "status", "restoreSize")}`
      : undefined,
};

function isLess(one: string, other: string): boolean {
  try {
    return compareQuantities(parseQuantity(one), parseQuantity(other)) < 0;
  } catch {
    return false;
  }
}

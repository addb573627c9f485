import type { CSINodeDriver } from "kubernetes-types/storage/v1.js";
import type { CSINode } from "../../kube/api/csi-node.ts";

/** Registered on the node. A list that was never filled comes as null, whatever the type says. */
export function driversOf(csiNode: CSINode | undefined): readonly CSINodeDriver[] {
  const drivers: readonly CSINodeDriver[] | null | undefined = csiNode?.spec.drivers;
  return drivers ?? [];
}

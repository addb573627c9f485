import type { Node } from "../kube/api/node.ts";
import { attachedCount } from "./checks/node-checks.ts";
import type { Cluster } from "./cluster.ts";
import { STANDING_COLUMNS, standing, type Column, type Standing } from "./columns.ts";
import { isOutOfService, readinessOf } from "./conditions.ts";
import { explainNode } from "./explain-node.ts";
import { nameOf, numberAt, objectsAt, textAt, textsAt } from "./fields.ts";

export interface NodeRow extends Standing {
  readonly name: string;
  readonly attached: number;
  readonly inUse: number;
  readonly drivers: readonly { readonly name: string; readonly attached: number; readonly limit?: number }[];
}

export const NODE_COLUMNS: readonly Column<NodeRow>[] = [
  { title: "NAME", text: ({ name }) => name },
  { title: "ATTACHED", text: ({ attached }) => String(attached) },
  { title: "IN-USE", text: ({ inUse }) => String(inUse) },
  { title: "DRIVERS", text: ({ drivers }) => drivers.map(driverText).join(",") },
  ...STANDING_COLUMNS,
];

function driverText({ name, attached, limit }: NodeRow["drivers"][number]): string {
  return `${name} ${attached}/${limit ?? "-"}`;
}

/** Also nodes that are gone while something is still attached to them. */
export function nodeRows(cluster: Cluster): readonly NodeRow[] {
  const gone = cluster.objects.attachments
    .map((item) => textAt(item, "spec", "nodeName"))
    .filter((name) => name !== "" && cluster.find("nodes", name) === undefined);
  const known = cluster.objects.nodes.map((node) => rowOf(cluster, nameOf(node), node));
  return [...known, ...[...new Set(gone)].map((name) => rowOf(cluster, name, undefined))];
}

function rowOf(cluster: Cluster, name: string, node: Node | undefined): NodeRow {
  const { ready, sinceMs } = readinessOf(node);
  const explained = explainNode(cluster, name);
  const absent = cluster.knows("nodes") ? "gone" : "unknown";
  const health = isOutOfService(node) ? "out of service" : ready ? "ready" : "not ready";
  return {
    ...standing(name, node === undefined ? absent : health, {
      sinceMs,
      reason: explained?.blocker?.reason,
      why: explained?.healthy === false ? explained.summary.replace(/\.$/, "") : undefined,
    }),
    name,
    attached: cluster.attachmentsOn(name).length,
    inUse: textsAt(node, "status", "volumesInUse").length,
    drivers: objectsAt(cluster.find("csiNodes", name), "spec", "drivers").map((item) => {
      const [driver, limit] = [textAt(item, "name"), numberAt(item, "allocatable", "count")];
      return {
        name: driver,
        attached: attachedCount(cluster, name, driver),
        ...(limit !== undefined && { limit }),
      };
    }),
  };
}

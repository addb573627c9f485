import { attachmentRows } from "./attachments.ts";
import type { Cluster } from "./cluster.ts";
import { STANDING_COLUMNS, type Column, type Standing } from "./columns.ts";
import { volumeRows, type VolumeRow } from "./volumes.ts";

/** Something that is not finished: a volume on its way to a pod, or away from a node. */
export interface OperationRow extends Standing {
  readonly operation: "provision" | "schedule" | "attach" | "mount" | "grow" | "detach" | "wait";
  readonly volume: string;
  readonly node: string;
  readonly pod: string;
}

export const OPERATION_COLUMNS: readonly Column<OperationRow>[] = [
  { title: "OPERATION", text: ({ operation }) => operation },
  { title: "VOLUME", text: ({ volume }) => volume },
  { title: "NODE", text: ({ node }) => node },
  { title: "POD", text: ({ pod }) => pod },
  ...STANDING_COLUMNS,
];

const OPERATIONS: Readonly<Record<string, OperationRow["operation"]>> = {
  unbound: "provision",
  unscheduled: "schedule",
  attaching: "attach",
  held: "attach",
  mounting: "mount",
  growing: "grow",
  waiting: "wait",
};

export function operationRows(cluster: Cluster): readonly OperationRow[] {
  const forward = volumeRows(cluster).flatMap((row) => {
    const operation = row.reason?.startsWith("expand-") ? "grow" : OPERATIONS[row.state];
    return operation === undefined || row.reason === undefined ? [] : [fromVolume(row, operation)];
  });
  const backward = attachmentRows(cluster)
    .filter(({ state, reason, pods }) => state === "detaching" || (reason !== undefined && pods.length === 0))
    .map(({ pods, volume, node, ...row }) => ({
      ...row,
      operation: "detach" as const,
      volume,
      node,
      pod: pods.join(","),
    }));
  return [...forward, ...backward];
}

function fromVolume(row: VolumeRow, operation: OperationRow["operation"]): OperationRow {
  const { key, state, sinceMs, reason, why } = row;
  return {
    key: `${operation} ${key}`,
    state,
    ...(sinceMs !== undefined && { sinceMs }),
    ...(reason !== undefined && { reason }),
    ...(why !== undefined && { why }),
    operation,
    volume: row.volume || row.claim,
    node: row.node,
    pod: row.pod && `${row.namespace}/${row.pod}`,
  };
}

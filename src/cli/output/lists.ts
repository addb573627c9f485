import { ATTACHMENT_COLUMNS, attachmentRows } from "../../views/attachments.ts";
import type { Cluster } from "../../views/cluster.ts";
import type { Column, Standing } from "../../views/columns.ts";
import { DRIVER_COLUMNS, driverRows } from "../../views/drivers.ts";
import { NODE_COLUMNS, nodeRows } from "../../views/nodes.ts";
import { OPERATION_COLUMNS, operationRows } from "../../views/operations.ts";
import { BASE_KINDS, type ObjectKind } from "../../views/objects.ts";
import type { ListName } from "./list-names.ts";
import { VOLUME_COLUMNS, volumeRows } from "../../views/volumes.ts";

export interface ListOptions {
  readonly wide: boolean;
  /** One namespace, or undefined for all; lists without namespaces do not care. */
  readonly namespace: string | undefined;
}

/** A row, as cells for people and as an object for programs. */
export interface ListedRow {
  readonly key: string;
  readonly state: string;
  readonly cells: readonly string[];
  readonly object: Readonly<Record<string, unknown>>;
}

export interface List {
  /** What has to be read for it; events, the most numerous of all, explain only what waits. */
  readonly kinds: readonly ObjectKind[];
  titles(options: ListOptions): readonly string[];
  rows(cluster: Cluster, options: ListOptions): readonly ListedRow[];
}

/** Rows and columns of one kind belong together; nobody outside needs to know which kind. */
function list<Row extends Standing>(
  columns: readonly Column<Row>[],
  rowsOf: (cluster: Cluster) => readonly Row[],
  kinds: readonly ObjectKind[] = BASE_KINDS,
): List {
  const shown = ({ wide, namespace }: ListOptions) =>
    columns.filter((column) => (wide || !column.wide) && (namespace === undefined || !column.namespaces));
  return {
    kinds,
    titles: (options) => shown(options).map(({ title }) => title),
    rows(cluster, options) {
      const columnsShown = shown(options);
      return rowsOf(cluster)
        .filter((row) => isIn(row, options.namespace))
        .map((row) => ({
          key: row.key,
          state: row.state,
          cells: columnsShown.map((column) => column.text(row, cluster.nowMs)),
          // Made when asked for: a table of ten thousand rows does without.
          get object() {
            return toObject(row);
          },
        }));
    },
  };
}

/** Volumes without a claim are nobody's, and shown with all namespaces. */
function isIn(row: Standing, namespace: string | undefined): boolean {
  return namespace === undefined || !("namespace" in row) || row.namespace === namespace;
}

/** Times as the API writes them; the key is only for telling changes. */
function toObject({ key: _, sinceMs, ...row }: Standing): Readonly<Record<string, unknown>> {
  return { ...row, ...(sinceMs !== undefined && { since: new Date(sinceMs).toISOString() }) };
}

/** Counts of what names a driver; no pod and no event says anything about them. */
const DRIVER_KINDS: readonly ObjectKind[] = ["csiDrivers", "csiNodes", "attachments", "volumes", "nodes"];

export const LISTS: Readonly<Record<ListName, List>> = {
  volumes: list(VOLUME_COLUMNS, volumeRows),
  attachments: list(ATTACHMENT_COLUMNS, attachmentRows),
  nodes: list(NODE_COLUMNS, nodeRows),
  drivers: list(DRIVER_COLUMNS, driverRows, DRIVER_KINDS),
  operations: list(OPERATION_COLUMNS, operationRows),
};

import { stringify } from "yaml";
import type { Cluster } from "../../views/cluster.ts";
import { changesBetween, type Change } from "./changes.ts";
import type { ListName } from "./list-names.ts";
import type { List, ListedRow, ListOptions } from "./lists.ts";
import { fitTable, formatTable, type FittedTable } from "./table.ts";

export type OutputFormat = "table" | "wide" | "json" | "yaml";

/** What was asked for, and how it is to look. */
export interface Printing {
  readonly name: ListName;
  readonly list: List;
  readonly format: OutputFormat;
  /** One namespace, or undefined for all. */
  readonly namespace: string | undefined;
  /** Columns of text that a table is laid out for; `wide` is never cut. */
  readonly width: number;
}

/** Prints a list once. An empty one is no error: people are told so on stderr, programs get an empty list. */
export function formatList(printing: Printing, cluster: Cluster): { stdout: string; stderr: string } {
  const { name, list, format } = printing;
  const options = optionsOf(printing);
  const rows = list.rows(cluster, options);
  const document = () => ({ kind: "List", of: name, items: rows.map(({ object }) => object) });
  if (format === "json") return { stdout: JSON.stringify(document(), null, 2), stderr: "" };
  if (format === "yaml") return { stdout: stringify(document()).trimEnd(), stderr: "" };
  if (rows.length === 0) return { stdout: "", stderr: nothing(printing) };
  const [titles, cells] = [list.titles(options), rows.map((row) => row.cells)];
  if (format === "wide") return { stdout: formatTable(titles, cells), stderr: "" };
  const table = fitTable(titles, cells, printing.width);
  return { stdout: [table.header, ...cells.map((row) => table.row(row))].join("\n"), stderr: "" };
}

/** Prints a list, then a line for every row that changes. */
export function createLivePrinter(
  printing: Printing,
  print: (text: string) => void,
): (cluster: Cluster) => void {
  const { list, format } = printing;
  const options = optionsOf(printing);
  let before: readonly ListedRow[] = [];
  let table: FittedTable | undefined;

  function line(change: Change): string {
    const document = { type: change.type, object: change.row.object };
    if (format === "json") return JSON.stringify(document);
    if (format === "yaml") return `---\n${stringify(document).trimEnd()}`;
    return table?.row(cellsOf(change, list, options)) ?? "";
  }

  return (cluster) => {
    const after = list.rows(cluster, options);
    if (table === undefined) {
      const width = format === "wide" ? Infinity : printing.width;
      table = fitTable(
        list.titles(options),
        after.map(({ cells }) => cells),
        width,
      );
      if (format === "table" || format === "wide") print(table.header);
    }
    for (const change of changesBetween(before, after)) print(line(change));
    before = after;
  };
}

/** A row that went says so where its state was, and has no reasons any more. */
function cellsOf({ type, row }: Change, list: List, options: ListOptions): readonly string[] {
  if (type !== "DELETED") return row.cells;
  const titles = list.titles(options);
  return row.cells.map((cell, column) =>
    titles[column] === "STATE" ? "gone" : titles[column] === "WHY" || titles[column] === "SINCE" ? "" : cell,
  );
}

function optionsOf({ format, namespace }: Printing): ListOptions {
  return { wide: format === "wide", namespace };
}

function nothing({ name, namespace }: Printing): string {
  const where =
    name === "volumes" && namespace !== undefined ? ` in namespace ${namespace} (-A shows all)` : "";
  return `no ${name}${where}`;
}

import { ageSince } from "./age.ts";

/** One column of a list: its title, and what a row shows in it. The command line and the dashboard use the same ones. */
export interface Column<Row> {
  readonly title: string;
  /** Only where there is room: `-o wide`. */
  readonly wide?: boolean;
  /** Only where rows of several namespaces are shown. */
  readonly namespaces?: boolean;
  text(row: Row, nowMs: number): string;
}

/** What every list ends with: how it is, since when, and why it is not otherwise. */
export interface Standing {
  /** Rows with one key are one row, before and after a change. */
  readonly key: string;
  readonly state: string;
  readonly sinceMs?: number;
  readonly reason?: string;
  readonly why?: string;
}

export const STANDING_COLUMNS: readonly Column<Standing>[] = [
  { title: "STATE", text: ({ state }) => state },
  { title: "SINCE", text: ({ sinceMs }, nowMs) => ageSince(sinceMs, nowMs) },
  { title: "WHY", text: ({ why }) => why ?? "" },
];

export function standing(
  key: string,
  state: string,
  {
    sinceMs,
    reason,
    why,
  }: { sinceMs?: number | undefined; reason?: string | undefined; why?: string | undefined },
): Standing {
  const row: { -readonly [field in keyof Standing]: Standing[field] } = { key, state };
  if (sinceMs !== undefined) row.sinceMs = sinceMs;
  if (reason !== undefined) row.reason = reason;
  if (why !== undefined) row.why = why;
  return row;
}

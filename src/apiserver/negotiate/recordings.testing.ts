import { expect } from "vitest";

/** For tests: recordings of a real server, with values in place of their placeholders. */
export interface RecordedStep {
  readonly setup?: boolean;
  readonly note?: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: RecordedObject;
  };
  readonly response: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly events?: readonly { readonly type: string; readonly object: RecordedTable }[];
  };
}

export interface RecordedObject {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export interface RecordedTable {
  readonly columnDefinitions: readonly { readonly name: string }[] | null;
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: unknown }[];
  readonly [field: string]: unknown;
}

/** When everything in a recording was created, and when it is looked at: 30 s later. */
const CREATED = "2026-11-15T18:00:00Z";
const AGE = "30s";

/** `<RV-7>` becomes 7, every `<TIME-n>` the moment of creation and every `<AGE>` the age at the clock below. */
export function stepsOf(recording: { readonly steps: readonly unknown[] }): readonly RecordedStep[] {
  const text = JSON.stringify(recording.steps)
    .replaceAll(/<RV-(\d+)>/g, "$1")
    .replaceAll(/<TIME-\d+>/g, CREATED)
    .replaceAll("<AGE>", AGE);
  return JSON.parse(text) as readonly RecordedStep[];
}

export function clockAtRecording(): { wall(): Date } {
  return { wall: () => new Date(Date.parse(CREATED) + 30_000) };
}

/** Descriptions are in our own words; everything else of a column is compared. */
export function withoutDescriptions(table: unknown): unknown {
  const { columnDefinitions, ...rest } = table as Partial<RecordedTable>;
  if (!columnDefinitions) return table;
  return {
    ...rest,
    columnDefinitions: columnDefinitions.map((column) => {
      const { description, ...others } = column as { name: string; description: string };
      expect(description).not.toBe("");
      return others;
    }),
  };
}

/** Takes a column away that the recorded release did not have yet. */
export function withoutColumn(table: unknown, name: string): unknown {
  const { columnDefinitions, rows = [], ...rest } = table as Partial<RecordedTable>;
  const index = columnDefinitions?.findIndex((column) => column.name === name) ?? -1;
  if (index < 0) return table;
  return {
    ...rest,
    columnDefinitions: columnDefinitions?.toSpliced(index, 1),
    rows: rows.map((row) => ({ ...row, cells: row.cells.toSpliced(index, 1) })),
  };
}

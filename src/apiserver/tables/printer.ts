import type { ApiObject } from "../objects.ts";
import { ageOf } from "./age.ts";
import { textAt } from "./fields.ts";

/** Server-side printing: how objects of a kind become rows of a Table (spec/apiserver.md, section 15). Pure. */
export interface Printer {
  /** JSON of the column definitions; it never changes, so it is rendered once. */
  readonly columnsText: string;
  cells(object: ApiObject, context: PrintContext): readonly Cell[];
  /** What a row says about its object as a whole; absent for nearly all. */
  conditions(object: ApiObject): readonly RowCondition[] | undefined;
}

export type Cell = string | number | boolean | null;

export interface PrintContext {
  readonly nowMs: number;
  /** The class that claims without one get; undefined where there is none. */
  readonly defaultStorageClass: () => string | undefined;
}

export interface RowCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** `View` is what cells are taken from: the object itself, or something derived from it once a row. */
export interface Column<View = ApiObject> {
  readonly name: string;
  readonly description: string;
  readonly type: "string" | "boolean" | "integer" | "date";
  readonly format: "" | "name";
  /** 1 is shown by `-o wide` alone. */
  readonly priority: 0 | 1;
  readonly cell: (view: View, context: PrintContext) => Cell;
}

export function column<View = ApiObject>(
  name: string,
  description: string,
  cell: Column<View>["cell"],
  { type = "string", format = "", priority = 0 }: Partial<Column<View>> = {},
): Column<View> {
  return { name, description, cell, type, format, priority };
}

export function wideColumn<View = ApiObject>(
  name: string,
  description: string,
  cell: Column<View>["cell"],
): Column<View> {
  return column(name, description, cell, { priority: 1 });
}

export const nameColumn = column("Name", "The object's name, unique within its namespace", nameOf, {
  format: "name",
});

export const ageColumn = column("Age", "How long ago the object was created", age);

export function createPrinter(columns: readonly Column[]): Printer {
  return createViewPrinter((object) => object, columns);
}

export function createViewPrinter<View>(
  view: (object: ApiObject, context: PrintContext) => View,
  columns: readonly Column<View>[],
  conditions: Printer["conditions"] = () => undefined,
): Printer {
  const definitions = columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
  return {
    columnsText: JSON.stringify(definitions),
    cells(object, context) {
      const viewed = view(object, context);
      return columns.map(({ cell }) => cell(viewed, context));
    },
    conditions,
  };
}

export function nameOf(object: ApiObject): string {
  return textAt(object, "metadata", "name");
}

export function age(object: ApiObject, { nowMs }: PrintContext): string {
  return ageOf(textAt(object, "metadata", "creationTimestamp"), nowMs);
}

export function isDeleting(object: ApiObject): boolean {
  return textAt(object, "metadata", "deletionTimestamp") !== "";
}

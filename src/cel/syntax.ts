import type { Value } from "./values.ts";

/** An expression as it was read. `at` is where it stands, for messages. */
export type Expr =
  | { readonly kind: "literal"; readonly value: Value; readonly at: number }
  /** With a dot in front it means the variable of that name, never one of a macro. */
  | { readonly kind: "ident"; readonly name: string; readonly at: number }
  | Select
  | Call
  /** `&&` and `||` with all their terms, so that a hundred of them nest no deeper than two. */
  | { readonly kind: "and" | "or"; readonly terms: readonly Expr[]; readonly at: number }
  | {
      readonly kind: "choice";
      readonly condition: Expr;
      readonly yes: Expr;
      readonly no: Expr;
      readonly at: number;
    }
  | { readonly kind: "list"; readonly items: readonly Item[]; readonly at: number }
  | { readonly kind: "map"; readonly entries: readonly Entry[]; readonly at: number }
  | { readonly kind: "object"; readonly type: string; readonly fields: readonly Field[]; readonly at: number }
  | Comprehension
  | OptionalMap;

export interface Select {
  readonly kind: "select";
  readonly operand: Expr;
  readonly field: string;
  /** `has(operand.field)`. */
  readonly isTest: boolean;
  /** `operand.?field`. */
  readonly isOptional: boolean;
  readonly at: number;
}

/** Operators are calls of `_+_` and the like. */
export interface Call {
  readonly kind: "call";
  readonly name: string;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
  readonly at: number;
}

/** `?` in front: left out where the optional is empty. */
export interface Item {
  readonly value: Expr;
  readonly isOptional: boolean;
}

export interface Entry extends Item {
  readonly key: Expr;
}

export interface Field extends Item {
  readonly name: string;
  readonly at: number;
}

export type ComprehensionMacro =
  "all" | "exists" | "exists_one" | "map" | "filter" | "transformList" | "transformMap" | "transformMapEntry";

export interface Comprehension {
  readonly kind: "comprehension";
  readonly macro: ComprehensionMacro;
  readonly range: Expr;
  /** One: the element, or the key of a map. Two: index and element, or key and value. */
  readonly variables: readonly string[];
  readonly filter: Expr | undefined;
  readonly body: Expr;
  readonly at: number;
}

/** `optMap` and, flat, `optFlatMap`. */
export interface OptionalMap {
  readonly kind: "optional-map";
  readonly target: Expr;
  readonly variable: string;
  readonly body: Expr;
  readonly isFlat: boolean;
  readonly at: number;
}

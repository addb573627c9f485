import { evaluationError } from "../errors.ts";
import { declare, type Library } from "../functions.ts";
import { Uint } from "../numbers.ts";
import { isList, MapValue, NONE, OptionalValue, type Value } from "../values.ts";

/** Values that may be absent, as `a.?b` and `a[?b]` give them. */
export const OPTIONALS: Library = [
  declare("optional.of(A) optional(A)", (value: Value) => new OptionalValue(value)),
  declare("optional.none() optional(A)", () => NONE),
  declare("optional.ofNonZeroValue(A) optional(A)", (value: Value) =>
    isZero(value) ? NONE : new OptionalValue(value),
  ),
  declare("optional(A) -> hasValue() bool", ({ value }: OptionalValue) => value !== undefined),
  declare("optional(A) -> value() A", ({ value }: OptionalValue) => {
    if (value === undefined) throw evaluationError("optional.none() dereference");
    return value;
  }),
  declare("optional(A) -> or(optional(A)) optional(A)", (optional: OptionalValue, other: OptionalValue) =>
    optional.value === undefined ? other : optional,
  ),
  declare("optional(A) -> orValue(A) A", ({ value }: OptionalValue, other: Value) => value ?? other),
  declare("optional.unwrap(list(optional(A))) list(A)", unwrap),
  declare("list(optional(A)) -> unwrapOpt() list(A)", unwrap),
  declare("list(A) -> first() optional(A)", (list: readonly Value[]) => new OptionalValue(list[0])),
  declare("list(A) -> last() optional(A)", (list: readonly Value[]) => new OptionalValue(list.at(-1))),
];

function unwrap(list: readonly OptionalValue[]): Value {
  return list.flatMap(({ value }) => (value === undefined ? [] : [value]));
}

function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0n || value === 0 || value === "") return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof MapValue) return value.size === 0;
  if (value instanceof OptionalValue) return value.value === undefined;
  return (isList(value) || value instanceof Uint8Array) && value.length === 0;
}

import { compare, equal } from "../equality.ts";
import { evaluationError } from "../errors.ts";
import { declare, type Library, type Work } from "../functions.ts";
import { intResult, Uint, uintResult } from "../numbers.ts";
import { durationResult } from "../time.ts";
import { Duration, isList, type Value } from "../values.ts";

type List = readonly Value[];

/** Lists as Kubernetes extends them, and the extension of lists that it switches on. */
export const LISTS: Library = [
  declare("list(A) -> isSorted() bool", (list: List, work: Work) => {
    work.charge(list.length);
    return list.every((item, index) => index === 0 || order(list[index - 1] ?? null, item) <= 0);
  }),
  ...["int", "uint", "double", "duration"].map((type) => declare(`list(${type}) -> sum() ${type}`, sum)),
  declare("list(A) -> min() A", (list: List, work: Work) => extreme(list, -1, work)),
  declare("list(A) -> max() A", (list: List, work: Work) => extreme(list, 1, work)),
  declare("list(A) -> indexOf(A) int", (list: List, wanted: Value, work: Work) =>
    BigInt(list.findIndex((item) => same(item, wanted, work))),
  ),
  declare("list(A) -> lastIndexOf(A) int", (list: List, wanted: Value, work: Work) =>
    BigInt(list.findLastIndex((item) => same(item, wanted, work))),
  ),
  declare("list(A) -> distinct() list(A)", (list: List, work: Work) => {
    const kept: Value[] = [];
    for (const item of list) if (!kept.some((other) => same(item, other, work))) kept.push(item);
    return kept;
  }),
  declare("list(list(A)) -> flatten() list(A)", (list: List, work: Work) => flatten(list, 1n, work)),
  declare("list(dyn) -> flatten(int) list(dyn)", flatten),
  declare("list(A) -> reverse() list(A)", (list: List) => list.toReversed()),
  declare("list(A) -> slice(int, int) list(A)", slice),
  declare("list(A) -> sort() list(A)", (list: List, work: Work) => {
    work.charge(list.length * Math.ceil(Math.log2(list.length + 1)));
    checkOneType(list);
    return list.toSorted(order);
  }),
  declare("lists.range(int) list(int)", (count: bigint, work: Work) => {
    if (count < 0n) return [];
    work.charge(Number(count));
    return Array.from({ length: Number(count) }, (_, index) => BigInt(index));
  }),
];

function same(a: Value, b: Value, work: Work): boolean {
  return equal(a, b, (steps) => work.charge(steps));
}

function order(a: Value, b: Value): number {
  return compare(a, b) ?? 0;
}

function checkOneType(list: List): void {
  const types = new Set(list.map((item) => (item instanceof Uint ? "uint" : typeof item)));
  if (types.size > 1) throw evaluationError("list elements must have the same type");
}

function extreme(list: List, direction: -1 | 1, work: Work): Value {
  work.charge(list.length);
  const [first, ...rest] = list;
  if (first === undefined) throw evaluationError(`${direction < 0 ? "min" : "max"} called on empty list`);
  return rest.reduce((best, item) => (order(item, best) * direction > 0 ? item : best), first);
}

function sum(list: List, work: Work): Value {
  work.charge(list.length);
  const [first, ...rest] = list;
  if (first === undefined) return 0n;
  return rest.reduce(add, first);
}

function add(a: Value, b: Value): Value {
  if (typeof a === "bigint" && typeof b === "bigint") return intResult(a + b);
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (a instanceof Uint && b instanceof Uint) return uintResult(a.value + b.value);
  if (a instanceof Duration && b instanceof Duration) return durationResult(a.nanos + b.nanos);
  throw evaluationError("no such overload");
}

function flatten(list: List, depth: bigint, work: Work): List {
  if (depth < 0n) throw evaluationError("level must be non-negative");
  work.charge(list.length);
  return list.flatMap((item) => (isList(item) && depth > 0n ? flatten(item, depth - 1n, work) : [item]));
}

function slice(list: List, start: bigint, end: bigint): List {
  if (start < 0n || end < 0n)
    throw evaluationError(`cannot slice(${start}, ${end}), negative indexes not supported`);
  if (start > end)
    throw evaluationError(
      `cannot slice(${start}, ${end}), start index must be less than or equal to end index`,
    );
  if (end > BigInt(list.length))
    throw evaluationError(`cannot slice(${start}, ${end}), list is length ${list.length}`);
  return list.slice(Number(start), Number(end));
}

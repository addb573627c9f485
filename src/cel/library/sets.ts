import { equal } from "../equality.ts";
import { declare, type Library, type Work } from "../functions.ts";
import type { Value } from "../values.ts";

type List = readonly Value[];

/** Lists as sets: order and repetition mean nothing. */
export const SETS: Library = [
  declare("sets.contains(list(A), list(A)) bool", contains),
  declare(
    "sets.equivalent(list(A), list(A)) bool",
    (a: List, b: List, work: Work) => contains(a, b, work) && contains(b, a, work),
  ),
  declare("sets.intersects(list(A), list(A)) bool", (a: List, b: List, work: Work) =>
    b.some((item) => has(a, item, work)),
  ),
];

function contains(list: List, part: List, work: Work): boolean {
  return part.every((item) => has(list, item, work));
}

function has(list: List, wanted: Value, work: Work): boolean {
  return list.some((item) => equal(item, wanted, (steps) => work.charge(steps)));
}

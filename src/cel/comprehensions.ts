import { unreachable } from "../base/assert.ts";
import { noSuchOverload } from "./errors.ts";
import type { Evaluator, Scope } from "./scope.ts";
import type { Comprehension, Expr } from "./syntax.ts";
import { addEntry, BuiltMap, isList, MapValue, type Value } from "./values.ts";

/** The macros that go through a list or a map. */
export function evaluateComprehension(
  evaluation: Evaluator,
  expr: Comprehension,
  outer: Scope | undefined,
): Value {
  const range = evaluation.evaluate(expr.range, outer);
  const scopes = iterate(range, expr.variables, outer);
  const run = (body: Expr, scope: Scope) => evaluation.evaluate(body, scope);
  switch (expr.macro) {
    case "all":
      return evaluation.absorb(scopes, false, (scope) => run(expr.body, scope));
    case "exists":
      return evaluation.absorb(scopes, true, (scope) => run(expr.body, scope));
    case "exists_one":
      return countMatches(scopes, (scope) => isTrue(run(expr.body, scope))) === 1;
    case "filter":
      return [...scopes].filter((scope) => isTrue(run(expr.body, scope))).map(({ value }) => value);
    case "map":
    case "transformList":
    case "transformMap":
    case "transformMapEntry":
      return transform(evaluation, expr, scopes);
    default:
      return unreachable(expr.macro);
  }
}

/** To the end: unlike with `exists`, an error is never swallowed. */
function countMatches(scopes: Iterable<Scope>, matches: (scope: Scope) => boolean): number {
  let count = 0;
  for (const scope of scopes) if (matches(scope)) count++;
  return count;
}

function transform(evaluation: Evaluator, expr: Comprehension, scopes: Iterable<Scope>): Value {
  const { macro, filter, body } = expr;
  const list: Value[] = [];
  const entries = new Map<string, readonly [Value, Value]>();
  for (const scope of scopes) {
    if (filter !== undefined && !isTrue(evaluation.evaluate(filter, scope))) continue;
    const value = evaluation.evaluate(body, scope);
    if (macro === "transformMap") addEntry(entries, scope.outer?.value ?? null, value);
    else if (macro === "transformMapEntry") addAll(entries, value);
    else list.push(value);
  }
  return macro === "transformMap" || macro === "transformMapEntry" ? new BuiltMap(entries) : list;
}

function addAll(entries: Map<string, readonly [Value, Value]>, made: Value): void {
  if (!(made instanceof MapValue)) throw noSuchOverload();
  for (const key of made.keys()) addEntry(entries, key, made.get(key) ?? null);
}

function isTrue(value: Value): boolean {
  if (typeof value !== "boolean") throw noSuchOverload();
  return value;
}

/** A scope for each element; of two variables the second is the inner one. */
function* iterate(range: Value, variables: readonly string[], outer: Scope | undefined): Generator<Scope> {
  const [first = "", second] = variables;
  for (const [key, value] of elementsOf(range)) {
    if (second !== undefined) {
      yield { name: second, value, outer: { name: first, value: key, outer } };
    } else {
      yield { name: first, value: isList(range) ? value : key, outer };
    }
  }
}

function* elementsOf(range: Value): Generator<readonly [Value, Value]> {
  if (isList(range)) {
    for (const [index, value] of range.entries()) yield [BigInt(index), value];
    return;
  }
  if (!(range instanceof MapValue)) throw noSuchOverload();
  for (const key of range.keys()) yield [key, range.get(key) ?? null];
}

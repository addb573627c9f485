import { unreachable } from "../base/assert.ts";
import { evaluateComprehension } from "./comprehensions.ts";
import { TYPE_NAMES, type Environment } from "./environment.ts";
import { CelError, evaluationError, noSuchOverload } from "./errors.ts";
import type { Work } from "./functions.ts";
import type { Evaluator, Scope } from "./scope.ts";
import type { Call, Expr, Item, OptionalMap, Select } from "./syntax.ts";
import { isOfType } from "./types.ts";
import {
  addEntry,
  BuiltMap,
  isList,
  MapValue,
  NONE,
  ObjectValue,
  OptionalValue,
  TypeValue,
  type Value,
} from "./values.ts";

/** A swallowed error was made with a stack trace: some 6 µs, as much as fifty ordinary steps. */
const ERROR_STEPS = 50;
/** Characters or elements that a function goes through in the time of a step. */
const LENGTH_PER_STEP = 16;

/** One evaluation of one expression: the values it is given, and how much work it has left. */
export class Evaluation implements Work, Evaluator {
  readonly #environment: Environment;
  readonly #variable: (name: string) => Value | undefined;
  readonly #budget: Work;

  constructor(environment: Environment, variable: (name: string) => Value | undefined, budget: Work) {
    this.#environment = environment;
    this.#variable = variable;
    this.#budget = budget;
  }

  charge(steps: number): void {
    this.#budget.charge(steps);
  }

  evaluate(expr: Expr, scope: Scope | undefined): Value {
    this.#budget.charge(1);
    switch (expr.kind) {
      case "literal":
        return expr.value;
      case "ident":
        return this.#ident(expr.name, scope);
      case "select":
        return this.#select(expr, scope);
      case "call":
        return this.#call(expr, scope);
      case "and":
      case "or":
        return this.absorb(expr.terms, expr.kind === "or", (term) => this.evaluate(term, scope));
      case "choice": {
        const condition = this.evaluate(expr.condition, scope);
        if (typeof condition !== "boolean") throw noSuchOverload();
        return this.evaluate(condition ? expr.yes : expr.no, scope);
      }
      case "list":
        return this.#list(expr.items, scope);
      case "map":
        return this.#map(expr, scope);
      case "object":
        return this.#object(expr, scope);
      case "comprehension":
        return evaluateComprehension(this, expr, scope);
      case "optional-map":
        return this.#optionalMap(expr, scope);
      default:
        return unreachable(expr);
    }
  }

  absorb<T>(terms: Iterable<T>, decisive: boolean, evaluate: (term: T) => Value): boolean {
    let failure: CelError | undefined;
    for (const term of terms) {
      try {
        const value = evaluate(term);
        if (typeof value !== "boolean") throw noSuchOverload();
        if (value === decisive) return decisive;
      } catch (error) {
        if (!(error instanceof CelError) || error.code === "Budget") throw error;
        failure ??= error;
        this.#budget.charge(ERROR_STEPS);
      }
    }
    if (failure !== undefined) throw failure;
    return !decisive;
  }

  #ident(name: string, scope: Scope | undefined): Value {
    for (let local = scope; local !== undefined; local = local.outer) {
      if (local.name === name) return local.value;
    }
    const plain = name.startsWith(".") ? name.slice(1) : name;
    const value = this.#variable(plain);
    if (value !== undefined) return value;
    if (TYPE_NAMES.has(plain)) return new TypeValue(plain);
    throw evaluationError(`no such attribute: ${plain}`);
  }

  #select({ operand, field, isTest, isOptional }: Select, scope: Scope | undefined): Value {
    const value = this.evaluate(operand, scope);
    if (value instanceof OptionalValue) {
      const found = value.value === undefined ? undefined : memberOf(value.value, field);
      return isTest ? found !== undefined : new OptionalValue(found);
    }
    const found = memberOf(value, field);
    if (isTest) return found !== undefined;
    if (isOptional) return found === undefined ? NONE : new OptionalValue(found);
    if (found === undefined) throw evaluationError(`no such key: ${field}`);
    return found;
  }

  #call({ name, target, args }: Call, scope: Scope | undefined): Value {
    const all = target === undefined ? args : [target, ...args];
    const values = all.map((arg) => this.evaluate(arg, scope));
    const overload = this.#environment.functions
      .find(name, target !== undefined, values.length)
      .find(({ params }) => params.every((param, index) => isOfType(values[index] ?? null, param)));
    if (overload === undefined) throw noSuchOverload();
    for (const value of values) this.#chargeLength(value);
    const result = overload.run(values, this);
    this.#chargeLength(result);
    return result;
  }

  #chargeLength(value: Value): void {
    if (typeof value === "string" || isList(value) || value instanceof Uint8Array) {
      this.#budget.charge(Math.floor(value.length / LENGTH_PER_STEP));
    }
  }

  /** The value of an element; undefined where it is optional and there is none. */
  #item({ value, isOptional }: Item, scope: Scope | undefined): Value | undefined {
    const found = this.evaluate(value, scope);
    if (!isOptional) return found;
    if (!(found instanceof OptionalValue)) throw noSuchOverload();
    return found.value;
  }

  #list(items: readonly Item[], scope: Scope | undefined): Value {
    return items.map((item) => this.#item(item, scope)).filter((value) => value !== undefined);
  }

  #map({ entries }: Expr & { kind: "map" }, scope: Scope | undefined): Value {
    const built = new Map<string, readonly [Value, Value]>();
    for (const entry of entries) {
      const key = this.evaluate(entry.key, scope);
      const value = this.#item(entry, scope);
      if (value !== undefined) addEntry(built, key, value);
    }
    return new BuiltMap(built);
  }

  #object({ type, fields }: Expr & { kind: "object" }, scope: Scope | undefined): Value {
    if (this.#environment.objectType?.(type) === undefined) throw evaluationError(`unknown type: ${type}`);
    const members = new Map<string, Value>();
    for (const field of fields) {
      const value = this.#item(field, scope);
      if (value !== undefined) members.set(field.name, value);
    }
    return new ObjectValue(type, members);
  }

  #optionalMap({ target, variable, body, isFlat }: OptionalMap, scope: Scope | undefined): Value {
    const optional = this.evaluate(target, scope);
    if (!(optional instanceof OptionalValue)) throw noSuchOverload();
    if (optional.value === undefined) return NONE;
    const result = this.evaluate(body, { name: variable, value: optional.value, outer: scope });
    return isFlat ? result : new OptionalValue(result);
  }
}

function memberOf(value: Value, field: string): Value | undefined {
  if (value instanceof MapValue) return value.get(field);
  if (value instanceof ObjectValue) return value.fields.get(field);
  throw noSuchOverload();
}

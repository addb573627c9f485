import { unreachable } from "../base/assert.ts";
import { TYPE_NAMES, type Environment } from "./environment.ts";
import { CelError } from "./errors.ts";
import { Uint } from "./numbers.ts";
import { checkLiterals } from "./literal-checks.ts";
import type { Call, Comprehension, Expr, Item, OptionalMap, Select } from "./syntax.ts";
import {
  accepts,
  BOOL,
  DYN,
  formatType,
  INT,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  sameType,
  scalar,
  STRING,
  substitute,
  type Bindings,
  type Type,
} from "./types.ts";
import type { Value } from "./values.ts";

/**
 * The type of an expression, before it meets any value. Throws a CelError `Check` for what cannot be right whatever it
 * is given: names nobody declared, functions that take no such arguments. Objects of the API are `dyn`, of which
 * nothing is known and everything is allowed.
 */
export function checkTypes(environment: Environment, expr: Expr): Type {
  return substitute(new Checker(environment).typeOf(expr, NO_LOCALS), new Map());
}

/** Of the elements of `[]`: whatever is wanted. */
const FREE: Type = { kind: "param", name: "_" };

type Locals = ReadonlyMap<string, Type>;
const NO_LOCALS: Locals = new Map();

class Checker {
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  typeOf(expr: Expr, locals: Locals): Type {
    switch (expr.kind) {
      case "literal":
        return literalType(expr.value);
      case "ident":
        return this.#identType(expr, locals);
      case "select":
        return this.#selectType(expr, locals);
      case "call":
        return this.#callType(expr, locals);
      case "and":
      case "or":
        for (const term of expr.terms) {
          this.#demand(BOOL, term, locals, (found) =>
            noOverload(expr.kind === "and" ? "_&&_" : "_||_", [BOOL, found], expr.at),
          );
        }
        return BOOL;
      case "choice": {
        const { condition, yes, no, at } = expr;
        const [left, right] = [this.typeOf(yes, locals), this.typeOf(no, locals)];
        const refuse = (found: Type) => noOverload("_?_:_", [found, left, right], at);
        this.#demand(BOOL, condition, locals, refuse);
        const joined = join(left, right);
        if (joined === undefined) throw refuse(this.typeOf(condition, locals));
        return joined;
      }
      case "list":
        return listOf(this.#itemsType(expr.items, locals));
      case "map":
        return mapOf(
          this.#itemsType(
            expr.entries.map(({ key }) => ({ value: key, isOptional: false })),
            locals,
          ),
          this.#itemsType(expr.entries, locals),
        );
      case "object":
        return this.#objectType(expr, locals);
      case "comprehension":
        return this.#comprehensionType(expr, locals);
      case "optional-map":
        return this.#optionalMapType(expr, locals);
      default:
        return unreachable(expr);
    }
  }

  #identType({ name, at }: Expr & { kind: "ident" }, locals: Locals): Type {
    const local = locals.get(name);
    if (local !== undefined) return local;
    const plain = name.replace(/^\./, "");
    const variable = this.#environment.variables.get(plain);
    if (variable !== undefined) return variable;
    const named = TYPE_NAMES.get(plain);
    if (named !== undefined) return { kind: "type", of: named };
    throw new CelError("Check", `undeclared reference to '${plain}' (in container '')`, at);
  }

  #selectType(expr: Select, locals: Locals): Type {
    const operand = this.typeOf(expr.operand, locals);
    const inner = operand.kind === "optional" ? operand.of : operand;
    const field = this.#fieldType(inner, expr);
    if (expr.isTest) return BOOL;
    return expr.isOptional || operand.kind === "optional" ? toOptional(field) : field;
  }

  #fieldType(type: Type, { field, at }: Select): Type {
    if (type.kind === "dyn" || type.kind === "param") return DYN;
    if (type.kind === "map") return type.value;
    if (type.kind !== "object" || type.field === undefined) {
      throw new CelError("Check", `type '${formatType(type)}' does not support field selection`, at);
    }
    const found = type.field(field);
    if (found === undefined) throw new CelError("Check", `undefined field '${field}'`, at);
    return found;
  }

  #callType(call: Call, locals: Locals): Type {
    const { name, target, args, at } = call;
    const { functions } = this.#environment;
    const all = target === undefined ? args : [target, ...args];
    const types = all.map((arg) => this.typeOf(arg, locals));
    if (!functions.has(name, target !== undefined)) {
      throw new CelError("Check", `undeclared reference to '${name}' (in container '')`, at);
    }
    let result: Type | undefined;
    for (const overload of functions.find(name, target !== undefined, all.length)) {
      const bindings: Bindings = new Map();
      if (!overload.params.every((param, index) => accepts(param, types[index] ?? DYN, bindings))) continue;
      const type = substitute(overload.result, bindings);
      // Of an argument that may be anything several may be meant, and only a value tells which.
      result = result === undefined || sameType(result, type) ? type : DYN;
    }
    if (result === undefined) throw noOverload(name, types, at, target !== undefined);
    if (this.#environment.checksLiterals === true) checkLiterals(call);
    return result;
  }

  /** What is common to the elements of a literal. */
  #itemsType(items: readonly Item[], locals: Locals): Type {
    let common: Type | undefined;
    for (const { value, isOptional } of items) {
      const found = this.typeOf(value, locals);
      const type = isOptional && found.kind === "optional" ? found.of : found;
      const joined = common === undefined ? type : join(common, type);
      if (joined === undefined && this.#environment.homogeneousLiterals === true) {
        const texts = `expected type '${formatType(common ?? DYN)}' but found '${formatType(type)}'`;
        throw new CelError("Check", texts, value.at);
      }
      common = joined ?? DYN;
    }
    return common ?? FREE;
  }

  #objectType({ type: name, fields, at }: Expr & { kind: "object" }, locals: Locals): Type {
    const type = this.#environment.objectType?.(name);
    if (type?.kind !== "object") {
      throw new CelError("Check", `undeclared reference to '${name}' (in container '')`, at);
    }
    for (const field of fields) {
      const wanted = type.field?.(field.name);
      if (wanted === undefined) throw new CelError("Check", `undefined field '${field.name}'`, field.at);
      const given = this.typeOf(field.value, locals);
      const value = field.isOptional && given.kind === "optional" ? given.of : given;
      if (accepts(wanted, value, new Map())) continue;
      const texts = `expected type of field '${field.name}' is '${formatType(wanted)}' but provided type is '${formatType(value)}'`;
      throw new CelError("Check", texts, field.at);
    }
    return type;
  }

  #comprehensionType(expr: Comprehension, locals: Locals): Type {
    const range = this.typeOf(expr.range, locals);
    const inside = new Map([...locals, ...variableTypes(expr, range)]);
    const refuse = (found: Type) =>
      new CelError("Check", `expected type 'bool' but found '${formatType(found)}'`, expr.body.at);
    if (expr.filter !== undefined) this.#demand(BOOL, expr.filter, inside, refuse);
    switch (expr.macro) {
      case "all":
      case "exists":
      case "exists_one":
        this.#demand(BOOL, expr.body, inside, refuse);
        return BOOL;
      case "filter":
        this.#demand(BOOL, expr.body, inside, refuse);
        return listOf(inside.get(expr.variables[0] ?? "") ?? DYN);
      case "map":
      case "transformList":
        return listOf(this.typeOf(expr.body, inside));
      case "transformMap": {
        const body = this.typeOf(expr.body, inside);
        return mapOf(inside.get(expr.variables[0] ?? "") ?? DYN, body);
      }
      case "transformMapEntry":
        return this.typeOf(expr.body, inside);
      default:
        return unreachable(expr.macro);
    }
  }

  #optionalMapType({ target, variable, body, isFlat, at }: OptionalMap, locals: Locals): Type {
    const type = this.typeOf(target, locals);
    if (type.kind !== "optional" && type.kind !== "dyn") {
      throw noOverload(isFlat ? "optFlatMap" : "optMap", [type], at, true);
    }
    const inside = new Map([...locals, [variable, type.kind === "optional" ? type.of : DYN]]);
    const result = this.typeOf(body, inside);
    return isFlat ? result : optionalOf(result);
  }

  #demand(wanted: Type, expr: Expr, locals: Locals, refuse: (found: Type) => CelError): void {
    const found = this.typeOf(expr, locals);
    if (!accepts(wanted, found, new Map())) throw refuse(found);
  }
}

/** One variable is the element of a list or the key of a map; of two the first is the index or the key. */
function variableTypes({ variables, range: { at } }: Comprehension, range: Type): [string, Type][] {
  const [first = "", second] = variables;
  if (range.kind === "list") {
    return second === undefined
      ? [[first, range.element]]
      : [
          [first, INT],
          [second, range.element],
        ];
  }
  if (range.kind === "map") {
    return second === undefined
      ? [[first, range.key]]
      : [
          [first, range.key],
          [second, range.value],
        ];
  }
  if (range.kind === "dyn" || range.kind === "param") return variables.map((name) => [name, DYN]);
  throw new CelError(
    "Check",
    `expression of type '${formatType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
    at,
  );
}

/** A type that both are of, the one that says more where one of them leaves it open; undefined where there is none. */
function join(a: Type, b: Type): Type | undefined {
  if (a.kind === "param") return b;
  if (b.kind === "param") return a;
  if (a.kind === "dyn" || b.kind === "dyn") return DYN;
  if (a.kind === "list" && b.kind === "list") {
    const element = join(a.element, b.element);
    return element && listOf(element);
  }
  if (a.kind === "optional" && b.kind === "optional") {
    const of = join(a.of, b.of);
    return of && optionalOf(of);
  }
  if (accepts(a, b, new Map())) return a;
  return accepts(b, a, new Map()) ? b : undefined;
}

function toOptional(type: Type): Type {
  return type.kind === "optional" ? type : optionalOf(type);
}

function noOverload(name: string, types: readonly Type[], at: number, isMethod = false): CelError {
  const [first = DYN, ...rest] = types;
  const shown = (some: readonly Type[]) => some.map(formatType).join(", ");
  const applied = isMethod ? `${formatType(first)}.(${shown(rest)})` : `(${shown(types)})`;
  return new CelError("Check", `found no matching overload for '${name}' applied to '${applied}'`, at);
}

function literalType(value: Value): Type {
  if (value === null) return NULL;
  if (typeof value === "boolean") return BOOL;
  if (typeof value === "bigint") return INT;
  if (typeof value === "number") return scalar("double");
  if (typeof value === "string") return STRING;
  return scalar(value instanceof Uint ? "uint" : "bytes");
}

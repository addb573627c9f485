import { unreachable } from "../base/assert.ts";
import { isNamed, type Environment } from "./environment.ts";
import { qualifiedName } from "./parser.ts";
import type { Call, Comprehension, Expr, Item } from "./syntax.ts";

/**
 * Says what names with dots in them mean: `a.b.c` may be a variable of that name, the field `c` of a variable `a.b`,
 * or two fields of `a`; the longest variable wins. `sets.contains(x, y)` is a function, not a method of a variable
 * `sets`. A variable of a macro hides all of them.
 */
export function resolveNames(environment: Environment, expr: Expr): Expr {
  return resolve({ environment, locals: new Set() }, expr);
}

interface Scope {
  readonly environment: Environment;
  readonly locals: ReadonlySet<string>;
}

function resolve(scope: Scope, expr: Expr): Expr {
  const inner = (part: Expr) => resolve(scope, part);
  switch (expr.kind) {
    case "literal":
    case "ident":
      return expr;
    case "select":
      return qualified(scope, expr) ?? { ...expr, operand: inner(expr.operand) };
    case "call":
      return resolveCall(scope, expr);
    case "and":
    case "or":
      return { ...expr, terms: expr.terms.map(inner) };
    case "choice":
      return { ...expr, condition: inner(expr.condition), yes: inner(expr.yes), no: inner(expr.no) };
    case "list":
      return { ...expr, items: expr.items.map((item) => resolveItem(scope, item)) };
    case "map":
      return {
        ...expr,
        entries: expr.entries.map((entry) => ({ ...resolveItem(scope, entry), key: inner(entry.key) })),
      };
    case "object":
      return { ...expr, fields: expr.fields.map((field) => resolveItem(scope, field)) };
    case "comprehension":
      return resolveComprehension(scope, expr);
    case "optional-map":
      return {
        ...expr,
        target: inner(expr.target),
        body: resolve(withLocals(scope, [expr.variable]), expr.body),
      };
    default:
      return unreachable(expr);
  }
}

function resolveItem<T extends Item>(scope: Scope, item: T): T {
  return { ...item, value: resolve(scope, item.value) };
}

function resolveComprehension(scope: Scope, expr: Comprehension): Expr {
  const inside = withLocals(scope, expr.variables);
  return {
    ...expr,
    range: resolve(scope, expr.range),
    filter: expr.filter === undefined ? undefined : resolve(inside, expr.filter),
    body: resolve(inside, expr.body),
  };
}

function withLocals({ environment, locals }: Scope, names: readonly string[]): Scope {
  return { environment, locals: new Set([...locals, ...names]) };
}

function resolveCall(scope: Scope, call: Call): Expr {
  const args = call.args.map((arg) => resolve(scope, arg));
  if (call.target === undefined) return { ...call, args };
  const path = qualifiedName(call.target)?.replace(/^\./, "");
  const name = `${path ?? ""}.${call.name}`;
  if (path !== undefined && !isLocal(scope, path) && scope.environment.functions.has(name, false)) {
    return { ...call, name, target: undefined, args };
  }
  return { ...call, target: resolve(scope, call.target), args };
}

/** The expression as a variable with dots in its name, where there is one. */
function qualified(scope: Scope, expr: Expr): Expr | undefined {
  const path = qualifiedName(expr);
  if (path === undefined || isLocal(scope, path)) return undefined;
  const name = path.replace(/^\./, "");
  return isNamed(scope.environment, name) ? { kind: "ident", name: `.${name}`, at: expr.at } : undefined;
}

function isLocal({ locals }: Scope, path: string): boolean {
  return locals.has(path.split(".", 1)[0] ?? "");
}

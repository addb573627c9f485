import { CelError } from "./errors.ts";
import type { Call, ComprehensionMacro, Expr } from "./syntax.ts";

/** A call that is a macro becomes what it stands for; any other stays a call. */
export function expandMacro(call: Call): Expr {
  const { name, target, args, at } = call;
  if (target === undefined) return name === "has" && args.length === 1 ? presenceTest(args[0], at) : call;
  if ((name === "optMap" || name === "optFlatMap") && args.length === 2) {
    const [variable, body] = args;
    if (body === undefined) return call;
    return {
      kind: "optional-map",
      target,
      variable: variableName(variable),
      body,
      isFlat: name === "optFlatMap",
      at,
    };
  }
  return expandComprehension(call, target);
}

function presenceTest(operand: Expr | undefined, at: number): Expr {
  if (operand?.kind !== "select" || operand.isTest) {
    throw new CelError("Syntax", "invalid argument to has() macro", operand?.at ?? at);
  }
  return { ...operand, isTest: true };
}

interface Shape {
  readonly macro: ComprehensionMacro;
  readonly variables: 1 | 2;
  readonly hasFilter: boolean;
}

/** By name and number of arguments. */
const SHAPES: ReadonlyMap<string, Shape> = new Map([
  ["all/2", { macro: "all", variables: 1, hasFilter: false }],
  ["all/3", { macro: "all", variables: 2, hasFilter: false }],
  ["exists/2", { macro: "exists", variables: 1, hasFilter: false }],
  ["exists/3", { macro: "exists", variables: 2, hasFilter: false }],
  ["exists_one/2", { macro: "exists_one", variables: 1, hasFilter: false }],
  ["exists_one/3", { macro: "exists_one", variables: 2, hasFilter: false }],
  ["existsOne/2", { macro: "exists_one", variables: 1, hasFilter: false }],
  ["existsOne/3", { macro: "exists_one", variables: 2, hasFilter: false }],
  ["filter/2", { macro: "filter", variables: 1, hasFilter: false }],
  ["map/2", { macro: "map", variables: 1, hasFilter: false }],
  ["map/3", { macro: "map", variables: 1, hasFilter: true }],
  ["transformList/3", { macro: "transformList", variables: 2, hasFilter: false }],
  ["transformList/4", { macro: "transformList", variables: 2, hasFilter: true }],
  ["transformMap/3", { macro: "transformMap", variables: 2, hasFilter: false }],
  ["transformMap/4", { macro: "transformMap", variables: 2, hasFilter: true }],
  ["transformMapEntry/3", { macro: "transformMapEntry", variables: 2, hasFilter: false }],
  ["transformMapEntry/4", { macro: "transformMapEntry", variables: 2, hasFilter: true }],
] as const);

function expandComprehension(call: Call, range: Expr): Expr {
  const { name, args, at } = call;
  const shape = SHAPES.get(`${name}/${args.length}`);
  const body = args.at(-1);
  if (shape === undefined || body === undefined) return call;
  const variables = args.slice(0, shape.variables).map(variableName);
  if (new Set(variables).size < variables.length) {
    throw new CelError("Syntax", `duplicate variable name: ${variables.join(", ")}`, at);
  }
  const filter = shape.hasFilter ? args[shape.variables] : undefined;
  return { kind: "comprehension", macro: shape.macro, range, variables, filter, body, at };
}

function variableName(variable: Expr | undefined): string {
  if (variable?.kind === "ident" && !variable.name.startsWith(".")) return variable.name;
  throw new CelError("Syntax", "argument must be a simple name", variable?.at);
}

import type { Functions } from "./functions.ts";
import { parseType, type Type } from "./types.ts";

/** What an expression may name. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Type>;
  readonly functions: Functions;
  /** Types that `Type{...}` makes objects of. */
  readonly objectType?: (name: string) => Type | undefined;
  /** Whether elements of a list literal, and values of a map literal, must be of one type, as Kubernetes demands. */
  readonly homogeneousLiterals?: boolean;
  /** Whether patterns, durations and timestamps that are literals are read beforehand, as Kubernetes does. */
  readonly checksLiterals?: boolean;
}

/** Types under their own name: `type(1) == int`. */
export const TYPE_NAMES: ReadonlyMap<string, Type> = new Map([
  ...["bool", "int", "uint", "double", "string", "bytes"].map((name) => [name, parseType(name)] as const),
  ["null_type", parseType("null")],
  ["list", parseType("list(dyn)")],
  ["map", parseType("map(dyn, dyn)")],
  ["optional_type", parseType("optional(dyn)")],
  ["type", parseType("type(dyn)")],
  ["google.protobuf.Timestamp", parseType("timestamp")],
  ["google.protobuf.Duration", parseType("duration")],
]);

export function isNamed(environment: Environment, name: string): boolean {
  return environment.variables.has(name) || TYPE_NAMES.has(name);
}

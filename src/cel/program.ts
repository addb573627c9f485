import { checkTypes } from "./check.ts";
import type { Environment } from "./environment.ts";
import { CelError } from "./errors.ts";
import { Evaluation } from "./evaluate.ts";
import type { Work } from "./functions.ts";
import { parseExpression } from "./parser.ts";
import { resolveNames } from "./resolve.ts";
import { DYN, type Type } from "./types.ts";
import type { Value } from "./values.ts";

/** An expression that is ready to be evaluated, any number of times. */
export interface Program {
  readonly source: string;
  readonly type: Type;
  /** Throws a CelError. A variable is asked for when the expression comes to it, and each time. */
  evaluate(variable: (name: string) => Value | undefined, budget: Work): Value;
}

/** Throws a CelError, `Syntax` or `Check`, that says where. Without a check, mistakes show when they are evaluated. */
export function compile(
  source: string,
  environment: Environment,
  { checked = true }: { readonly checked?: boolean } = {},
): Program {
  const expr = resolveNames(environment, parseExpression(source));
  const type = checked ? checkTypes(environment, expr) : DYN;
  return {
    source,
    type,
    evaluate: (variable, budget) => new Evaluation(environment, variable, budget).evaluate(expr, undefined),
  };
}

/**
 * How much work may be done. A step is an operation of an expression and takes 20 to 200 ns: what Kubernetes
 * allows one expression, a million, ends after 0.2 s at most (measured with loops, swallowed errors and patterns).
 */
export class Budget implements Work {
  #left: number;
  readonly #whole: Work | undefined;

  /** `whole` is what it is a part of: work counts there too. */
  constructor(steps: number, whole?: Work) {
    this.#left = steps;
    this.#whole = whole;
  }

  charge(steps: number): void {
    this.#whole?.charge(steps);
    this.#left -= steps;
    if (this.#left < 0) throw new CelError("Budget", "operation cancelled: actual cost limit exceeded");
  }
}

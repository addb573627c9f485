import type { Expr } from "./syntax.ts";
import type { Value } from "./values.ts";

/** Variables of macros, the innermost first. */
export interface Scope {
  readonly name: string;
  readonly value: Value;
  readonly outer: Scope | undefined;
}

/** What a macro needs of the evaluation that it is part of. */
export interface Evaluator {
  /** Throws a CelError, `Evaluation` or `Budget`. */
  evaluate(expr: Expr, scope: Scope | undefined): Value;
  /**
   * `&&`, `||`, `all` and `exists`: one term that decides is enough, wherever it stands; an error counts only where no
   * term decides. What ended for want of budget ends everything.
   */
  absorb<T>(terms: Iterable<T>, decisive: boolean, evaluate: (term: T) => Value): boolean;
}

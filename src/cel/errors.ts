/**
 * `Syntax` and `Check`: the expression is wrong, whatever it is given. `Evaluation`: it went wrong with these values.
 * `Budget`: it was stopped, and nobody may take that for an answer: no `||` swallows it.
 */
export type CelErrorCode = "Syntax" | "Check" | "Evaluation" | "Budget";

/** The one error of this room. */
export class CelError extends Error {
  override readonly name = "CelError";
  readonly code: CelErrorCode;
  /** Of the place in the expression, in characters from its start; known for `Syntax` and `Check`. */
  readonly at: number | undefined;

  constructor(code: CelErrorCode, message: string, at?: number) {
    super(message);
    this.code = code;
    this.at = at;
  }
}

export function evaluationError(message: string): CelError {
  return new CelError("Evaluation", message);
}

export function noSuchOverload(): CelError {
  return evaluationError("no such overload");
}

/** What is wrong and where, as clients of Kubernetes know it: line and column, the line itself, and an arrow. */
export function describeAt(source: string, { message, at = 0 }: Pick<CelError, "message" | "at">): string {
  const before = source.slice(0, at).split("\n");
  const column = before.at(-1)?.length ?? 0;
  const line = source.split("\n")[before.length - 1] ?? "";
  return `ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line}\n | ${".".repeat(column)}^`;
}

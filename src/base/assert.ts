/** A broken invariant: the program is wrong, not its input. Nobody catches it to go on. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

/** Crashes with the values that broke the invariant; put them into the message. */
export function assert(claim: boolean, message: string): asserts claim {
  if (!claim) throw new AssertionError(message);
}

/** The `default:` of a switch over a closed union: a new member fails to compile here. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`);
}

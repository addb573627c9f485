import { expect, test } from "vitest";
import { toResponse, toStatusError } from "./errors.ts";
import { StoreError, type StoreErrorCode } from "./store/store.ts";

/** A client repeats a write that was answered with Retry-After: it may only be there where nothing was written. */
for (const [code, status, retryAfter] of [
  ["Full", 503, undefined], // kubectl would repeat it ten times in silence
  ["Closed", 503, "10"],
  ["Overloaded", 429, "1"],
  ["WriteFailed", 503, undefined], // may be found after a restart all the same
] as const satisfies readonly (readonly [StoreErrorCode, number, string | undefined])[]) {
  test(`a store that is ${code} answers ${status}, ${retryAfter === undefined ? "and does not ask to repeat" : "come back later"}`, () => {
    const refusal = toStatusError(new StoreError(code, "commit revision 7: it did not work"));

    expect(refusal && toResponse(refusal)).toMatchObject({ status });
    expect(refusal?.headers["retry-after"]).toBe(retryAfter);
  });
}

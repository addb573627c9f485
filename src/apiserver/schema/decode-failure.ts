/**
 * Why a body is no object of its kind, in the words of the real decoder. It is never sent as it is: body.ts
 * and apply-body.ts make a 400 of it, or a 422 where the object is the outcome of a patch.
 */
export class DecodeFailure extends Error {
  override readonly name = "DecodeFailure";
  /** The field that has such a value, as `spec.containers[0].ports`; undefined where the text itself is at fault. */
  path: string | undefined;
}

/**
 * Why a body is no object of its kind, in the words of the real decoder. It never leaves this folder:
 * body.ts makes a 400 of it, or a 422 where the object is the outcome of a patch.
 */
export class DecodeFailure extends Error {
  override readonly name = "DecodeFailure";
}

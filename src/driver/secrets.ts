import { CsiError } from "../csi/errors.ts";
import type { CallContext, ServedMethod } from "../csi/methods.ts";

/**
 * Makes every call that can carry secrets carry this value among them, as a real storage system would. For tests of
 * callers: it proves that they send what the classes and volumes name. The value is never part of a message.
 */
export function requireSecret(served: readonly ServedMethod[], value: string): readonly ServedMethod[] {
  return served.map((method) => {
    if (!method.method.input.fields.some(({ name }) => name === "secrets") || EXEMPT.test(method.path))
      return method;
    const handler = (
      request: { readonly secrets?: Readonly<Record<string, string>> },
      context: CallContext,
    ) => {
      if (!Object.values(request.secrets ?? {}).includes(value)) {
        throw new CsiError("UNAUTHENTICATED", "the secret that this driver requires is missing or wrong");
      }
      return method.handler(request as never, context);
    };
    return { ...method, handler: handler as unknown as ServedMethod["handler"] };
  });
}

/** Calls for which Kubernetes has no secret to give in practice. */
const EXEMPT = /\/(?:NodeExpandVolume|[A-Za-z]*GroupSnapshot)$/;

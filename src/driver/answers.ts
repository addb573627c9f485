import type { CallContext, ServedMethod } from "../csi/methods.ts";
import { toAnswer } from "./errors.ts";
import { HostError } from "./host.ts";

/**
 * A machine that fails is no bug of the driver: whatever a call meets, its answer names the cause, and only what is
 * not of the machine counts against the driver itself (`soundness.ts`).
 */
export function withCauses(served: readonly ServedMethod[]): readonly ServedMethod[] {
  return served.map((method) => {
    const doing = method.path.slice(method.path.lastIndexOf("/") + 1);
    const explained = (error: unknown) => (error instanceof HostError ? toAnswer(error, doing) : error);
    const work = method.handler as (request: never, context: CallContext) => unknown;
    const unary = async (request: never, context: CallContext) => {
      try {
        return await work(request, context);
      } catch (error) {
        throw explained(error);
      }
    };
    const stream = async function* (request: never, context: CallContext) {
      try {
        yield* work(request, context) as AsyncIterable<object>;
      } catch (error) {
        throw explained(error);
      }
    };
    const handler = method.method.methodKind === "unary" ? unary : stream;
    return { ...method, handler: handler as unknown as ServedMethod["handler"] };
  });
}

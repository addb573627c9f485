import type { Clock } from "../base/clock.ts";
import { isCsiError } from "./errors.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { askPlugin } from "./registration.ts";
import { kindOf } from "./socket-file.ts";

/** What a probe of a registrar answers: the number is the HTTP status, as liveness probes of upstream's registrar know it. */
export interface RegistrationHealth {
  readonly status: 200 | 404 | 500;
  readonly message: string;
}

/** A node agent itself gives this much to the same question. */
const ASK_MS = 1_000;

/**
 * Asks the registration socket who is behind it, on a connection of its own, as a node agent would. 404 when the socket is
 * gone, which means that the driver is not registered any more; 500 when somebody else or nobody answers.
 */
export async function registrationHealth(
  { clock }: { readonly clock: Clock },
  { socketPath, driverName }: { readonly socketPath: string; readonly driverName: string },
): Promise<RegistrationHealth> {
  if (kindOf(socketPath) !== "socket") {
    return { status: 404, message: `registration socket ${socketPath} does not exist` };
  }
  const channel = createGrpcChannel({ clock }, { socketPath });
  try {
    const found = await askPlugin(channel, { socketPath, timeoutMs: ASK_MS });
    if (found?.driverName === driverName) return { status: 200, message: "ok" };
    const other = found === undefined ? "a plugin of another kind" : `driver ${found.driverName}`;
    return { status: 500, message: `${other} answers on ${socketPath} instead of driver ${driverName}` };
  } catch (error) {
    const why = isCsiError(error) ? error.detail : "the question failed";
    return { status: 500, message: `registration socket ${socketPath}: ${why}` };
  } finally {
    channel.close();
  }
}

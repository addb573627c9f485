import type { Clock } from "../base/clock.ts";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import type { Transport } from "../kube/transport/transport.ts";

/** A server that is just being restarted is back within this; three tries take 0.4 s. */
const RETRY_MS = [100, 300] as const;

/** A try that took longer is not repeated: whoever looks at a silent terminal has waited enough. */
const PATIENCE_MS = 1_000;

/**
 * A transport for a person who waits. As long as the server has never answered, a connection that cannot be made is tried
 * three times and then given up with the error that `explain` makes, which clients do not repeat: an address that is
 * wrong stays wrong. After the first answer the client's own patience of 30 s holds, so a watch outlives a restart.
 */
export function createFirstContact(
  { inner, clock }: { readonly inner: Transport; readonly clock: Clock },
  explain: (error: KubeError) => Error,
): Transport {
  let answered = false;

  async function attempt<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const startedAtMs = clock.now();
    for (let tries = 0; ; tries++) {
      try {
        const answer = await send();
        answered = true;
        return answer;
      } catch (error) {
        if (answered || !isKubeError(error, "Unreachable")) throw error;
        const waitMs = RETRY_MS[tries];
        if (waitMs === undefined || clock.now() - startedAtMs + waitMs > PATIENCE_MS) throw explain(error);
        await clock.sleep(waitMs, signal);
      }
    }
  }

  return {
    request: (request) => attempt(() => inner.request(request), request.signal),
    stream: (request) => attempt(() => inner.stream(request), request.signal),
    close: () => inner.close(),
  };
}

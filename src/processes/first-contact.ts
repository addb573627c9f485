import type { Clock } from "../base/clock.ts";
import { formatAge } from "../views/age.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import type { Transport } from "../kube/transport/transport.ts";

/** A server that is just being restarted is back within this; three tries take 0.4 s. */
const RETRY_MS = [100, 300] as const;

/** A try that took longer is not repeated: whoever looks at a silent terminal has waited enough. */
const PATIENCE_MS = 1_000;

/** For the first answer of all; a busy server answers a page of 500 pods within a second or two. */
const FIRST_ANSWER_MS = 10_000;

/**
 * A transport for a person who waits. As long as the server has never answered, a connection that cannot be made is tried
 * three times and then given up with the error that `explain` makes, which clients do not repeat: an address that is
 * wrong stays wrong. One that takes the connection and says nothing is given up too, after `answerMs`. After the first answer the client's own patience of 30 s holds, so a watch outlives a restart.
 */
export function createFirstContact(
  { inner, clock }: { readonly inner: Transport; readonly clock: Clock },
  explain: (error: KubeError) => Error,
  { answerMs = FIRST_ANSWER_MS }: { readonly answerMs?: number } = {},
): Transport {
  let answered = false;

  /** Ends the request as well: it would keep the process from ending. */
  async function answerOf<T>(send: Send<T>, signal: AbortSignal | undefined): Promise<T> {
    if (answered) return send(signal);
    const [silence, done] = [new AbortController(), new AbortController()];
    const both = signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]);
    const given = clock.sleep(answerMs, done.signal).then(
      () => {
        // Another request may have been answered meanwhile: then the server is there, and only slow.
        if (answered) return new Promise<never>(() => undefined);
        silence.abort();
        throw explain(
          new KubeError(
            "Unreachable",
            `it takes connections, but has answered nothing for ${formatAge(answerMs)}`,
          ),
        );
      },
      () => new Promise<never>(() => undefined),
    );
    try {
      return await Promise.race([send(both), given]);
    } finally {
      done.abort();
    }
  }

  async function attempt<T>(send: Send<T>, signal: AbortSignal | undefined): Promise<T> {
    const startedAtMs = clock.now();
    for (let tries = 0; ; tries++) {
      try {
        const answer = await answerOf(send, signal);
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
    request: (request) =>
      attempt((signal) => inner.request({ ...request, ...(signal && { signal }) }), request.signal),
    stream: (request) =>
      attempt((signal) => inner.stream({ ...request, ...(signal && { signal }) }), request.signal),
    close: () => inner.close(),
  };
}

type Send<T> = (signal: AbortSignal | undefined) => Promise<T>;

import { abortReason } from "./clock.ts";

/**
 * One signal for work that ends with any of several: it aborts with the first reason, and follows none of them once the work is
 * over. AbortSignal.any has no such end. Node keeps every signal made by it that has a listener, and whatever the listener reaches,
 * until a source aborts: 8 MB a simulated cluster; and each source keeps a reference to it for as long as it lives itself.
 */
export async function withEither<T>(
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const sources = signals.filter((signal) => signal !== undefined);
  const [only] = sources;
  if (only !== undefined && sources.length === 1) return work(only);
  const controller = new AbortController();
  const leave = follow(controller, sources);
  try {
    return await work(controller.signal);
  } finally {
    leave();
  }
}

/** `controller` aborts with the first of `sources`, until the answer is called. */
export function follow(controller: AbortController, sources: readonly AbortSignal[]): () => void {
  const aborted = sources.find((source) => source.aborted);
  if (aborted !== undefined) {
    controller.abort(abortReason(aborted));
    return () => undefined;
  }
  const listeners = sources.map((source) => ({ source, abort: () => controller.abort(abortReason(source)) }));
  for (const { source, abort } of listeners) source.addEventListener("abort", abort, { once: true });
  return () => {
    for (const { source, abort } of listeners) source.removeEventListener("abort", abort);
  };
}

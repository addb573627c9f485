/**
 * Work that many ask for at once, done once for all of them: whoever asks while it is under way shares the next round.
 * Each gets an answer that began after it asked, so that nobody who has just mounted something misses it. A failure is
 * the failure of all who shared the round.
 *
 * Bound: one round under way and one to come, however many ask.
 */
export function together<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  function start(): Promise<T> {
    const round = work();
    running = round;
    const end = () => {
      if (running === round) running = undefined;
    };
    round.then(end, end);
    return round;
  }

  function startNext(): Promise<T> {
    next = undefined;
    return start();
  }

  return () => {
    if (running === undefined) return start();
    next ??= running.then(startNext, startNext);
    return next;
  };
}

import { abortReason } from "../base/clock.ts";

/**
 * Who may ask the server next. After a start every object of every pod is asked for at once, and so they are after the
 * server was away; what a pod waits for then goes before what only has to be looked over.
 *
 * Bound: `max` at a time; the lines hold one entry an object that is followed.
 */
export interface Turns<K> {
  /** Resolves when it may ask; the caller calls the answer once, when the server has replied. Rejects on abort. */
  enter(who: K, options: { readonly urgent: boolean; readonly signal: AbortSignal }): Promise<() => void>;
  /** Somebody waits for it now. */
  promote(who: K): void;
}

export function createTurns<K>({ max }: { readonly max: number }): Turns<K> {
  const urgent = new Map<K, () => void>();
  const others = new Map<K, () => void>();
  let asking = 0;

  function next(): void {
    while (asking < max) {
      const line = urgent.size > 0 ? urgent : others;
      const [first] = line;
      if (first === undefined) return;
      const [who, start] = first;
      line.delete(who);
      asking++;
      start();
    }
  }

  function createLeave(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      asking--;
      next();
    };
  }

  return {
    enter(who, { urgent: first, signal }) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(abortReason(signal));
          return;
        }
        const onAbort = () => {
          urgent.delete(who);
          others.delete(who);
          reject(abortReason(signal));
        };
        signal.addEventListener("abort", onAbort, { once: true });
        (first ? urgent : others).set(who, () => {
          signal.removeEventListener("abort", onAbort);
          resolve(createLeave());
        });
        next();
      });
    },
    promote(who) {
      const start = others.get(who);
      if (start === undefined) return;
      others.delete(who);
      urgent.set(who, start);
    },
  };
}

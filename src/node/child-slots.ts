import { withEither } from "../base/signals.ts";
import type { Clock, Timer } from "../base/clock.ts";
import { HostError } from "./host.ts";

/**
 * How many processes the agent may have below it, whatever is asked of it. Deleting 110 pods with 4 volumes each once
 * started 222 of them: 5 GiB, and 22 s until `/livez` was answered. 8 are enough: a mount takes 10 ms, so that 5 of them
 * at a time do 500 a second, more than two cores can.
 *
 * A process that hangs in the kernel keeps its slot until the kernel lets go of it, so that dead mounts could take them
 * all. Therefore a program that others wait for is stopped after 5 s, and what it was about is a suspect: suspects and
 * what is known to take long (mkfs, fsck) have at most 2 slots, and 3 stay for whoever is quick.
 */
export interface ChildSlots {
  /**
   * Runs a program once it is its turn. `work` calls `onExit` when the process is gone, which may be after its answer,
   * and rejects with `TimedOut` where it had to be stopped.
   */
  program<T>(turn: ProgramTurn, work: ProgramWork<T>): Promise<T>;
  /** A slot for a process that stays; undefined where all are taken. Give it back when the process is gone. */
  prober(): (() => void) | undefined;
  /** Processes alive: for tests and for whoever wonders. */
  readonly taken: number;
}

export interface ProgramTurn {
  /** What it is about: a mount point, a device. One that had to be stopped is a suspect under this name. */
  readonly about: string;
  /** For messages: `umount /path`. */
  readonly doing: string;
  /** May take minutes and is never stopped for others: mkfs, fsck, a driver's program. */
  readonly long: boolean;
  readonly signal?: AbortSignal | undefined;
}

export type ProgramWork<T> = (signal: AbortSignal, onExit: () => void) => Promise<T>;

export const CHILDREN_MAX = 8;
/** One that serves, and two that hang or finish long walks. */
export const PROBERS_MAX = 3;
export const PROGRAMS_MAX = CHILDREN_MAX - PROBERS_MAX;
const SLOW_MAX = 2;
/** What a program gets while others wait. `umount` of a clean volume takes 10 ms; of a dirty one, as long as its disk. */
export const PATIENCE_MS = 5_000;
/** Programs that wait for a slot; more are refused. */
const WAITING_MAX = 10_000;
/** Names remembered: a node has fewer volumes. */
const SUSPECTS_MAX = 1_000;

interface Waiting {
  readonly turn: ProgramTurn;
  readonly start: () => void;
  readonly refuse: (error: Error) => void;
}

interface Running {
  readonly turn: ProgramTurn;
  readonly slow: boolean;
  readonly stop: AbortController;
  /** Whether its caller has its answer: then it only hangs in the kernel. */
  answered: boolean;
  overdue: boolean;
  timer?: Timer;
}

export function createChildSlots({ clock }: { readonly clock: Clock }): ChildSlots {
  const running = new Set<Running>();
  const suspects = new Set<string>();
  const waiting: { readonly quick: Waiting[]; readonly slow: Waiting[] } = { quick: [], slow: [] };
  let probers = 0;
  /** One start a turn: each blocks this process until the child has become its program, 50 ms on a busy machine. */
  let startedThisTurn = false;

  const isSlow = ({ long, about }: ProgramTurn) => long || suspects.has(about);
  const slowOnes = () => [...running].filter(({ slow }) => slow).length;

  function mayStart(slow: boolean): boolean {
    return !startedThisTurn && running.size < PROGRAMS_MAX && (!slow || slowOnes() < SLOW_MAX);
  }

  /** Whoever is quick first: the slow ones wait for minutes anyway. */
  function next(): void {
    if (mayStart(false) && waiting.quick.length > 0) waiting.quick.shift()?.start();
    else if (mayStart(true) && waiting.slow.length > 0) waiting.slow.shift()?.start();
    if (running.size === PROGRAMS_MAX && [...running].every(({ answered }) => answered)) refuseAll();
    else if (waiting.quick.length > 0) stopOverdue();
  }

  /** Nobody will be served before the kernel lets go of one of them; that may be never. */
  function refuseAll(): void {
    const names = [...running].map(({ turn }) => turn.doing).join(", ");
    for (const { turn, refuse } of [...waiting.quick.splice(0), ...waiting.slow.splice(0)])
      refuse(
        new HostError(
          "Failed",
          `${turn.doing}: not started, as ${PROGRAMS_MAX} programs hang in the kernel (${names}); it is tried again`,
        ),
      );
  }

  function stopOverdue(): void {
    const one = [...running].find(({ overdue, stop }) => overdue && !stop.signal.aborted);
    if (one === undefined) return;
    one.stop.abort(new HostError("TimedOut", `${one.turn.doing}: stopped, as others wait`));
  }

  function suspect(about: string): void {
    suspects.add(about);
    const [oldest] = suspects;
    if (suspects.size > SUSPECTS_MAX && oldest !== undefined) suspects.delete(oldest);
  }

  async function run<T>(turn: ProgramTurn, slow: boolean, work: ProgramWork<T>): Promise<T> {
    const one: Running = { turn, slow, stop: new AbortController(), answered: false, overdue: false };
    running.add(one);
    startedThisTurn = true;
    clock.after(0, () => {
      startedThisTurn = false;
      next();
    });
    if (!slow)
      one.timer = clock.after(PATIENCE_MS, () => {
        one.overdue = true;
        next();
      });
    const { signal } = one.stop;
    const onExit = () => {
      running.delete(one);
      next();
    };
    try {
      const result = await withEither([turn.signal, signal], (either) => work(either, onExit));
      suspects.delete(turn.about);
      return result;
    } catch (error) {
      if (error instanceof HostError && error.code === "TimedOut") suspect(turn.about);
      throw error;
    } finally {
      one.timer?.cancel();
      one.answered = true;
      next();
    }
  }

  /** Whoever is called off while he waits leaves the line. */
  function inLine<T>(turn: ProgramTurn, slow: boolean, work: ProgramWork<T>): Promise<T> {
    const line = slow ? waiting.slow : waiting.quick;
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        turn.signal?.removeEventListener("abort", leave);
        end();
      };
      const entry: Waiting = {
        turn,
        start: () => settle(() => resolve(run(turn, slow, work))),
        refuse: (error) => settle(() => reject(error)),
      };
      const leave = () => {
        line.splice(line.indexOf(entry), 1);
        reject(new HostError("Failed", `${turn.doing}: called off before it was started`));
      };
      if (line.length >= WAITING_MAX) {
        reject(
          new HostError("Failed", `${turn.doing}: ${WAITING_MAX} programs wait already; it is tried again`),
        );
        return;
      }
      line.push(entry);
      turn.signal?.addEventListener("abort", leave, { once: true });
      next();
    });
  }

  return {
    async program(turn, work) {
      turn.signal?.throwIfAborted();
      const slow = isSlow(turn);
      return mayStart(slow) ? run(turn, slow, work) : inLine(turn, slow, work);
    },
    prober() {
      if (probers >= PROBERS_MAX) return undefined;
      probers++;
      let given = false;
      return () => {
        if (!given) probers--;
        given = true;
      };
    },
    get taken() {
      return running.size + probers;
    },
  };
}

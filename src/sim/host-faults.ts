import type { Clock } from "../base/clock.ts";
import { mapCalls, subjectOf, touches, type HostCall, type HostView } from "./host-calls.ts";

/** How calls of a machine go wrong. With nothing but `code` they fail at once, with nothing done. */
export interface HostFault<Code extends string> {
  /** `mounts.mount`; any call where left out. */
  readonly call?: string;
  /** Only calls that name this path. */
  readonly path?: string;
  /** How many calls meet it, 1 unless told; `Infinity`: until `heal`. */
  readonly times?: number;
  /** What they answer; none: what the work answers. */
  readonly code?: Code;
  /** With a code: whether the work is done all the same, and only its answer lost. */
  readonly done?: boolean;
  /** They do not answer before this much has passed. Without `done` the work begins only then. */
  readonly afterMs?: number;
  /** The same as a moment of the clock: all of them hang until then. */
  readonly untilMs?: number;
  /** Told in the message, after the call: `failed on request` unless told. */
  readonly text?: string;
}

/** A machine as one process sees it, which meets failures on request and can be killed between any two calls. */
export interface FaultyMachine<H, Code extends string> {
  readonly host: H;
  readonly inject: (fault: HostFault<Code>) => void;
  /** From now on nothing fails that was asked for. What hangs goes on to hang. */
  readonly heal: () => void;
  /**
   * kill -9: the process never hears of anything again, so that no clean-up of it runs; its locks and the devices that
   * it has open are let go.
   */
  readonly kill: () => void;
  /** It dies at its n-th change from now on, counted from 0: before it, or `after` it was done. */
  readonly dieAt: (change: number, when?: "before" | "after") => void;
  readonly isDead: boolean;
  /** Changes so far. */
  readonly changes: number;
  /** Every change in order, as `mounts.mount /path`. */
  readonly log: readonly string[];
}

interface Injected<Code extends string> {
  readonly fault: HostFault<Code>;
  left: number;
}

const NEVER = new Promise<never>(() => undefined);

export function createFaultyMachine<H extends object, Code extends string>(
  host: H,
  { clock, view }: { readonly clock: Clock; readonly view: HostView<H, Code> },
): FaultyMachine<H, Code> {
  const faults: Injected<Code>[] = [];
  const log: string[] = [];
  const open = new OpenFiles();
  let dies: { readonly at: number; readonly when: "before" | "after" } | undefined;
  let dead = false;
  const isDead = () => dead;

  function kill(): Promise<never> {
    dead = true;
    open.closeAll();
    return NEVER;
  }

  async function meet(fault: HostFault<Code>, call: HostCall, work: () => unknown): Promise<unknown> {
    const { code, done = false, afterMs = 0, untilMs = 0, text = "failed on request" } = fault;
    const waitMs = Math.max(afterMs, untilMs - clock.now());
    const isDoneFirst = done || (code === undefined && waitMs <= 0);
    const answer = isDoneFirst ? await work() : undefined;
    if (waitMs > 0) await clock.sleep(waitMs);
    if (code === undefined) return isDoneFirst ? answer : work();
    // An open file that nobody knows of: the process closes it with the answer it did not get.
    if (typeof answer === "function") await (answer as () => Promise<void>)();
    throw view.error(code, `${call.name} ${fault.path ?? subjectOf(call)}: ${text}`);
  }

  function withFaults(call: HostCall, work: () => unknown): unknown {
    const met = faults.find(
      ({ fault, left }) =>
        left > 0 &&
        (fault.call ?? call.name) === call.name &&
        (fault.path === undefined || touches(call, fault.path)),
    );
    if (met === undefined) return work();
    met.left--;
    return meet(met.fault, call, work);
  }

  async function around(call: HostCall, real: () => unknown): Promise<unknown> {
    if (dead) return NEVER;
    const isChange = view.changes.has(call.name);
    let number = -1;
    const answer = await withFaults(call, () => {
      // It may have been killed while this call hung.
      if (dead) return NEVER;
      if (!isChange) return real();
      number = log.push(`${call.name} ${subjectOf(call)}`) - 1;
      return dies?.at === number && dies.when === "before" ? kill() : real();
    });
    if (typeof answer === "function") return open.add(answer as () => Promise<void>, isDead());
    return (isChange && dies?.at === number) || isDead() ? kill() : answer;
  }

  return {
    host: mapCalls(host, view, around),
    inject: (fault) => void faults.push({ fault, left: fault.times ?? 1 }),
    heal: () => void faults.splice(0),
    kill: () => void kill(),
    dieAt(change, when = "before") {
      dies = { at: log.length + change, when };
    },
    get isDead() {
      return dead;
    },
    get changes() {
      return log.length;
    },
    log,
  };
}

/** What the kernel closes when a process ends: locks and pinned devices, each known by how it is released. */
class OpenFiles {
  readonly #open = new Set<() => Promise<void>>();

  add(release: () => Promise<void>, isDead: boolean): Promise<never> | (() => Promise<void>) {
    this.#open.add(release);
    if (isDead) {
      this.closeAll();
      return NEVER;
    }
    // What a dead process goes on to release is released.
    return async () => {
      if (this.#open.delete(release)) await release();
    };
  }

  closeAll(): void {
    for (const release of this.#open) void release();
    this.#open.clear();
  }
}

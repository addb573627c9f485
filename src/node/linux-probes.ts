import { abortReason, type Clock } from "../base/clock.ts";
import type { ChildSlots } from "./child-slots.ts";
import { HostError } from "./host.ts";
import { toHostError } from "./linux-errors.ts";
import { createProbePool, type Message, type ProbeChild } from "./linux-probe-pool.ts";

/**
 * Looks at paths that may hang, in child processes that can be killed. A dead NFS server holds whoever touches it in
 * the kernel; in this process that would be one of libuv's 4 threads, and the fifth such look would end all file work.
 * A look costs a message each way. Which process does it, `linux-probe-pool.ts` knows.
 */
export interface Probes {
  /** Rejects with HostError `TimedOut` when a child has not answered within the deadline, also where the look never ends. */
  ask(look: Look): Promise<unknown>;
  /** Several looks by one child, which stays until `work` has settled: for descriptors it holds. */
  session<T>(work: (ask: (look: Look) => Promise<unknown>) => Promise<T>): Promise<T>;
  /** A walk over a whole volume. Given up at once when the signal aborts, and when it has not moved for a minute. */
  walk(walk: Walk): Promise<unknown>;
  /** Children alive: for tests and for whoever wonders. */
  readonly children: readonly number[];
  close(): void;
}

export interface Look {
  readonly action: string;
  readonly path: string;
  readonly args?: Readonly<Record<string, unknown>>;
  /** For messages: `look at /path`. */
  readonly doing: string;
}

export interface Walk extends Look {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((files: number) => void) | undefined;
}

/** Without any progress: then it hangs. */
const STALL_MS = 60_000;
/** A walk that was called off stops at its next directory, or it hangs. */
const CANCEL_MS = 10_000;
/** Looks at a time at paths that did not answer the last time: the others need threads too. */
const SUSPECT_LOOKS_MAX = 16;
/** Paths remembered: a node has fewer mounts. */
const SUSPECTS_MAX = 1_000;

export function createProbes(
  { clock, slots }: { readonly clock: Clock; readonly slots: ChildSlots },
  { timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {},
): Probes {
  const pool = createProbePool({ clock, slots });
  const suspects = createSuspects();
  let lastId = 0;

  function send(to: ProbeChild, look: Look): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      const ended = suspects.enter(look.path);
      const settle = (end: () => void) => {
        timer.cancel();
        to.work.look.delete(id);
        ended();
        end();
        pool.rest(to);
      };
      const timer = clock.after(timeoutMs, () => {
        to.hung.add(look.path);
        suspects.add(look.path);
        const error = new HostError("TimedOut", `${look.doing}: no answer within ${timeoutMs} ms`);
        settle(() => reject(error));
      });
      to.work.look.set(id, {
        reply: (message) => {
          suspects.delete(look.path);
          settle(() => settleWith(message, look, resolve, reject));
        },
        lost: () => settle(() => reject(endedWith(look))),
      });
      to.send({ id, action: look.action, args: { path: look.path, ...look.args } });
    });
  }

  /** A child that not even SIGKILL ends is in the kernel still: another look at that path would only join it there. */
  function refuseHung({ path, doing }: Look): void {
    if (pool.children.some(({ hung }) => hung.has(path)))
      throw new HostError("TimedOut", `${doing}: an earlier look at it still hangs`);
    if (suspects.isFull(path))
      throw new HostError(
        "TimedOut",
        `${doing}: it did not answer before, and too many others do not either`,
      );
  }

  return {
    async ask(look) {
      refuseHung(look);
      return new Promise((resolve, reject) =>
        pool.withChild("look", (child) => void send(child, look).then(resolve, reject), reject),
      );
    },
    async session(work) {
      const held = await new Promise<ProbeChild>((resolve, reject) => {
        const use = (child: ProbeChild) => {
          child.sessions++;
          resolve(child);
        };
        pool.withChild("look", use, reject);
      });
      try {
        return await work((look) => {
          refuseHung(look);
          return send(held, look);
        });
      } finally {
        held.sessions--;
        pool.rest(held);
      }
    },
    async walk(walk) {
      walk.signal?.throwIfAborted();
      return new Promise((resolve, reject) => {
        const id = ++lastId;
        pool.withChild("walk", (child) => runWalk({ clock, pool, child, id, walk, resolve, reject }), reject);
      });
    },
    get children() {
      return pool.children.map(({ pid }) => pid);
    },
    close: () => pool.close(),
  };
}

interface WalkRun {
  readonly clock: Clock;
  readonly pool: { rest(child: ProbeChild): void };
  readonly child: ProbeChild;
  readonly id: number;
  readonly walk: Walk;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

function runWalk({ clock, pool, child, id, walk, resolve, reject }: WalkRun): void {
  const { action, path, args, doing, signal, onProgress } = walk;
  let stall = clock.after(STALL_MS, () => hang(STALL_MS));
  function end(settle: () => void): void {
    stall.cancel();
    signal?.removeEventListener("abort", onAbort);
    child.work.walk.delete(id);
    settle();
    pool.rest(child);
  }
  function hang(afterMs: number): void {
    child.hung.add(path);
    end(() => reject(new HostError("TimedOut", `${doing}: nothing moved for ${afterMs} ms`)));
  }
  /** The caller goes on at once; the walk has its place until it has really stopped. */
  function onAbort(): void {
    child.send({ id, action: "cancel", args: {} });
    stall.cancel();
    stall = clock.after(CANCEL_MS, () => hang(CANCEL_MS));
    reject(signal === undefined ? new Error("aborted") : abortReason(signal));
  }
  child.work.walk.set(id, {
    reply(message) {
      if (message.progress === undefined) {
        end(() => settleWith(message, walk, resolve, reject));
        return;
      }
      if (signal?.aborted === true) return;
      stall.cancel();
      stall = clock.after(STALL_MS, () => hang(STALL_MS));
      onProgress?.(message.progress);
    },
    lost: () => end(() => reject(endedWith(walk))),
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  child.send({ id, action, args: { path, ...args } });
  if (signal?.aborted === true) onAbort();
}

function settleWith(
  { value, error }: Message,
  { doing }: Look,
  resolve: (value: unknown) => void,
  reject: (error: Error) => void,
): void {
  if (error === undefined) resolve(value);
  else reject(toHostError(doing, toError(error)));
}

function endedWith({ doing }: Look): HostError {
  return new HostError("Failed", `${doing}: the process that looked ended; it is tried again`);
}

/** Paths whose last look had no answer. However many mounts are dead, looks at them take a part of the threads only. */
function createSuspects() {
  const paths = new Set<string>();
  let under = 0;
  return {
    isFull: (path: string) => paths.has(path) && under >= SUSPECT_LOOKS_MAX,
    /** Call what it answers when the look has ended. */
    enter(path: string): () => void {
      if (!paths.has(path)) return () => undefined;
      under++;
      return () => {
        under--;
      };
    },
    add(path: string): void {
      paths.add(path);
      const [oldest] = paths;
      if (paths.size > SUSPECTS_MAX && oldest !== undefined) paths.delete(oldest);
    },
    delete: (path: string) => void paths.delete(path),
  };
}

/** Errors cross the channel as their code and text. */
function toError(error: unknown): unknown {
  if (error instanceof Error || typeof error !== "object" || error === null) return error;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return Object.assign(new Error(String(message)), { code });
}

import { spawn, type ChildProcess } from "node:child_process";
import { abortReason, type Clock, type Timer } from "../base/clock.ts";
import { HostError } from "./host.ts";
import { toHostError } from "./linux-errors.ts";
import { probeChildMain } from "./linux-probe-child.ts";

/**
 * Looks at paths that may hang, in child processes that can be killed. A dead NFS server holds whoever touches it in
 * the kernel; in this process that would be one of libuv's 4 threads, and the fifth such look would end all file work.
 *
 * A look costs a message each way; children start when first asked and are kept. Each takes at most as many looks at a
 * time as it has threads, so that a look never queues behind one that hangs. A child with a look past its deadline gets
 * no more work, and is killed as soon as its other looks have ended.
 */
export interface Probes {
  /** Rejects with HostError `TimedOut` when a child has not answered within the deadline, also where the look never ends. */
  ask(look: Look): Promise<unknown>;
  /** Several looks by one child, which stays until `work` has settled: for descriptors it holds. */
  session<T>(work: (ask: (look: Look) => Promise<unknown>) => Promise<T>): Promise<T>;
  /** A walk in a child of its own, killed when the signal aborts or when it has not moved for a minute. */
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

/** Threads of a child: its looks at a time. */
const THREADS = 16;
/** Children that take work; together 64 looks may hang before one more has to wait. */
const CHILDREN_MAX = 4;
/** Looks that wait for a thread; more are refused. */
const WAITING_MAX = 10_000;
/** Without any progress: then it hangs. */
const STALL_MS = 60_000;

interface Pending {
  readonly look: Look;
  readonly settle: (outcome: Reply) => void;
  readonly timer: Timer;
}

interface Reply {
  readonly value?: unknown;
  readonly error?: unknown;
}

interface Child {
  readonly process: ChildProcess;
  readonly pending: Map<number, Pending>;
  /** Paths of looks past their deadline, which this child may still be in. */
  readonly hung: Set<string>;
  sessions: number;
}

export function createProbes(
  { clock }: { readonly clock: Clock },
  { timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {},
): Probes {
  const children = new Set<Child>();
  const waiting: ((child: Child) => void)[] = [];
  const walkers = createWalkers(clock);
  let lastId = 0;

  function takesWork(child: Child): boolean {
    return child.hung.size === 0 && child.pending.size + child.sessions < THREADS;
  }

  /** A child with a free thread, once there is one. */
  function child(): Child | Promise<Child> {
    const free = [...children].find(takesWork);
    if (free !== undefined) return free;
    if ([...children].filter(({ hung }) => hung.size === 0).length < CHILDREN_MAX) return start();
    if (waiting.length >= WAITING_MAX)
      throw new HostError("TimedOut", `${WAITING_MAX} looks at files wait already; mounts of this node hang`);
    return new Promise((resolve) => waiting.push(resolve));
  }

  function start(): Child {
    const started: Child = { process: spawnChild(), pending: new Map(), hung: new Set(), sessions: 0 };
    children.add(started);
    onReplies(started.process, ({ id, ...reply }) => {
      const pending = started.pending.get(id);
      started.pending.delete(id);
      pending?.settle(reply);
      rest(started);
    });
    started.process.once("exit", () => ended(started));
    started.process.once("error", () => ended(started));
    return started;
  }

  function ended(gone: Child): void {
    children.delete(gone);
    for (const { look, settle } of gone.pending.values())
      settle({
        error: new HostError("Failed", `${look.doing}: the process that looked ended; it is tried again`),
      });
    gone.pending.clear();
    if (waiting.length > 0) waiting.shift()?.(start());
  }

  /** After each answer: the next in line, or nothing to do, or the end of a child that hangs. */
  function rest(idle: Child): void {
    if (takesWork(idle)) waiting.shift()?.(idle);
    if (idle.pending.size + idle.sessions > 0) return;
    if (idle.hung.size > 0) idle.process.kill("SIGKILL");
    idle.process.channel?.unref();
  }

  function send(to: Child, look: Look): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      const settle = ({ error, value }: Reply) => {
        timer.cancel();
        if (error === undefined) resolve(value);
        else reject(toHostError(look.doing, toError(error)));
      };
      const timer = clock.after(timeoutMs, () => {
        to.hung.add(look.path);
        to.pending.delete(id);
        settle({ error: new HostError("TimedOut", `${look.doing}: no answer within ${timeoutMs} ms`) });
        rest(to);
      });
      to.pending.set(id, { look, settle, timer });
      to.process.channel?.ref();
      to.process.send({ id, action: look.action, args: { path: look.path, ...look.args } });
    });
  }

  /** A child that not even SIGKILL ends is in the kernel still: another look at that path would only join it there. */
  function refuseHung({ path, doing }: Look): void {
    if ([...children].some(({ hung }) => hung.has(path)))
      throw new HostError("TimedOut", `${doing}: an earlier look at it still hangs`);
  }

  return {
    async ask(look) {
      refuseHung(look);
      // Without a turn in between: looks asked for in one turn would all find the same child free.
      const to = child();
      return send(to instanceof Promise ? await to : to, look);
    },
    async session(work) {
      const held = await child();
      held.sessions++;
      try {
        return await work((look) => {
          refuseHung(look);
          return send(held, look);
        });
      } finally {
        held.sessions--;
        rest(held);
      }
    },
    walk: (walk) => walkers.run(walk),
    get children() {
      return [...children].flatMap(({ process }) => process.pid ?? []);
    },
    close() {
      for (const one of children) one.process.kill("SIGKILL");
      walkers.close();
    },
  };
}

/** Walkers kept for the next walk: starting one takes 50 ms, most walks are over small trees. */
const IDLE_WALKERS_MAX = 2;

/** Runs walks, each in a process of its own, which is kept where the walk ended by itself. */
function createWalkers(clock: Clock): { run(walk: Walk): Promise<unknown>; close(): void } {
  const idle: ChildProcess[] = [];

  function take(): ChildProcess {
    const child = idle.pop() ?? spawnChild();
    child.removeAllListeners().channel?.ref();
    return child;
  }

  function giveBack(child: ChildProcess): void {
    child.removeAllListeners();
    child.channel?.unref();
    if (!child.connected || idle.length >= IDLE_WALKERS_MAX) child.kill("SIGKILL");
    else idle.push(child);
    const forget = () => {
      if (idle.includes(child)) idle.splice(idle.indexOf(child), 1);
    };
    child.once("exit", forget).once("error", forget);
  }

  return {
    run: (walk) => runWalk(clock, walk, take(), giveBack),
    close() {
      for (const child of idle) child.kill("SIGKILL");
    },
  };
}

function runWalk(
  clock: Clock,
  { action, path, args, doing, signal, onProgress }: Walk,
  child: ChildProcess,
  giveBack: (child: ChildProcess) => void,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let stall = clock.after(STALL_MS, onStall);
    function end(settle: () => void, { reusable }: { readonly reusable: boolean }): void {
      stall.cancel();
      signal?.removeEventListener("abort", onAbort);
      child.removeAllListeners();
      // A kill that comes late finds no listener left; an error event without one would end the agent.
      child.on("error", () => undefined);
      if (reusable) giveBack(child);
      else child.kill("SIGKILL");
      settle();
    }
    const fail = (error: Error) => end(() => reject(error), { reusable: false });
    function onStall(): void {
      fail(new HostError("TimedOut", `${doing}: nothing moved for ${STALL_MS} ms`));
    }
    function onAbort(): void {
      fail(signal === undefined ? new Error("aborted") : abortReason(signal));
    }
    onReplies(child, ({ progress, error, value }) => {
      stall.cancel();
      if (progress === undefined) {
        const settle = () =>
          error === undefined ? resolve(value) : reject(toHostError(doing, toError(error)));
        end(settle, { reusable: true });
        return;
      }
      stall = clock.after(STALL_MS, onStall);
      onProgress?.(progress);
    });
    child.once("exit", () => fail(new HostError("Failed", `${doing}: the process that did it ended`)));
    child.once("error", (error) => fail(toHostError(doing, error)));
    signal?.addEventListener("abort", onAbort, { once: true });
    child.send({ id: 1, action, args: { path, ...args } });
    if (signal?.aborted === true) onAbort();
  });
}

interface Message extends Reply {
  readonly id: number;
  readonly progress?: number;
}

function onReplies(child: ChildProcess, listener: (message: Message) => void): void {
  child.on("message", (message) => listener(message as Message));
}

function spawnChild(): ChildProcess {
  // Bundlers wrap named functions in a helper that text taken out of its module does not have.
  const text = `const __name = (fn) => fn; (${String(probeChildMain)})()`;
  const child = spawn(process.execPath, ["--eval", text], {
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: { UV_THREADPOOL_SIZE: String(THREADS) },
  });
  // A child that hangs in the kernel must not keep this process from ending.
  child.unref();
  return child;
}

/** Errors cross the channel as their code and text. */
function toError(error: unknown): unknown {
  if (error instanceof Error || typeof error !== "object" || error === null) return error;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return Object.assign(new Error(String(message)), { code });
}

import { spawn, type ChildProcess } from "node:child_process";
import type { Clock, Timer } from "../base/clock.ts";
import type { ChildSlots } from "./child-slots.ts";
import { HostError } from "./host.ts";
import { probeChildMain } from "./linux-probe-child.ts";
import { createProcessScan } from "./linux-processes-child.ts";

/**
 * The processes that look at paths which may hang. One serves; it is started when first asked and ends after half a
 * minute without work. One that hangs gets no more work, another takes its place, and it is killed when the rest of its
 * work has ended. Each is 50 MB, so there are three at most: where a fourth is due, the one that has hung longest goes
 * with the work it still has.
 */
export interface ProbePool {
  /** Calls `use` with a child that has room, at once or later; `refuse` where there is none and will be none. */
  withChild(kind: WorkKind, use: (child: ProbeChild) => void, refuse: (error: HostError) => void): void;
  /** After each answer: the next in line, or nothing to do, or the end of a child that hangs. */
  rest(child: ProbeChild): void;
  readonly children: readonly ProbeChild[];
  close(): void;
}

export type WorkKind = "look" | "walk";

export interface ProbeChild {
  readonly pid: number;
  readonly work: Readonly<Record<WorkKind, Map<number, Work>>>;
  /** Paths of work past its deadline, which this child may still be in. */
  readonly hung: Set<string>;
  /** Looks in a row by one caller, for the descriptors between them. */
  sessions: number;
  send(message: { readonly id: number; readonly action: string; readonly args: unknown }): void;
}

export interface Work {
  reply(message: Message): void;
  /** The process is gone. */
  lost(): void;
}

export interface Message {
  readonly id: number;
  readonly progress?: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** Looks at a time: as many may hang before one more has to wait for their deadline. */
const LOOKS_MAX = 96;
/** Walks at a time. A patient one has 16 calls on the way at once. */
const WALKS_MAX = 2;
/** So that no look ever waits for a thread. A thread takes 10 kB. */
const THREADS = 128;
const ROOM: Readonly<Record<WorkKind, number>> = { look: LOOKS_MAX, walk: WALKS_MAX };
/** Work that waits; more is refused. */
const WAITING_MAX = 10_000;
const IDLE_MS = 30_000;
/** SIGKILL ends a process within this, or it hangs in the kernel. */
const KILL_MS = 2_000;

interface Member extends ProbeChild {
  readonly process: ChildProcess;
  killed: boolean;
  idle?: Timer | undefined;
}

interface Waiting {
  readonly use: (child: ProbeChild) => void;
  readonly refuse: (error: HostError) => void;
}

export function createProbePool({
  clock,
  slots,
}: {
  readonly clock: Clock;
  readonly slots: ChildSlots;
}): ProbePool {
  const members = new Set<Member>();
  const waiting: Readonly<Record<WorkKind, Waiting[]>> = { look: [], walk: [] };

  const serving = () => [...members].find(({ killed, hung }) => !killed && hung.size === 0);
  const hasRoom = ({ work, sessions }: Member, kind: WorkKind) =>
    work[kind].size + (kind === "look" ? sessions : 0) < ROOM[kind];

  /** Undefined where every slot is taken; then the one that has hung longest is ended. */
  function start(): Member | undefined {
    const giveBack = slots.prober();
    if (giveBack === undefined) {
      const oldest = [...members].find(({ killed }) => !killed);
      if (oldest !== undefined) kill(oldest);
      return undefined;
    }
    const started = newMember();
    members.add(started);
    const ended = () => {
      if (!members.delete(started)) return;
      started.idle?.cancel();
      giveBack();
      for (const work of [...started.work.look.values(), ...started.work.walk.values()]) work.lost();
      if (waiting.look.length + waiting.walk.length === 0) return;
      const next = serving() ?? start();
      if (next !== undefined) serve(next);
    };
    started.process.once("exit", ended).once("error", ended);
    started.process.on("message", (message) => {
      const reply = message as Message;
      for (const work of [started.work.look, started.work.walk]) work.get(reply.id)?.reply(reply);
    });
    return started;
  }

  function kill(member: Member): void {
    member.killed = true;
    member.idle?.cancel();
    member.process.kill("SIGKILL");
    if (waiting.look.length + waiting.walk.length > 0) refuseUnlessGone(member);
  }

  /** Not even SIGKILL ends what hangs in the kernel: nobody is served then, and should know. */
  function refuseUnlessGone(member: Member): void {
    clock.after(KILL_MS, () => {
      if (!members.has(member) || serving() !== undefined) return;
      for (const { refuse } of [...waiting.look.splice(0), ...waiting.walk.splice(0)]) refuse(allHang());
    });
  }

  function serve(member: Member): void {
    for (const kind of ["look", "walk"] as const)
      while (hasRoom(member, kind) && waiting[kind].length > 0) waiting[kind].shift()?.use(member);
  }

  function rest(child: ProbeChild): void {
    const member = child as Member;
    if (member.killed || !members.has(member)) return;
    if (member.hung.size === 0) serve(member);
    if (member.work.look.size + member.work.walk.size + member.sessions > 0) return;
    if (member.hung.size > 0) kill(member);
    else {
      member.process.channel?.unref();
      member.idle?.cancel();
      member.idle = clock.after(IDLE_MS, () => kill(member));
    }
  }

  return {
    withChild(kind, use, refuse) {
      const free = serving() ?? start();
      if (free !== undefined && hasRoom(free, kind)) {
        free.idle?.cancel();
        use(free);
        return;
      }
      const line = waiting[kind];
      const dying = free === undefined && [...members].every(({ killed }) => killed);
      if (line.length >= WAITING_MAX) refuse(allHang());
      else {
        line.push({ use, refuse });
        if (dying) for (const member of members) refuseUnlessGone(member);
      }
    },
    rest,
    get children() {
      return [...members];
    },
    close() {
      for (const member of members) kill(member);
    },
  };
}

function allHang(): HostError {
  return new HostError(
    "TimedOut",
    "mounts of this node hang, and so do all processes that looked at them; it is tried again",
  );
}

function newMember(): Member {
  const child = spawnChild();
  return {
    process: child,
    pid: child.pid ?? 0,
    work: { look: new Map(), walk: new Map() },
    hung: new Set(),
    sessions: 0,
    killed: false,
    send(message) {
      child.channel?.ref();
      // One that has just ended has no channel; its end is told by an event.
      if (child.connected) child.send(message, () => undefined);
    },
  };
}

function spawnChild(): ChildProcess {
  // Most of its 50 MB is the program itself, which it shares with the agent. Optimized code and a large young generation
  // would be 6 MB more for calls that wait for the disk anyway. Said from inside: an unknown flag would end it at once.
  const frugal = `process.getBuiltinModule("node:v8").setFlagsFromString("--no-opt");`;
  // Bundlers wrap named functions in a helper that text taken out of its module does not have.
  const text = `${frugal} const __name = (fn) => fn; (${String(probeChildMain)})((${String(createProcessScan)})())`;
  const child = spawn(process.execPath, ["--max-semi-space-size=1", "--v8-pool-size=0", "--eval", text], {
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: { UV_THREADPOOL_SIZE: String(THREADS) },
  });
  // A child that hangs in the kernel must not keep this process from ending.
  child.unref();
  return child;
}

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { clearHost } from "./host-leftovers.ts";
import { until } from "./until.ts";

/** How long a program may take to leave after SIGTERM before it is killed. */
const LEAVE_MS = 5_000;

/**
 * One suite's directory and everything that was started in it. `close` ends the programs in the reverse of their order,
 * takes away mounts and loop devices below the directory, and then the directory, whatever happened before.
 */
export interface Stage {
  readonly directory: string;
  path(...names: readonly string[]): string;
  folder(...names: readonly string[]): Promise<string>;
  start(name: string, command: string, args: readonly string[]): Program;
  /** Aborted when a program ends that nobody asked to, the reason names it, or by `giveUp`. */
  readonly signal: AbortSignal;
  giveUp(reason: string): void;
  /** As `until`, but only as long as every program lives: what waits for a dead one would wait for nothing. */
  until<T>(what: string, withinMs: number, ask: () => Promise<T | undefined | false>): Promise<T>;
  /** Done by `close` when every program is gone, for what a program leaves outside of the directory. */
  atEnd(work: () => Promise<void>): void;
  /** The last lines of every program that ended by itself, for the reason of a failure. */
  obituary(): Promise<string>;
  close(): Promise<void>;
}

export interface Program {
  readonly name: string;
  readonly pid: number;
  readonly log: string;
  /** False once it ended, for whatever reason. */
  readonly alive: boolean;
  /** Resolves when it is gone. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

export async function openStage(name: string): Promise<Stage> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), `mooring-conformance-${name}-`)));
  const programs: Launched[] = [];
  const path = (...names: readonly string[]) => join(directory, ...names);
  const ends: (() => Promise<void>)[] = [];
  const bereft = new AbortController();
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    for (const program of programs.toReversed()) await program.end();
    for (const work of ends.toReversed()) await work().catch(() => undefined);
    await clearHost(directory);
    await rm(directory, { recursive: true, force: true });
  }

  return {
    directory,
    path,
    async folder(...names) {
      await mkdir(path(...names), { recursive: true });
      return path(...names);
    },
    start(programName, command, args) {
      const program = launch(programName, {
        command,
        args,
        log: path(`${programName}-${programs.length}.log`),
      });
      programs.push(program);
      void program.gone.then(() => {
        if (!program.asked) bereft.abort(`${programName} ended by itself`);
      });
      return program;
    },
    signal: bereft.signal,
    giveUp: (reason) => bereft.abort(reason),
    until: (what, withinMs, ask) => until(what, withinMs, ask, bereft.signal),
    atEnd: (work) => void ends.push(work),
    async obituary() {
      const dead = programs.filter(({ alive, asked }) => !alive && !asked);
      const texts = await Promise.all(
        dead.map(async ({ name, log }) => `${name} ended: ${await lastLines(log)}`),
      );
      return texts.join("; ");
    },
    close: () => (closing ??= close()),
  };
}

interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly log: string;
}

interface Launched extends Program {
  /** That it ended was wanted. */
  readonly asked: boolean;
  readonly gone: Promise<void>;
}

function launch(name: string, { command, args, log }: Launch): Launched {
  const file = openSync(log, "a");
  const child = spawn(command, args, { stdio: ["ignore", file, file] });
  closeSync(file);
  // A program that cannot even be started counts as one that ended.
  let failed = false;
  child.on("error", () => (failed = true));
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const alive = () => !failed && child.exitCode === null && child.signalCode === null;
  let asked = false;
  return {
    name,
    pid: child.pid ?? -1,
    log,
    gone,
    get alive() {
      return alive();
    },
    get asked() {
      return asked;
    },
    async end(signal = "SIGTERM") {
      if (!alive()) return;
      asked = true;
      await endChild(child, { signal, gone });
    },
  };
}

async function endChild(
  child: ChildProcess,
  { signal, gone }: { signal: NodeJS.Signals; gone: Promise<void> },
): Promise<void> {
  child.kill(signal);
  const patience = new AbortController();
  const late = sleep(LEAVE_MS, undefined, { signal: patience.signal }).then(
    () => child.kill("SIGKILL"),
    () => undefined,
  );
  await gone;
  patience.abort();
  await late;
}

async function lastLines(log: string): Promise<string> {
  const text = await readFile(log, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-3).join(" | ").slice(-600);
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

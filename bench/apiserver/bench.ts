import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask, startChild } from "../child.ts";
import type { FanOutResult, ListResult, RateResult, Task } from "./load.ts";
import { judge, table, toJson, type Findings } from "./report.ts";
import type { Served, Target } from "./server.ts";

/**
 * The embedded API server under load, as `mooring apiserver` runs it: durable store, TLS, tokens and roles. With a peer,
 * a real server on this machine gets the same load in the same run. Answers whether everything written was listed and
 * everything watched was heard of; figures alone fail nobody.
 */
export async function apiserver({ tiny, peer }: { tiny: boolean; peer?: Target }): Promise<boolean> {
  const sizes = tiny ? TINY : FULL;
  const { findings: ours, store } = await measureOurs(sizes);
  if (peer === undefined) say("no --peer-apiserver: ours is not compared with anything");
  const theirs = peer === undefined ? undefined : await measure("peer", peer, sizes);
  const sides = { store, objects: sizes.objects, ours, peer: theirs };
  process.stdout.write(table(sides));
  if (peer === undefined)
    process.stdout.write("peer: left out, no --peer-apiserver URL --peer-token TOKEN\n");
  const missed = judge(sides);
  for (const message of missed) process.stdout.write(`missed: ${message}\n`);
  process.stdout.write(`${toJson(sides, { tiny, ok: missed.length === 0 })}\n`);
  return missed.length === 0;
}

interface Sizes {
  readonly objects: number;
  readonly seconds: number;
  readonly watchers: number;
  readonly writes: number;
}

const FULL: Sizes = { objects: 100_000, seconds: 5, watchers: 3_000, writes: 200 };
const TINY: Sizes = { objects: 600, seconds: 0.2, watchers: 20, writes: 10 };

const HEAP_MB = 4_096;

/** Far above what any step takes; a step that hangs ends the run with an error instead of never. */
const STEP_DEADLINE_MS = 240_000;

async function measureOurs(sizes: Sizes): Promise<{ findings: Findings; store: string }> {
  const directory = await mkdtemp(join(tmpdir(), "mooring-bench-"));
  const server = startChild<Served>({
    role: "apiserver-server",
    input: { directory },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
  try {
    const served = await server.answer;
    const findings = await measure("ours", served, sizes);
    return { findings: { ...findings, memory: await memoryOf(served.pid) }, store: served.store };
  } finally {
    await server.end();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Namespaces that nobody else has, so that a peer in use keeps what it had; they are deleted in the end. */
async function measure(who: string, { url, token }: Target, sizes: Sizes): Promise<Findings> {
  const prefix = `mooring-bench-${process.pid}`;
  const [few, many, watched] = [`${prefix}-few`, `${prefix}-many`, `${prefix}-watched`];
  const namespaces = [few, many, watched];
  const run = <Result>(task: Task) => load<Result>({ url, token }, task);
  const { objects, seconds, watchers, writes } = sizes;
  await run({ task: "prepare", namespaces });
  try {
    say(`${who}: writes`);
    const write1 = await run<RateResult>({ task: "write", namespace: few, writers: 1, seconds });
    const write64 = await run<RateResult>({ task: "write", namespace: few, writers: 64, seconds });
    say(`${who}: ${watchers} watchers`);
    const fanOut = await run<FanOutResult>({ task: "fan-out", namespace: watched, watchers, writes });
    say(`${who}: ${objects} objects`);
    const fill = await run<RateResult>({ task: "fill", namespace: many, count: objects });
    const get = await run<RateResult>({ task: "get", namespace: many, count: objects, seconds });
    const listPaged = await run<ListResult>({ task: "list", namespace: many, limit: 500 });
    const listWhole = await run<ListResult>({ task: "list", namespace: many });
    return { write1, write64, fill, get, listWhole, listPaged, fanOut, memory: undefined };
  } finally {
    if (who === "peer") await run({ task: "remove", namespaces });
  }
}

function load<Result>(target: Target, task: Task): Promise<Result> {
  return ask<Result>({
    role: "apiserver-load",
    input: { ...task, ...target },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
}

/** As Linux tells it; elsewhere nobody does. */
async function memoryOf(pid: number): Promise<Findings["memory"]> {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const bytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? NaN) * 1_024;
  return { rssBytes: bytes("VmRSS"), rssPeakBytes: bytes("VmHWM") };
}

function say(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}

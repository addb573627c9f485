import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, startChild } from "../child.ts";
import type { FanOutResult, ListResult, RateResult, Task } from "./load.ts";
import type { Peer } from "./peer.ts";
import { judge, table, toJson, type Findings, type Memory } from "./report.ts";
import type { Served, Target } from "./server.ts";

/**
 * The embedded API server under load, as `mooring apiserver` runs it: durable store, TLS, tokens and roles. With a peer,
 * a real server on this machine gets the same load in the same run; the two take turns, step by step, so that other work
 * on the machine disturbs both alike. Answers whether everything written was listed and everything watched was heard of;
 * figures alone fail nobody.
 */
export async function apiserver({ tiny, peer }: { tiny: boolean; peer?: Peer }): Promise<boolean> {
  const sizes = tiny ? TINY : FULL;
  if (peer === undefined) say("no --peer-apiserver: ours is not compared with anything");
  const { ours, theirs, store } = await withOurs(async (served) => {
    const contestants = [{ who: "ours", pids: [served.pid], url: served.url, token: served.token }];
    if (peer !== undefined) contestants.push({ who: "peer", ...peer, pids: [...peer.pids] });
    const [ours, theirs] = await measure(contestants, sizes);
    if (ours === undefined) throw new Error("nothing was measured");
    return { ours, theirs, store: served.store };
  });
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
  /** Of writes, GETs and lists; the median counts. */
  readonly rounds: number;
  readonly watchers: number;
  readonly writes: number;
  /** Before memory is looked at: both runtimes give back what they do not need only after a while. */
  readonly restMs: number;
}

const FULL: Sizes = {
  objects: 100_000,
  seconds: 5,
  rounds: 3,
  watchers: 3_000,
  writes: 200,
  restMs: 30_000,
};
const TINY: Sizes = { objects: 600, seconds: 0.2, rounds: 1, watchers: 20, writes: 10, restMs: 0 };

const HEAP_MB = 4_096;

/** Far above what any step takes; a step that hangs ends the run with an error instead of never. */
const STEP_DEADLINE_MS = 600_000;

async function withOurs<Result>(work: (served: Served) => Promise<Result>): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), "mooring-bench-"));
  const server = startChild<Served>({
    role: "apiserver-server",
    input: { directory },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
  try {
    return await work(await server.answer);
  } finally {
    await server.end();
    await rm(directory, { recursive: true, force: true });
  }
}

interface Contestant extends Peer {
  readonly who: string;
}

/** Namespaces that nobody else has, so that a peer in use keeps what it had; they are deleted in the end. */
async function measure(contestants: readonly Contestant[], sizes: Sizes): Promise<Findings[]> {
  const prefix = `mooring-bench-${process.pid}`;
  const [few, many, watched] = [`${prefix}-few`, `${prefix}-many`, `${prefix}-watched`];
  const namespaces = [few, many, watched];
  const turns = createTurns(contestants);
  const { objects, seconds, watchers, writes, rounds } = sizes;
  await turns.once("namespaces", { task: "prepare", namespaces });
  try {
    const write = (writers: number, round: number): Task => ({
      task: "write",
      namespace: few,
      round,
      writers,
      seconds,
    });
    const write1 = await turns.median<RateResult>("1 writer", rounds, (round) => write(1, round));
    const write64 = await turns.median<RateResult>("64 writers", rounds, (round) => write(64, round));
    const fanOut = await turns.median<FanOutResult>(`${watchers} watchers`, rounds, (round) => {
      return { task: "fan-out", namespace: watched, round, watchers, writes };
    });
    const fill = await turns.once<RateResult>(`${objects} objects`, {
      task: "fill",
      namespace: many,
      count: objects,
    });
    const memory = await restAndLook(contestants, sizes);
    const get = await turns.median<RateResult>("GETs", rounds, () => {
      return { task: "get", namespace: many, count: objects, seconds };
    });
    const listPaged = await turns.median<ListResult>("pages", rounds, () => {
      return { task: "list", namespace: many, limit: 500 };
    });
    const listWhole = await turns.median<ListResult>("whole lists", rounds, () => {
      return { task: "list", namespace: many };
    });
    const memoryAfterLists = await restAndLook(contestants, sizes);
    return contestants.map((_, index) => ({
      write1: at(write1, index),
      write64: at(write64, index),
      fanOut: at(fanOut, index),
      fill: at(fill, index),
      get: at(get, index),
      listPaged: at(listPaged, index),
      listWhole: at(listWhole, index),
      memory: memory[index],
      memoryAfterLists: memoryAfterLists[index],
    }));
  } finally {
    for (const contestant of contestants.slice(1)) await load(contestant, { task: "remove", namespaces });
  }
}

/** Every step is done by each contestant before the next step begins. */
function createTurns(contestants: readonly Contestant[]) {
  async function once<Result>(name: string, task: Task): Promise<Result[]> {
    const results: Result[] = [];
    for (const contestant of contestants) {
      say(`${contestant.who}: ${name}`);
      results.push(await load<Result>(contestant, task));
    }
    return results;
  }
  async function median<Result extends RateResult | FanOutResult | ListResult>(
    name: string,
    rounds: number,
    task: (round: number) => Task,
  ): Promise<Result[]> {
    const all: Result[][] = [];
    for (let round = 0; round < rounds; round++) all.push(await once<Result>(name, task(round)));
    return contestants.map((_, index) => medianOf(all.map((results) => at(results, index))));
  }
  return { once, median };
}

function medianOf<Result extends RateResult | FanOutResult | ListResult>(results: Result[]): Result {
  const value = (result: RateResult | FanOutResult | ListResult) =>
    "ms" in result ? result.ms : "perSecond" in result ? result.perSecond : result.eventsPerSecond;
  results.sort((a, b) => value(a) - value(b));
  return at(results, Math.floor(results.length / 2));
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`contestant ${index} was not measured`);
  return item;
}

function load<Result>({ url, token }: Target, task: Task): Promise<Result> {
  return ask<Result>({
    role: "apiserver-load",
    input: { ...task, url, token },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
}

async function restAndLook(
  contestants: readonly Contestant[],
  { restMs }: Sizes,
): Promise<(Memory | undefined)[]> {
  if (restMs > 0) say(`rest for ${restMs / 1_000} s, then memory`);
  await sleep(restMs);
  return Promise.all(contestants.map(({ pids }) => memoryOf(pids)));
}

/** Of all processes of a contestant, as Linux tells it; elsewhere nobody does. */
async function memoryOf(pids: readonly number[]): Promise<Memory | undefined> {
  let [rssBytes, rssPeakBytes] = [0, 0];
  for (const pid of pids) {
    const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    rssBytes += bytesIn(text, "VmRSS");
    rssPeakBytes += bytesIn(text, "VmHWM");
  }
  return pids.length === 0 ? undefined : { rssBytes, rssPeakBytes };
}

function bytesIn(status: string, name: string): number {
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? NaN) * 1_024;
}

function say(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}

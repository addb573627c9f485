import { openConnection, type Connection } from "./connections.ts";
import type { Target } from "./server.ts";

/** What a contestant is put under, in a process that is fresh for each. All in namespaces of the benchmark's own. */
export type Task =
  | { readonly task: "prepare"; readonly namespaces: readonly string[] }
  | { readonly task: "remove"; readonly namespaces: readonly string[] }
  | WriteLoad
  | { readonly task: "fill"; readonly namespace: string; readonly count: number }
  | { readonly task: "get"; readonly namespace: string; readonly count: number; readonly seconds: number }
  | { readonly task: "list"; readonly namespace: string; readonly limit?: number }
  | FanOutLoad;

export type Load = Target & Task;

interface WriteLoad {
  readonly task: "write";
  readonly namespace: string;
  /** Names of one round must not meet those of another. */
  readonly round: number;
  readonly writers: number;
  readonly seconds: number;
}

interface FanOutLoad {
  readonly task: "fan-out";
  readonly namespace: string;
  readonly round: number;
  readonly watchers: number;
  readonly writes: number;
}

export interface RateResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

export interface ListResult {
  readonly ms: number;
  readonly bytes: number;
  readonly objects: number;
}

export interface FanOutResult {
  readonly eventsPerSecond: number;
  readonly events: number;
  /** From before a single write until the last watcher has it: the median of a few. */
  readonly lastWatcherMs: number;
}

export async function runLoad(load: Load): Promise<RateResult | ListResult | FanOutResult | null> {
  const connection = openConnection(load);
  try {
    switch (load.task) {
      case "prepare":
        for (const name of load.namespaces) await createNamespace(connection, name);
        return null;
      case "remove":
        for (const name of load.namespaces)
          await connection.send("DELETE", `/api/v1/namespaces/${name}`).catch(() => undefined);
        return null;
      case "write":
        return await measureRate(load.writers, load.seconds, (index) =>
          create(connection, load.namespace, `w${load.writers}-${load.round}-${index}`),
        );
      case "fill":
        return await fill(connection, load.namespace, load.count);
      case "get":
        return await measureRate(32, load.seconds, (index) =>
          connection.send("GET", `${mapsOf(load.namespace)}/${nameOf((index * 7_919) % load.count)}`),
        );
      case "list":
        return await measureList(connection, load.namespace, load.limit);
      case "fan-out":
        return await measureFanOut(connection, load);
    }
  } finally {
    connection.close();
  }
}

async function createNamespace(connection: Connection, name: string): Promise<void> {
  await connection.send("POST", "/api/v1/namespaces", JSON.stringify({ metadata: { name } }));
}

function mapsOf(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps`;
}

function nameOf(index: number): string {
  return `o-${String(index).padStart(7, "0")}`;
}

/** About 1 kB as JSON, as in the measurements of others. */
const PADDING = "x".repeat(700);

function create(connection: Connection, namespace: string, name: string): Promise<Buffer> {
  const metadata = { name, labels: { app: "bench", shard: String(name.length) } };
  return connection.send("POST", mapsOf(namespace), JSON.stringify({ metadata, data: { padding: PADDING } }));
}

/** Keeps so many under way for a while; what is answered after the end does not count. */
async function measureRate(
  inFlight: number,
  seconds: number,
  request: (index: number) => Promise<unknown>,
): Promise<RateResult> {
  const startAtMs = performance.now() + (seconds < 1 ? 0 : WARM_UP_MS);
  const endAtMs = startAtMs + seconds * 1_000;
  const tookMs: number[] = [];
  let next = 0;
  async function work(): Promise<void> {
    for (let sentAtMs = performance.now(); sentAtMs < endAtMs; sentAtMs = performance.now()) {
      await request(next++);
      const nowMs = performance.now();
      if (sentAtMs >= startAtMs && nowMs < endAtMs) tookMs.push(nowMs - sentAtMs);
    }
  }
  await Promise.all(Array.from({ length: inFlight }, work));
  return { perSecond: tookMs.length / seconds, ...percentiles(tookMs), count: tookMs.length };
}

const WARM_UP_MS = 500;

async function fill(connection: Connection, namespace: string, count: number): Promise<RateResult> {
  const startedAtMs = performance.now();
  const tookMs: number[] = [];
  let next = 0;
  async function work(): Promise<void> {
    while (next < count) {
      const sentAtMs = performance.now();
      await create(connection, namespace, nameOf(next++));
      tookMs.push(performance.now() - sentAtMs);
    }
  }
  await Promise.all(Array.from({ length: 64 }, work));
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { perSecond: count / seconds, ...percentiles(tookMs), count };
}

function percentiles(tookMs: number[]): { p50Ms: number; p99Ms: number } {
  tookMs.sort((a, b) => a - b);
  const at = (part: number) => tookMs[Math.floor(tookMs.length * part)] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** Until the last byte is here; objects are counted afterwards. */
async function measureList(
  connection: Connection,
  namespace: string,
  limit: number | undefined,
): Promise<ListResult> {
  const pages: Buffer[] = [];
  const startedAtMs = performance.now();
  let token = "";
  do {
    const query = limit === undefined ? "" : `?limit=${limit}${token === "" ? "" : `&continue=${token}`}`;
    const page = await connection.send("GET", mapsOf(namespace) + query);
    pages.push(page);
    token = encodeURIComponent(tokenOf(page));
  } while (token !== "");
  const ms = performance.now() - startedAtMs;
  const bytes = pages.reduce((sum, page) => sum + page.length, 0);
  return { ms, bytes, objects: pages.reduce((sum, page) => sum + countOf(page, '"uid":'), 0) };
}

/** From the beginning of the list, where its metadata is, without parsing the rest. */
function tokenOf(page: Buffer): string {
  return /"continue":"([^"]*)"/.exec(page.toString("latin1", 0, 1_000))?.[1] ?? "";
}

function countOf(buffer: Buffer, text: string): number {
  let count = 0;
  for (let at = buffer.indexOf(text); at >= 0; at = buffer.indexOf(text, at + text.length)) count++;
  return count;
}

/** The real server allows 100 streams a connection; more would wait for ever. */
const WATCHES_A_CONNECTION = 100;

async function measureFanOut(connection: Connection, load: Target & FanOutLoad): Promise<FanOutResult> {
  const { namespace, watchers, writes } = load;
  const events = createCounter();
  const connections = Array.from({ length: Math.ceil(watchers / WATCHES_A_CONNECTION) }, () =>
    openConnection(load),
  );
  try {
    const path = `${mapsOf(namespace)}?watch=true&resourceVersion=${await versionNow(connection, namespace)}`;
    const opened = connections.flatMap((each, index) =>
      Array.from({ length: watchersOf(index, watchers) }, () =>
        each.watch(path, (chunk) => events.add(chunk)),
      ),
    );
    await Promise.all(opened);
    const lastMs: number[] = [];
    for (let round = 0; round < SINGLE_WRITES; round++) {
      const startedAtMs = performance.now();
      await create(connection, namespace, `single-${load.round}-${round}`);
      await events.reach((round + 1) * watchers);
      lastMs.push(performance.now() - startedAtMs);
    }
    const startedAtMs = performance.now();
    let next = 0;
    async function work(): Promise<void> {
      while (next < writes) await create(connection, namespace, `many-${load.round}-${next++}`);
    }
    await Promise.all(Array.from({ length: 16 }, work));
    await events.reach((SINGLE_WRITES + writes) * watchers);
    const seconds = (performance.now() - startedAtMs) / 1_000;
    return {
      eventsPerSecond: (writes * watchers) / seconds,
      events: writes * watchers,
      lastWatcherMs: percentiles(lastMs).p50Ms,
    };
  } finally {
    for (const each of connections) each.close();
  }
}

const SINGLE_WRITES = 5;

/** What is there already, from earlier rounds or by the cluster itself, is no event of this one. */
async function versionNow(connection: Connection, namespace: string): Promise<string> {
  const page = await connection.send("GET", `${mapsOf(namespace)}?limit=1`);
  return (JSON.parse(page.toString()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
}

/** All connections are full but the last. */
function watchersOf(connection: number, watchers: number): number {
  return Math.min(WATCHES_A_CONNECTION, watchers - connection * WATCHES_A_CONNECTION);
}

/** Counts lines, which is what events are. */
function createCounter() {
  let count = 0;
  let waiting: { target: number; resolve: () => void } | undefined;
  return {
    add(chunk: Buffer) {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count++;
      if (waiting !== undefined && count >= waiting.target) waiting.resolve();
    },
    reach: (target: number) =>
      new Promise<void>((resolve) => {
        waiting = { target, resolve };
        if (count >= target) resolve();
      }),
  };
}

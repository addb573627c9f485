import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createCaches } from "../../src/attach-detach/caches.ts";
import { createAttachDetachController } from "../../src/attach-detach/controller.ts";
import { DEFAULT_OPTIONS } from "../../src/attach-detach/options.ts";
import { createLogger } from "../../src/base/log.ts";
import { createPromMetrics } from "../../src/base/prom-metrics.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import { createEventRecorder } from "../../src/kube/events/events.ts";
import type { Fleet } from "./fleet.ts";
import { createMemoryCluster, type MemoryCluster } from "./memory-cluster.ts";
import { percentilesOf, type Percentiles } from "./percentiles.ts";

export interface ScaleTask {
  readonly fleet: Fleet;
  /** At rest, after stock was taken. */
  readonly idleMs: number;
  /** Pods that come and go one by one, each with a spare volume. */
  readonly cycles: number;
}

export interface ScaleResult {
  /** From the first request until every object is cached and stock is taken. */
  readonly stockMs: number;
  readonly stockCpuMs: number;
  /** Kept after collecting garbage, above what there was before. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly rssPeakBytes: number;
  readonly placements: number;
  /** Of one core, over the whole rest; undefined without one. */
  readonly idleCpuPercent: number | undefined;
  /** From the event on the pod watch to the request that creates the VolumeAttachment. */
  readonly reaction: Percentiles;
  /** Of this whole process, its API server included, for one attach and one detach. */
  readonly cycleCpuMs: number;
  /** Of one attach and one detach, in their order; events left out. */
  readonly requests: readonly string[];
}

/** The whole controller in a process of its own, in front of a cluster that exists only as numbers. */
export async function measureScale({ fleet, idleMs, cycles }: ScaleTask): Promise<ScaleResult> {
  const cluster = createMemoryCluster(fleet);
  const heapBefore = await heapAfterCollection();
  const startedAtMs = performance.now();
  const startCpu = process.cpuUsage();
  const controller = await startController(cluster);
  const stockMs = performance.now() - startedAtMs;
  const stockCpuMs = cpuMsSince(startCpu);
  const heapBytes = (await heapAfterCollection()) - heapBefore;
  const memory = { rssBytes: process.memoryUsage.rss(), rssPeakBytes: process.resourceUsage().maxRSS * 1024 };
  const idleCpu = process.cpuUsage();
  await sleep(idleMs);
  const idleCpuPercent = idleMs === 0 ? undefined : (cpuMsSince(idleCpu) / idleMs) * 100;
  const cycled = await measureCycles(cluster, fleet, cycles);
  const placements = controller.report().volumes.length;
  return { stockMs, stockCpuMs, heapBytes, ...memory, placements, idleCpuPercent, ...cycled };
}

/** As `processes/controller.ts` puts it together, without an election. */
async function startController({ transport }: MemoryCluster) {
  const clock = createSystemClock();
  const random = createSystemRandom();
  const metrics = createPromMetrics();
  let stockTaken = (): void => undefined;
  const ready = new Promise<void>((resolve) => (stockTaken = resolve));
  const log = createLogger((level, message, fields) => {
    if (message === "stock taken") stockTaken();
    if (level === "warn" || level === "error") process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  });
  const client = createClient({ transport, clock, random, metrics });
  const caches = createCaches({ client, clock, random, log, metrics });
  const source = { component: "attachdetach-controller", host: "bench" };
  const events = createEventRecorder({ client, clock, random, log, metrics }, source);
  const controller = createAttachDetachController(
    { client, caches, events, clock, random, log, metrics, plugins: () => [], mayAct: () => true },
    DEFAULT_OPTIONS,
  );
  // All of it ends with the process.
  const { signal } = new AbortController();
  // Every watch and wait listens; Node would call more than ten a leak.
  setMaxListeners(0, signal);
  for (const part of [caches, events, controller]) void part.run(signal);
  await ready;
  return controller;
}

/** One at a time: what is measured is the reaction of a controller at rest. */
async function measureCycles(cluster: MemoryCluster, fleet: Fleet, cycles: number) {
  const tookMs: number[] = [];
  let requests: readonly string[] = [];
  let cpu = process.cpuUsage();
  const warmUp = Math.ceil(cycles / 5);
  for (let cycle = -warmUp; cycle < cycles; cycle++) {
    if (cycle === 0) cpu = process.cpuUsage();
    // Another volume and another node each time, as far as there are.
    const volume = fleet.attached + ((cycle + warmUp) % fleet.spare);
    const seen = await runCycle(cluster, volume);
    if (cycle >= 0) tookMs.push(seen.reactionMs);
    requests = seen.requests;
  }
  return { reaction: percentilesOf(tookMs), cycleCpuMs: cpuMsSince(cpu) / cycles, requests };
}

/** A pod comes, its volume is attached and listed; the pod goes, and the volume with it. */
async function runCycle(cluster: MemoryCluster, volume: number) {
  const requests: string[] = [];
  let arrived = (_method: string): void => undefined;
  cluster.onRequest = (line) => {
    if (line.includes("/events")) return;
    requests.push(line.replace(/(volumeattachments|nodes)\/[^/]+/, "$1/NAME"));
    arrived(line.split(" ")[0] ?? "");
  };
  const until = (last: string, onEach = (_method: string): void => undefined) =>
    new Promise<void>((resolve) => {
      arrived = (method) => {
        onEach(method);
        if (method === last) resolve();
      };
    });
  let reactionMs = NaN;
  const sentAtMs = performance.now();
  const listed = until("PATCH", (method) => {
    if (method === "POST") reactionMs = performance.now() - sentAtMs;
  });
  cluster.addPod(volume);
  await listed;
  // The answers and their watch events have to arrive before the next step.
  await sleep(SETTLE_MS);
  const deleted = until("DELETE");
  cluster.deletePod(volume);
  await deleted;
  await sleep(SETTLE_MS);
  return { reactionMs, requests };
}

const SETTLE_MS = 2;

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** A moment first, for what is released only when the event loop comes round again. */
async function heapAfterCollection(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    await sleep(50);
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

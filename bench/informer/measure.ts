import { setTimeout as sleep } from "node:timers/promises";
import type { Served } from "./server.ts";

/** What a contestant is asked to do, in a process of its own. */
export type Task = Served & (SyncTask | GetTask);

export interface SyncTask {
  readonly task: "sync";
  readonly kinds: readonly KindName[];
  /** Ours only: false keeps all but managed fields, as an informer does that was told nothing. */
  readonly trimmed: boolean;
}

export interface GetTask {
  readonly task: "get";
  /** Of the pods to choose from. */
  readonly pods: number;
  readonly seconds: number;
}

export type KindName = "pods" | "nodes" | "volumeAttachments";

export interface SyncResult {
  readonly ms: number;
  /** Of all threads of the process, which unlike the time does not depend on who else uses the machine. */
  readonly cpuMs: number;
  /** Kept after collecting garbage, above what there was before. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly rssPeakBytes: number;
  readonly objects: number;
  /** Of the versions of all objects kept: both contestants must hold the same ones. */
  readonly checksum: number;
}

export interface GetResult {
  readonly perSecond: number;
  readonly count: number;
}

/** A cache in step with the server. It lives as long as its process: stopping it is not measured. */
export interface Cache {
  objects(): Iterable<{ metadata?: { resourceVersion?: string | undefined } | undefined }>;
}

/** `start` resolves when everything is here and every handler was told. */
export async function measureSync(start: () => Promise<Cache>): Promise<SyncResult> {
  const before = await heapAfterCollection();
  const startedAtMs = performance.now();
  const cpu = process.cpuUsage();
  const cache = await start();
  const ms = performance.now() - startedAtMs;
  const { user, system } = process.cpuUsage(cpu);
  const heapBytes = (await heapAfterCollection()) - before;
  const rssBytes = process.memoryUsage.rss();
  const rssPeakBytes = process.resourceUsage().maxRSS * 1024;
  let [objects, checksum] = [0, 0];
  for (const { metadata } of cache.objects()) {
    objects++;
    // A sum, because it must not matter in which order a cache keeps them.
    checksum = (checksum + Number(metadata?.resourceVersion)) % 1_000_000_007;
  }
  return { ms, cpuMs: (user + system) / 1_000, heapBytes, rssBytes, rssPeakBytes, objects, checksum };
}

/** A moment first, for what is released only when the event loop comes round again. */
async function heapAfterCollection(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    await sleep(50);
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

const IN_FLIGHT = 32;
const WARM_UP_MS = 500;

/** Keeps 32 requests under way for a while; what answers after the end does not count. */
export async function measureGets(
  { seconds, pods }: GetTask,
  get: (index: number) => Promise<{ metadata?: { name?: string | undefined } | undefined }>,
): Promise<GetResult> {
  const startAtMs = performance.now() + (seconds < 1 ? 0 : WARM_UP_MS);
  const endAtMs = startAtMs + seconds * 1_000;
  let next = 0;
  let count = 0;
  async function work(): Promise<void> {
    while (performance.now() < endAtMs) {
      const { metadata } = await get(next++ % pods);
      if (!metadata?.name) throw new Error("an answer without a name");
      const nowMs = performance.now();
      if (nowMs >= startAtMs && nowMs < endAtMs) count++;
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return { perSecond: count / seconds, count };
}

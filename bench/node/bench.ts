import { createSystemClock } from "../../src/base/system-clock.ts";
import { percentilesOf, type Percentiles } from "../attach-detach/percentiles.ts";
import { bindPod, deletePod, givenVolume, startCluster, type NodeCluster } from "./cluster.ts";
import { HUNG } from "./driver.ts";

/**
 * The node agent with the API server, the controller and the attacher, all as processes, and a driver that answers at
 * once: what is left is how long we take. One pod at a time, many at once, beside a call that hangs, after kill -9.
 */
export async function node({ tiny }: { tiny: boolean }): Promise<boolean> {
  if (process.getuid?.() !== 0) throw new Error("the node agent needs root; run this benchmark as root");
  const size = tiny ? TINY : FULL;
  const { idle, burst } = await inCluster({ mounts: false }, async (cluster) => ({
    idle: await oneByOne(cluster, size.idle),
    burst: await allAtOnce(cluster, "burst", size.many),
  }));
  const { alone, beside } = await inCluster({ mounts: false }, async (cluster) => {
    const first = await allAtOnce(cluster, "alone", size.healthy);
    await givenVolume(cluster, HUNG);
    await bindPod(cluster, HUNG);
    return { alone: first, beside: await allAtOnce(cluster, "beside", size.healthy) };
  });
  const restart = await inCluster({ mounts: true }, (cluster) => restarted(cluster, size.many));
  return report({ tiny, size, idle, burst, alone, beside, restart });
}

const FULL = { idle: 100, many: 500, healthy: 100 };
const TINY = { idle: 3, many: 5, healthy: 3 };
const IDLE_P99_MS_MAX = 150;
const HUNG_RATIO_MAX = 2;
const SERVING_MS_MAX = 2_000;

interface Ways {
  /** From asking for the pod, or for its end, to the driver's answer. */
  readonly publish: Percentiles;
  readonly unpublish: Percentiles;
  readonly detach: Percentiles;
  readonly allPublishedMs: number;
  readonly allDetachedMs: number;
}

interface Restart {
  readonly syncedMs: number;
  /** From before the new process to the answer for a pod that was bound when it started. */
  readonly servedMs: number;
  readonly rssMib: number;
}

const clock = createSystemClock();

async function inCluster<T>(
  options: { readonly mounts: boolean },
  work: (cluster: NodeCluster) => Promise<T>,
): Promise<T> {
  const cluster = await startCluster(options);
  try {
    await cluster.startAgent();
    // The first volume waits for the driver's registration; nothing of it is measured.
    await measure(cluster, ["warm-up"]);
    return await work(cluster);
  } finally {
    await cluster.stop();
  }
}

async function oneByOne(cluster: NodeCluster, count: number): Promise<Ways> {
  const all: Took[] = [];
  for (let n = 0; n < count; n++) all.push(...(await measure(cluster, [`idle-${n}`])));
  return waysOf(all);
}

async function allAtOnce(cluster: NodeCluster, prefix: string, count: number): Promise<Ways> {
  const names = Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
  return waysOf(await measure(cluster, names));
}

interface Took {
  readonly publishMs: number;
  readonly unpublishMs: number;
  readonly detachMs: number;
}

async function measure(cluster: NodeCluster, names: readonly string[]): Promise<readonly Took[]> {
  const { driver } = cluster;
  for (const name of names) await givenVolume(cluster, name);
  const published = await Promise.all(
    names.map(async (name) => {
      const beganMs = clock.now();
      await bindPod(cluster, name);
      return (await driver.done("publish", name)) - beganMs;
    }),
  );
  return Promise.all(
    names.map(async (name, n) => {
      const beganMs = clock.now();
      await deletePod(cluster, name);
      const unpublishMs = (await driver.done("unpublish", name)) - beganMs;
      const detachMs = (await driver.done("detach", name)) - beganMs;
      return { publishMs: published[n] ?? NaN, unpublishMs, detachMs };
    }),
  );
}

function waysOf(all: readonly Took[]): Ways {
  return {
    publish: percentilesOf(all.map(({ publishMs }) => publishMs)),
    unpublish: percentilesOf(all.map(({ unpublishMs }) => unpublishMs)),
    detach: percentilesOf(all.map(({ detachMs }) => detachMs)),
    allPublishedMs: Math.max(...all.map(({ publishMs }) => publishMs)),
    allDetachedMs: Math.max(...all.map(({ detachMs }) => detachMs)),
  };
}

/** Killed with many volumes mounted; a pod comes while nobody is there. */
async function restarted(cluster: NodeCluster, count: number): Promise<Restart> {
  const { driver } = cluster;
  const names = Array.from({ length: count }, (_, n) => `kept-${n}`);
  for (const name of [...names, "new"]) await givenVolume(cluster, name);
  await Promise.all(names.map((name) => bindPod(cluster, name).then(() => driver.done("publish", name))));
  await cluster.killAgent();
  await bindPod(cluster, "new");
  const beganMs = clock.now();
  const syncedMs = await cluster.startAgent();
  const servedMs = (await driver.done("publish", "new")) - beganMs;
  return { syncedMs, servedMs, rssMib: await cluster.agentRssMib() };
}

interface Findings {
  readonly tiny: boolean;
  readonly size: typeof FULL;
  readonly idle: Ways;
  readonly burst: Ways;
  readonly alone: Ways;
  readonly beside: Ways;
  readonly restart: Restart;
}

function report({ tiny, size, idle, burst, alone, beside, restart }: Findings): boolean {
  const ratio = beside.publish.p99Ms / alone.publish.p99Ms;
  const missed = [
    idle.publish.p99Ms > IDLE_P99_MS_MAX && `pod to volume: p99 above ${IDLE_P99_MS_MAX} ms`,
    idle.unpublish.p99Ms > IDLE_P99_MS_MAX && `pod gone to volume gone: p99 above ${IDLE_P99_MS_MAX} ms`,
    ratio > HUNG_RATIO_MAX && `a hung call makes others ${ratio.toFixed(1)} times as slow`,
    restart.servedMs > SERVING_MS_MAX && `a restart serves after ${Math.round(restart.servedMs)} ms`,
  ].filter((one) => one !== false);
  const ok = tiny || missed.length === 0;
  const both = ({ p50Ms, p99Ms }: Percentiles) => `p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)} ms`;
  const lines = [
    `${size.idle} pods one by one, bound to published:  ${both(idle.publish)}`,
    `  deleted to unpublished:  ${both(idle.unpublish)}`,
    `  deleted to detached:  ${both(idle.detach)}`,
    `${size.many} pods at once, bound to published:  ${both(burst.publish)}, all ${(burst.allPublishedMs / 1_000).toFixed(2)} s`,
    `  deleted to detached:  ${both(burst.detach)}, all ${(burst.allDetachedMs / 1_000).toFixed(2)} s`,
    `${size.healthy} pods at once, alone:  ${both(alone.publish)}`,
    `  beside a hung call:  ${both(beside.publish)}  (${ratio.toFixed(2)} times)`,
    `kill -9 with ${size.many} mounted: synced ${Math.round(restart.syncedMs)} ms, a waiting pod served ${Math.round(restart.servedMs)} ms, ${restart.rssMib} MiB`,
    ...(tiny ? [] : missed.map((one) => `missed: ${one}`)),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  const line = { bench: "node", tiny, ok, ratio, idle, burst, alone, beside, restart };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return ok;
}

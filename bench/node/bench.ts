import { createSystemClock } from "../../src/base/system-clock.ts";
import { percentilesOf, type Percentiles } from "../attach-detach/percentiles.ts";
import { contentUnderLoad, type Content } from "./content.ts";
import { bindPod, deletePod, givenVolume, startCluster, type NodeCluster } from "./cluster.ts";
import { HUNG } from "./driver.ts";
import {
  CHILDREN_MAX,
  linesOfRemoval,
  LIVEZ_MS_MAX,
  MEMORY_MIB_MAX,
  removal,
  type Removal,
} from "./removal.ts";

/**
 * The node agent with the API server, the controller and the attacher, all as processes, and a driver that answers at
 * once: what is left is how long we take. One pod at a time, many at once, beside a call that hangs, with 1,000 mounts in
 * the table, beside config maps that change without a pause, after kill -9, and a full node emptied at once. `--only` runs one part.
 */
export async function node({ tiny, only }: { tiny: boolean; only?: string | undefined }): Promise<boolean> {
  if (process.getuid?.() !== 0) throw new Error("the node agent needs root; run this benchmark as root");
  const wanted = only === undefined ? PARTS : PARTS.filter((part) => part === only);
  if (wanted.length === 0) throw new Error(`--only ${only ?? ""}: not one of ${PARTS.join(", ")}`);
  const size = tiny ? TINY : FULL;
  const findings: Findings = {};
  for (const part of wanted) Object.assign(findings, await measures[part](size));
  return report({ tiny, size, findings });
}

export const NODE_OPTIONS = ["--only"];

const PARTS = ["idle", "burst", "hung", "table", "content", "restart", "removal"] as const;

const measures: Readonly<Record<(typeof PARTS)[number], (size: typeof FULL) => Promise<Findings>>> = {
  idle: (size) =>
    inCluster({ mounts: false }, async (cluster) => ({ idle: await oneByOne(cluster, "idle", size.idle) })),
  burst: (size) =>
    inCluster({ mounts: false }, async (cluster) => ({
      burst: await allAtOnce(cluster, "burst", size.many),
    })),
  hung: (size) =>
    inCluster({ mounts: false }, async (cluster) => {
      const alone = await allAtOnce(cluster, "alone", size.healthy);
      await givenVolume(cluster, HUNG);
      await bindPod(cluster, HUNG);
      return { alone, beside: await allAtOnce(cluster, "beside", size.healthy) };
    }),
  table: (size) =>
    inCluster({ mounts: true }, async (cluster) => {
      const few = await oneByOne(cluster, "few", size.table);
      await cluster.addMounts(size.mounts);
      return { few, crowded: await oneByOne(cluster, "crowded", size.table) };
    }),
  content: ({ readers, healthy }) =>
    inCluster({ mounts: false }, async (cluster) => ({
      content: await contentUnderLoad(cluster, { readers, volumes: healthy }),
    })),
  restart: (size) =>
    inCluster({ mounts: true }, async (cluster) => ({ restart: await restarted(cluster, size.many) })),
  removal: (size) =>
    inCluster({ mounts: false }, async (cluster) => ({ removal: await removal(cluster, size.emptied) })),
};

const FULL = { idle: 100, many: 500, healthy: 100, table: 30, mounts: 1_000, readers: 200, emptied: 110 };
const TINY = { idle: 3, many: 5, healthy: 3, table: 2, mounts: 20, readers: 10, emptied: 6 };
const IDLE_P99_MS_MAX = 150;
const HUNG_RATIO_MAX = 2;
const TABLE_RATIO_MAX = 2;
const SERVING_MS_MAX = 2_000;

interface Ways {
  /** From asking for the pod, or for its end, to the driver's answer. */
  readonly publish: Percentiles;
  readonly unpublish: Percentiles;
  readonly detach: Percentiles;
  readonly allPublishedMs: number;
  readonly allDetachedMs: number;
  /** Volumes that were not in use while published, or were published more than once: none may be. */
  readonly wrong: number;
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

async function oneByOne(cluster: NodeCluster, prefix: string, count: number): Promise<Ways> {
  const all: Took[] = [];
  for (let n = 0; n < count; n++) all.push(...(await measure(cluster, [`${prefix}-${n}`])));
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
  readonly wrong: boolean;
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
  const inUse = new Set((await cluster.volumesInUse()).map((volume) => volume.split("^")[1]));
  const wrong = names.map((name) => !inUse.has(name) || driver.times("publish", name) !== 1);
  return Promise.all(
    names.map(async (name, n) => {
      const beganMs = clock.now();
      await deletePod(cluster, name);
      const unpublishMs = (await driver.done("unpublish", name)) - beganMs;
      const detachMs = (await driver.done("detach", name)) - beganMs;
      return { publishMs: published[n] ?? NaN, unpublishMs, detachMs, wrong: wrong[n] ?? true };
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
    wrong: all.filter(({ wrong }) => wrong).length,
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
  readonly idle?: Ways;
  readonly burst?: Ways;
  readonly alone?: Ways;
  readonly beside?: Ways;
  /** The same pods with a short mount table and a long one. */
  readonly few?: Ways;
  readonly crowded?: Ways;
  readonly content?: Content;
  readonly restart?: Restart;
  readonly removal?: Removal;
}

interface Findable {
  readonly tiny: boolean;
  readonly size: typeof FULL;
  readonly findings: Findings;
}

function report({ tiny, size, findings }: Findable): boolean {
  const { idle, burst, alone, beside, few, crowded, content, restart, removal: emptied } = findings;
  const ratio = beside && alone ? beside.publish.p99Ms / alone.publish.p99Ms : null;
  const tableRatio = crowded && few ? crowded.publish.p50Ms / few.publish.p50Ms : null;
  const wrong = [idle, burst, alone, beside, few, crowded].reduce((sum, ways) => sum + (ways?.wrong ?? 0), 0);
  const broken = [
    wrong > 0 && `${wrong} volumes were not in use while published, or published twice`,
    (emptied?.childrenMax ?? 0) > CHILDREN_MAX && `${emptied?.childrenMax ?? 0} children at a time`,
    (content?.torn ?? 0) > 0 && `${content?.torn ?? 0} looks at config maps showed halves of two versions`,
  ].filter((one) => one !== false);
  const missed = [
    (idle?.publish.p99Ms ?? 0) > IDLE_P99_MS_MAX && `pod to volume: p99 above ${IDLE_P99_MS_MAX} ms`,
    (idle?.unpublish.p99Ms ?? 0) > IDLE_P99_MS_MAX &&
      `pod gone to volume gone: p99 above ${IDLE_P99_MS_MAX} ms`,
    (ratio ?? 0) > HUNG_RATIO_MAX && `a hung call makes others ${ratio?.toFixed(1) ?? ""} times as slow`,
    (tableRatio ?? 0) > TABLE_RATIO_MAX &&
      `a long mount table makes pods ${tableRatio?.toFixed(1) ?? ""} times as slow`,
    (restart?.servedMs ?? 0) > SERVING_MS_MAX &&
      `a restart serves after ${Math.round(restart?.servedMs ?? 0)} ms`,
    (emptied?.rssMibMax ?? 0) > MEMORY_MIB_MAX &&
      `a node emptied at once takes more than ${MEMORY_MIB_MAX} MiB`,
    (emptied?.livez.maxMs ?? 0) > LIVEZ_MS_MAX && `/livez took more than ${LIVEZ_MS_MAX} ms`,
  ].filter((one) => one !== false);
  const ok = broken.length === 0 && (tiny || missed.length === 0);
  const lines = [
    ...linesOf(findings, { size, ratio, tableRatio }),
    ...broken.map((one) => `broken: ${one}`),
    ...(tiny ? [] : missed.map((one) => `missed: ${one}`)),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  process.stdout.write(
    `${JSON.stringify({ bench: "node", tiny, ok, ratio, tableRatio, wrong, ...findings })}\n`,
  );
  return ok;
}

const both = ({ p50Ms, p99Ms }: Percentiles) => `p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)} ms`;
const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;

function linesOf(
  { idle, burst, alone, beside, few, crowded, content, restart, removal: emptied }: Findings,
  { size, ratio, tableRatio }: Pick<Findable, "size"> & { ratio: number | null; tableRatio: number | null },
): readonly string[] {
  const when = <T>(found: T | undefined, lines: (found: T) => readonly string[]) =>
    found ? lines(found) : [];
  return [
    ...when(idle, ({ publish, unpublish, detach }) => [
      `${size.idle} pods one by one, bound to published:  ${both(publish)}`,
      `  deleted to unpublished:  ${both(unpublish)}`,
      `  deleted to detached:  ${both(detach)}`,
    ]),
    ...when(burst, ({ publish, detach, allPublishedMs, allDetachedMs }) => [
      `${size.many} pods at once, bound to published:  ${both(publish)}, all ${seconds(allPublishedMs)}`,
      `  deleted to detached:  ${both(detach)}, all ${seconds(allDetachedMs)}`,
    ]),
    ...when(alone, ({ publish }) => [`${size.healthy} pods at once, alone:  ${both(publish)}`]),
    ...when(beside, ({ publish }) => [
      `  beside a hung call:  ${both(publish)}  (${ratio?.toFixed(2) ?? "-"} times)`,
    ]),
    ...when(few, ({ publish }) => [`${size.table} pods one by one, short mount table:  ${both(publish)}`]),
    ...when(crowded, ({ publish }) => [
      `  ${size.mounts} mounts in it:  ${both(publish)}  (${tableRatio?.toFixed(2) ?? "-"} times)`,
    ]),
    ...when(content, ({ update, updates, looks, torn, volumesPublishedMs }) => [
      `${size.readers} pods with config maps, ${updates} changes while ${size.healthy} volumes mount:  ${both(update)}`,
      `  ${looks} looks, ${torn} torn; volumes published after ${seconds(volumesPublishedMs)}`,
    ]),
    ...when(restart, ({ syncedMs, servedMs, rssMib }) => [
      `kill -9 with ${size.many} mounted: synced ${Math.round(syncedMs)} ms, a waiting pod served ${Math.round(servedMs)} ms, ${rssMib} MiB`,
    ]),
    ...when(emptied, linesOfRemoval),
  ];
}

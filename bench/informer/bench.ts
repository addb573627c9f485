import { ask, startChild } from "../child.ts";
import type { GetResult, GetTask, SyncResult, SyncTask } from "./measure.ts";
import { judge, table, toJson, type Findings, type Large } from "./report.ts";
import type { Scale, Served } from "./server.ts";

/**
 * Our informer and client against those of `@kubernetes/client-node`, in one run and taking turns, on 50,000 pods
 * and 50,000 VolumeAttachments; then ours alone on a cluster that theirs cannot hold. Answers whether every
 * promise was kept.
 */
export async function informer({ tiny }: { tiny: boolean }): Promise<boolean> {
  const sizes = tiny ? TINY : FULL;
  const findings = await withServer(sizes.scale, (served) => compare(served, sizes));
  const large = await withServer(sizes.large, (served) => syncLarge(served, sizes.large));
  process.stdout.write(table(findings, large));
  const missed = judge(findings, large);
  // On tiny input the ratios are noise: there it only matters that everything still runs.
  const broken = tiny ? missed.filter(({ needsScale }) => !needsScale) : missed;
  for (const { message } of broken) process.stdout.write(`missed: ${message}\n`);
  process.stdout.write(`${toJson(findings, large, { tiny, ok: broken.length === 0 })}\n`);
  return broken.length === 0;
}

interface Sizes {
  readonly scale: Scale;
  readonly large: Scale;
  readonly rounds: number;
  readonly getSeconds: number;
}

const FULL: Sizes = {
  scale: { pods: 50_000, volumeAttachments: 50_000, nodes: 5_000 },
  large: { pods: 0, volumeAttachments: 1_000_000, nodes: 100_000 },
  rounds: 3,
  getSeconds: 3,
};

const TINY: Sizes = {
  scale: { pods: 300, volumeAttachments: 300, nodes: 30 },
  large: { pods: 0, volumeAttachments: 1_000, nodes: 100 },
  rounds: 1,
  getSeconds: 0.3,
};

/** The promise of the large run, and room enough for either contestant in the others. */
const HEAP_MB = 4_096;

/** Far above what any step takes; a step that hangs ends the run with an error instead of never. */
const STEP_DEADLINE_MS = 240_000;

async function withServer<T>(scale: Scale, work: (served: Served) => Promise<T>): Promise<T> {
  const server = startChild<Served>({
    role: "informer-server",
    input: scale,
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
  try {
    return await work(await server.answer);
  } finally {
    await server.end();
  }
}

async function compare(served: Served, { scale, rounds, getSeconds }: Sizes): Promise<Findings> {
  const sync: SyncTask = { task: "sync", kinds: ["pods", "volumeAttachments"], trimmed: true };
  const get: GetTask = { task: "get", pods: scale.pods, seconds: getSeconds };
  const syncs: { ours: SyncResult[]; theirs: SyncResult[] } = { ours: [], theirs: [] };
  const gets: { ours: GetResult[]; theirs: GetResult[] } = { ours: [], theirs: [] };
  for (let round = 1; round <= rounds; round++) {
    for (const side of ["ours", "theirs"] as const) {
      say(`round ${round} of ${rounds}: ${side}`);
      syncs[side].push(await measure<SyncResult>(served, side, sync));
      gets[side].push(await measure<GetResult>(served, side, get));
    }
  }
  say("ours without trimming by kind");
  const untrimmed = await measure<SyncResult>(served, "ours", { ...sync, trimmed: false });
  return { scale, syncs, gets, untrimmed };
}

async function syncLarge(served: Served, scale: Scale): Promise<Large> {
  say(`ours with ${scale.nodes} nodes and ${scale.volumeAttachments} VolumeAttachments`);
  const task: SyncTask = { task: "sync", kinds: ["nodes", "volumeAttachments"], trimmed: true };
  try {
    return { scale, result: await measure<SyncResult>(served, "ours", task) };
  } catch (error) {
    return { scale, error: error instanceof Error ? error.message : String(error) };
  }
}

function measure<Result>(served: Served, side: "ours" | "theirs", task: SyncTask | GetTask): Promise<Result> {
  return ask<Result>({
    role: `informer-${side}`,
    input: { ...served, ...task },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
}

function say(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}

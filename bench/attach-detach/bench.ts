import { ask } from "../child.ts";
import { measureCluster, type ClusterLoad } from "./cluster.ts";
import type { Fleet } from "./fleet.ts";
import type { AttachDetachBenchOptions } from "./options.ts";
import { judge, table, toJson, type Findings, type LargeFindings, type ScaleFindings } from "./report.ts";
import type { ScaleResult, ScaleTask } from "./scale.ts";

/**
 * The attach/detach controller: what it costs in front of an API server that exists only in memory, and what it
 * does for a cluster behind a real one, beside kube-controller-manager if there is one. Answers whether every promise
 * was kept.
 */
export async function attachDetach({
  tiny,
  parts,
  kubeconfig,
  peer,
}: AttachDetachBenchOptions & { readonly tiny: boolean }): Promise<boolean> {
  const sizes = tiny ? TINY : FULL;
  const findings: Findings = {
    scale: parts.includes("scale") ? await measureScales(sizes) : undefined,
    large: parts.includes("large") ? await measureLarge(sizes.large) : undefined,
    cluster: parts.includes("cluster") ? await measureCluster({ loads: sizes.loads, kubeconfig, peer }) : [],
  };
  process.stdout.write(table(findings));
  if (peer === undefined) process.stdout.write("peer: left out, no --peer-controller BINARY\n");
  const missed = judge(findings);
  // On tiny input figures are noise: there it only matters that everything still runs.
  const broken = tiny ? missed.filter(({ needsScale }) => !needsScale) : missed;
  for (const { message } of broken) process.stdout.write(`missed: ${message}\n`);
  process.stdout.write(`${toJson(findings, { tiny, ok: broken.length === 0 })}\n`);
  return broken.length === 0;
}

interface Sizes {
  readonly small: ScaleTask;
  readonly middle: ScaleTask;
  readonly large: ScaleTask;
  readonly loads: readonly ClusterLoad[];
}

/** Long enough for a sweep, a comparison of everything and a bookmark of each watch. */
const IDLE_MS = 75_000;

const FULL: Sizes = {
  small: { fleet: fleet(100, 1_000), idleMs: 5_000, cycles: 2_000 },
  middle: { fleet: fleet(10_000, 100_000), idleMs: IDLE_MS, cycles: 2_000 },
  large: { fleet: fleet(100_000, 1_000_000), idleMs: IDLE_MS, cycles: 200 },
  loads: [
    { pods: 500, nodes: 100, idleMs: IDLE_MS },
    { pods: 5_000, nodes: 500, idleMs: IDLE_MS },
    { pods: 500, nodes: 100, perSecond: 25, idleMs: IDLE_MS },
  ],
};

const TINY: Sizes = {
  small: { fleet: fleet(10, 50), idleMs: 0, cycles: 3 },
  middle: { fleet: fleet(20, 200), idleMs: 10, cycles: 3 },
  large: { fleet: fleet(50, 500), idleMs: 0, cycles: 1 },
  loads: [{ pods: 6, nodes: 3, idleMs: 10 }],
};

function fleet(nodes: number, attached: number): Fleet {
  return { nodes, attached, spare: Math.min(1_000, attached) };
}

/** The promise of the large run, and room enough in the others. */
const HEAP_MB = 4_096;

/** Far above what any step takes; a step that hangs ends the run with an error instead of never. */
const STEP_DEADLINE_MS = 900_000;

async function measureScales({ small, middle }: Sizes): Promise<ScaleFindings> {
  return {
    small: { size: small.fleet.attached, result: await measure(small) },
    middle: { size: middle.fleet.attached, result: await measure(middle) },
  };
}

async function measureLarge(task: ScaleTask): Promise<LargeFindings> {
  const size = task.fleet.attached;
  try {
    return { size, result: await measure(task) };
  } catch (error) {
    return { size, error: error instanceof Error ? error.message : String(error) };
  }
}

function measure(task: ScaleTask): Promise<ScaleResult> {
  const { nodes, attached } = task.fleet;
  process.stderr.write(`bench: ${attached} attachments on ${nodes} nodes\n`);
  return ask<ScaleResult>({
    role: "attach-detach-scale",
    input: task,
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
}

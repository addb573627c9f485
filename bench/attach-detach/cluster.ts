import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Served } from "../apiserver/server.ts";
import { ask, startChild } from "../child.ts";
import type { CeilingResult } from "./ceiling.ts";
import type { AttachResult, ClusterTask, DetachResult } from "./cluster-load.ts";
import { startOurs, startPeer, usageOf, type Contestant } from "./contestants.ts";
import { turnsOf, type Who } from "./turns.ts";

/** Pods that come at once or one after the other, and then go at once. */
export interface ClusterLoad {
  readonly pods: number;
  readonly nodes: number;
  readonly perSecond?: number;
  /** With everything attached, before it is detached. */
  readonly idleMs: number;
}

export interface Side {
  readonly attach: AttachResult;
  readonly detach: DetachResult;
  readonly attachCpuMs: number;
  readonly detachCpuMs: number;
  readonly idleCpuPercent: number;
  readonly rssBytes: number;
  readonly rssPeakBytes: number;
  /** Of one attach and one detach of a volume alone on its node, by `verb resource`; events left out. */
  readonly requests: Readonly<Record<string, number>> | undefined;
  /** For one attach and one detach where all come at once; events left out. */
  readonly requestsEach: number | undefined;
}

export interface ClusterFindings {
  readonly load: ClusterLoad;
  /** Of the same requests sent by nobody who decides; undefined where the load itself sets the pace. */
  readonly ceiling: CeilingResult | undefined;
  /** One a round. */
  readonly ours: readonly Side[];
  /** Empty where there is no peer. */
  readonly peer: readonly Side[];
}

export interface ClusterOptions {
  readonly loads: readonly ClusterLoad[];
  readonly kubeconfig: string | undefined;
  readonly peer: string | undefined;
  /** How often each of them gets every load. */
  readonly rounds?: number;
  /** Measured before the first round; it takes as long as one of ours. */
  readonly ceiling?: boolean;
  /** The server is thrown away afterwards: what the last load needs stays there, which saves 5 requests a volume. */
  readonly serverIsDisposable?: boolean;
  /**
   * The requests of whoever is measured as the server has counted them so far, for a peer whose own metrics name no
   * resource. Without it ours counts its own, and the peer has no such figure.
   */
  readonly requestsServed?: () => Promise<number>;
}

const HEAP_MB = 4_096;
const STEP_DEADLINE_MS = 900_000;

/** Every load on one API server, in turns with the peer where there is one: each finds the same cluster. */
export async function measureCluster(options: ClusterOptions): Promise<ClusterFindings[]> {
  if (options.kubeconfig !== undefined) return measureLoads(options.kubeconfig, options);
  return withEmbedded((kubeconfig) => measureLoads(kubeconfig, options));
}

async function withEmbedded<T>(work: (kubeconfig: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "mooring-bench-"));
  const server = startChild<Served>({
    role: "apiserver-server",
    input: { directory },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
  try {
    const { url, token } = await server.answer;
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, kubeconfigOf(url, token), { mode: 0o600 });
    return await work(kubeconfig);
  } finally {
    await server.end();
    await rm(directory, { recursive: true, force: true });
  }
}

function kubeconfigOf(server: string, token: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "bench", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "bench", user: { token } }],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    "current-context": "bench",
  });
}

async function measureLoads(kubeconfig: string, options: ClusterOptions): Promise<ClusterFindings[]> {
  const findings: ClusterFindings[] = [];
  for (const [index, load] of options.loads.entries()) {
    // One volume more, on a node that has no other once the rest is not there: for the requests of a single one.
    const estate = {
      name: `bench-${process.pid}-${index}`,
      nodes: load.nodes,
      volumes: load.pods + 1,
    };
    const run: Run = <Result>(task: Parameters<Run>[0]) =>
      step<Result>({ ...task, kubeconfig, estate } as ClusterTask);
    say(`${load.pods} pods on ${load.nodes} nodes: claims and volumes`);
    await run({ task: "prepare" });
    try {
      findings.push(await measureLoad(run, { ...options, kubeconfig, load }));
    } finally {
      const last = index === options.loads.length - 1;
      if (!(last && options.serverIsDisposable)) await run({ task: "remove" });
    }
  }
  return findings;
}

async function measureLoad(
  run: Run,
  { load, kubeconfig, ...options }: ClusterOptions & { kubeconfig: string; load: ClusterLoad },
): Promise<ClusterFindings> {
  const { peer, rounds = 1, requestsServed } = options;
  const ceiling =
    (options.ceiling ?? true) && load.perSecond === undefined
      ? await run<CeilingResult>({ task: "ceiling", count: load.pods })
      : undefined;
  const start = {
    ours: () => startOurs(kubeconfig),
    peer: () => startPeer(peer ?? "", kubeconfig),
  };
  const sides: Record<Who, Side[]> = { ours: [], peer: [] };
  for (const who of turnsOf(peer === undefined ? ["ours"] : ["ours", "peer"], rounds))
    sides[who].push(await measureSide(run, { kubeconfig, load, requestsServed, start: start[who] }));
  return { load, ceiling, ...sides };
}

type Run = <Result>(task: {
  task: ClusterTask["task"];
  from?: number;
  count?: number;
  perSecond?: number | undefined;
}) => Promise<Result>;

interface SideTask {
  readonly requestsServed: ClusterOptions["requestsServed"];
  readonly kubeconfig: string;
  readonly load: ClusterLoad;
  readonly start: () => Promise<Contestant>;
}

async function measureSide(run: Run, { kubeconfig, load, start, requestsServed }: SideTask): Promise<Side> {
  const attacher = startChild<null>({
    role: "attach-detach-attacher",
    input: { kubeconfig },
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
  await attacher.answer;
  const contestant = await start();
  try {
    const requests = await requestsOfOne(run, contestant, load.pods);
    const before = await usageOf(contestant);
    const sent = requestsServed ?? (async () => sumOf(await contestant.requests()));
    const sentBefore = await sent();
    say(`${contestant.pid}: attach`);
    const all = { from: 0, count: load.pods };
    const attach = await run<AttachResult>({ task: "attach", ...all, perSecond: load.perSecond });
    const attached = await usageOf(contestant);
    // Events and whatever else follows an attach are not rest.
    await sleep(Math.min(SETTLE_MS, load.idleMs));
    const rest = await usageOf(contestant);
    await sleep(load.idleMs);
    const rested = await usageOf(contestant);
    say(`${contestant.pid}: detach`);
    const detach = await run<DetachResult>({ task: "detach", ...all });
    const detached = await usageOf(contestant);
    const sentAfter = await sent();
    return {
      attach,
      detach,
      attachCpuMs: attached.cpuMs - before.cpuMs,
      detachCpuMs: detached.cpuMs - rested.cpuMs,
      idleCpuPercent: ((rested.cpuMs - rest.cpuMs) / load.idleMs) * 100,
      rssBytes: rested.rssBytes,
      rssPeakBytes: detached.rssPeakBytes,
      requests,
      requestsEach:
        sentBefore === undefined || sentAfter === undefined
          ? undefined
          : (sentAfter - sentBefore) / load.pods,
    };
  } finally {
    await contestant.end();
    await attacher.end();
  }
}

const SETTLE_MS = 10_000;

/** Once before, so that the controller is at work for certain; the second time counts. */
async function requestsOfOne(
  run: Run,
  contestant: Contestant,
  from: number,
): Promise<Readonly<Record<string, number>> | undefined> {
  const cycle = async () => {
    await run({ task: "attach", from, count: 1 });
    await run({ task: "detach", from, count: 1 });
  };
  await cycle();
  const before = await contestant.requests();
  await cycle();
  const after = await contestant.requests();
  return spent(before, after);
}

/** What was sent in between; events, which are a courtesy, left out. */
function spent(
  before: ReadonlyMap<string, number> | undefined,
  after: ReadonlyMap<string, number> | undefined,
): Readonly<Record<string, number>> | undefined {
  if (before === undefined || after === undefined) return undefined;
  const counts = [...after].map(([what, count]) => [what, count - (before.get(what) ?? 0)] as const);
  return Object.fromEntries(counts.filter(([what, count]) => count > 0 && !what.endsWith(" events")));
}

function sumOf(counts: ReadonlyMap<string, number> | undefined): number | undefined {
  if (counts === undefined) return undefined;
  return [...counts].reduce((sum, [what, count]) => sum + (what.endsWith(" events") ? 0 : count), 0);
}

function step<Result>(task: ClusterTask): Promise<Result> {
  return ask<Result>({
    role: "attach-detach-load",
    input: task,
    heapMb: HEAP_MB,
    deadlineMs: STEP_DEADLINE_MS,
  });
}

function say(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}

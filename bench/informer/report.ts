import { cpus, totalmem } from "node:os";
import type { GetResult, SyncResult } from "./measure.ts";
import type { Scale } from "./server.ts";

/** What was measured, one entry a round. */
export interface Findings {
  readonly scale: Scale;
  readonly syncs: { readonly ours: readonly SyncResult[]; readonly theirs: readonly SyncResult[] };
  readonly gets: { readonly ours: readonly GetResult[]; readonly theirs: readonly GetResult[] };
  readonly untrimmed: SyncResult;
}

export type Large =
  { readonly scale: Scale; readonly result: SyncResult } | { readonly scale: Scale; readonly error: string };

/** Promised: at least this many times faster to synced, at most this part of the heap, this many times the GETs. */
const SYNC_RATIO_MIN = 2;
const HEAP_RATIO_MAX = 0.25;
const GET_RATIO_MIN = 5;

export interface Missed {
  readonly message: string;
  /** True where only a full run can tell. */
  readonly needsScale: boolean;
}

export function judge(findings: Findings, large: Large): Missed[] {
  const { sync, heap, get } = ratiosOf(findings);
  const { pods, volumeAttachments } = findings.scale;
  const results = [...findings.syncs.ours, ...findings.syncs.theirs, findings.untrimmed];
  return [
    {
      kept: sync >= SYNC_RATIO_MIN,
      needsScale: true,
      message: `synced ${fixed(sync)} times as fast, not ${SYNC_RATIO_MIN}`,
    },
    {
      kept: heap <= HEAP_RATIO_MAX,
      needsScale: true,
      message: `${fixed(heap)} of their heap, not ${HEAP_RATIO_MAX}`,
    },
    {
      kept: get >= GET_RATIO_MIN,
      needsScale: true,
      message: `${fixed(get)} times their GETs a second, not ${GET_RATIO_MIN}`,
    },
    {
      kept: results.every(({ objects }) => objects === pods + volumeAttachments),
      needsScale: false,
      message: "a cache does not hold every object",
    },
    {
      kept: new Set(results.map(({ checksum }) => checksum)).size === 1,
      needsScale: false,
      message: "the caches do not hold the same objects",
    },
    {
      kept: "result" in large,
      needsScale: false,
      message: `the large run failed: ${"error" in large ? large.error : ""}`,
    },
    {
      kept:
        !("result" in large) || large.result.objects === large.scale.nodes + large.scale.volumeAttachments,
      needsScale: false,
      message: "the large run does not hold every object",
    },
  ].filter(({ kept }) => !kept);
}

/** Of medians, so that one disturbed round does not decide. */
function ratiosOf({ syncs, gets }: Findings): { sync: number; heap: number; get: number } {
  const ms = (results: readonly SyncResult[]) => median(results.map((result) => result.ms));
  const heap = (results: readonly SyncResult[]) => median(results.map((result) => result.heapBytes));
  const rate = (results: readonly GetResult[]) => median(results.map((result) => result.perSecond));
  return {
    sync: ms(syncs.theirs) / ms(syncs.ours),
    heap: heap(syncs.ours) / heap(syncs.theirs),
    get: rate(gets.ours) / rate(gets.theirs),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? NaN;
  return (upper + lower) / 2;
}

export function table({ scale, syncs, gets, untrimmed }: Findings, large: Large): string {
  const get = (results: readonly GetResult[]) => fixed(median(results.map(({ perSecond }) => perSecond)), 0);
  const rows = [
    ["WHAT", "SYNCED", "HEAP", "RSS", "RSS PEAK", "GETS/S"],
    [`ours, ${sizeOf(scale)}`, ...columns(middle(syncs.ours)), get(gets.ours)],
    ["ours, only managed fields trimmed", ...columns(untrimmed), ""],
    ["@kubernetes/client-node", ...columns(middle(syncs.theirs)), get(gets.theirs)],
    [`ours, ${sizeOf(large.scale)}`, ...("result" in large ? columns(large.result) : ["failed"]), ""],
  ];
  return `${align(rows)}\n`;
}

function sizeOf({ pods, nodes, volumeAttachments }: Scale): string {
  const first = pods > 0 ? `${pods} pods` : `${nodes} nodes`;
  return `${first} + ${volumeAttachments} VolumeAttachments`;
}

function columns({ ms, heapBytes, rssBytes, rssPeakBytes }: SyncResult): string[] {
  return [
    `${fixed(ms / 1000)} s`,
    ...[heapBytes, rssBytes, rssPeakBytes].map((bytes) => `${mib(bytes)} MiB`),
  ];
}

/** The round with the median time, whole: its heap belongs to its time. */
function middle(results: readonly SyncResult[]): SyncResult {
  const sorted = [...results].sort((a, b) => a.ms - b.ms);
  return sorted[(sorted.length - 1) >> 1] as SyncResult;
}

function align(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]) =>
    widths
      .map((width, column) => pad(row[column] ?? "", width, column))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

function pad(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}

export function toJson(
  findings: Findings,
  large: Large,
  { tiny, ok }: { tiny: boolean; ok: boolean },
): string {
  const { sync, heap, get } = ratiosOf(findings);
  return JSON.stringify({
    bench: "informer",
    ratio: round(sync),
    heapRatio: round(heap, 4),
    getRatio: round(get),
    ok,
    tiny,
    ...findings.scale,
    ours: sideOf(findings.syncs.ours, findings.gets.ours),
    oursUntrimmed: summaryOf(findings.untrimmed),
    theirs: sideOf(findings.syncs.theirs, findings.gets.theirs),
    large: { ...large.scale, ...("result" in large ? summaryOf(large.result) : { error: large.error }) },
    checksum: findings.untrimmed.checksum,
    machine: `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.version}`,
  });
}

function sideOf(syncs: readonly SyncResult[], gets: readonly GetResult[]) {
  return {
    ...summaryOf(middle(syncs)),
    syncedMsByRound: syncs.map(({ ms }) => Math.round(ms)),
    getsPerSecond: Math.round(median(gets.map(({ perSecond }) => perSecond))),
    getsPerSecondByRound: gets.map(({ perSecond }) => Math.round(perSecond)),
  };
}

function summaryOf({ ms, cpuMs, heapBytes, rssBytes, rssPeakBytes }: SyncResult) {
  return {
    syncedMs: Math.round(ms),
    cpuMs: Math.round(cpuMs),
    heapMib: Number(mib(heapBytes)),
    rssMib: Number(mib(rssBytes)),
    rssPeakMib: Number(mib(rssPeakBytes)),
  };
}

function mib(bytes: number): string {
  return fixed(bytes / 2 ** 20, 1);
}

function fixed(value: number, digits = 2): string {
  return value.toFixed(digits);
}

function round(value: number, digits = 2): number {
  return Number(value.toFixed(digits));
}

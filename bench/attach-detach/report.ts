import { cpus, totalmem } from "node:os";
import type { ClusterFindings, Side } from "./cluster.ts";
import type { ScaleResult } from "./scale.ts";

export interface ScaleFindings {
  /** Attachments. */
  readonly small: { readonly size: number; readonly result: ScaleResult };
  readonly middle: { readonly size: number; readonly result: ScaleResult };
}

export type LargeFindings = { readonly size: number } & (
  { readonly result: ScaleResult } | { readonly error: string }
);

export interface Findings {
  readonly scale: ScaleFindings | undefined;
  readonly large: LargeFindings | undefined;
  readonly cluster: readonly ClusterFindings[];
}

export interface Missed {
  readonly message: string;
  /** True where only a full run can tell. */
  readonly needsScale: boolean;
}

const IDLE_PERCENT_MAX = 1;
const EVENT_RATIO_MAX = 2;
const REACTION_P99_MS_MAX = 5;
const LARGE_BYTES_MAX = 4 * 2 ** 30;

/** The most that one attach and one detach of a volume alone on its node may take, events left out. */
const REQUESTS_MAX: Readonly<Record<string, number>> = {
  "create volumeattachments.storage.k8s.io": 1,
  "patch nodes": 2,
  "get nodes": 1,
  "delete volumeattachments.storage.k8s.io": 1,
};

/** Against the real controller in the same run. */
const THROUGHPUT_RATIO_MIN = 3;
const LATENCY_RATIO_MIN = 20;
const IDLE_RATIO_MIN = 50;
const MEMORY_RATIO_MIN = 2;

export function judge({ scale, large, cluster }: Findings): Missed[] {
  return [
    ...(scale ? judgeScale(scale) : []),
    ...(large ? judgeLarge(large) : []),
    ...cluster.flatMap(judgeCluster),
  ];
}

function judgeScale({ small, middle }: ScaleFindings): Missed[] {
  const { idleCpuPercent = 0, reaction } = middle.result;
  const ratio = eventRatio({ small, middle });
  return [
    check(idleCpuPercent < IDLE_PERCENT_MAX, `${fixed(idleCpuPercent)} % of a core at rest`),
    check(
      ratio <= EVENT_RATIO_MAX,
      `a pod event costs ${fixed(ratio)} times as much at ${middle.size} volumes`,
    ),
    check(reaction.p99Ms < REACTION_P99_MS_MAX, `p99 of ${fixed(reaction.p99Ms)} ms from pod to request`),
    ...[small, middle].flatMap(({ size, result }) => [
      check(result.placements === size, `${result.placements} placements of ${size}`, { needsScale: false }),
      check(result.requests.length <= 5, `${result.requests.length} requests for one attach and detach`, {
        needsScale: false,
      }),
    ]),
  ].flat();
}

function judgeLarge(large: LargeFindings): Missed[] {
  if ("error" in large) return check(false, `the large run failed: ${large.error}`, { needsScale: false });
  const { rssPeakBytes, placements } = large.result;
  return [
    ...check(rssPeakBytes < LARGE_BYTES_MAX, `${mib(rssPeakBytes)} MiB for ${large.size} attachments`),
    ...check(placements === large.size, `${placements} placements of ${large.size}`, { needsScale: false }),
  ];
}

function judgeCluster({ load, ours, peer }: ClusterFindings): Missed[] {
  const name = `${load.pods} pods on ${load.nodes} nodes`;
  const over = ours
    .flatMap(({ requests = {} }) => Object.entries(requests))
    .filter(([what, count]) => count > (REQUESTS_MAX[what] ?? 0));
  const missed = check(over.length === 0, `${name}: more requests than promised: ${JSON.stringify(over)}`, {
    needsScale: false,
  });
  if (peer.length === 0) return missed;
  for (const [what, figure, better, aim] of FIGURES) {
    const ratio = ratioOf(meanOf(ours, figure), meanOf(peer, figure), better);
    if (aim !== undefined && !(load.perSecond !== undefined && better === "more") && !(ratio >= aim))
      missed.push({ message: `${name}: ${what} ${fixed(ratio)} times better, not ${aim}`, needsScale: true });
  }
  return missed;
}

function check(kept: boolean, message: string, { needsScale = true } = {}): Missed[] {
  return kept ? [] : [{ message, needsScale }];
}

function eventRatio({ small, middle }: ScaleFindings): number {
  return middle.result.reaction.p50Ms / small.result.reaction.p50Ms;
}

const FIGURES: readonly (readonly [string, (side: Side) => number, "more" | "less", number | undefined])[] = [
  ["attaches/s", ({ attach }) => attach.perSecond, "more", THROUGHPUT_RATIO_MIN],
  ["detaches/s", ({ detach }) => detach.perSecond, "more", THROUGHPUT_RATIO_MIN],
  [
    "pod to VolumeAttachment, p50 ms",
    ({ attach }) => attach.podToAttachment.p50Ms,
    "less",
    LATENCY_RATIO_MIN,
  ],
  ["  p99 ms", ({ attach }) => attach.podToAttachment.p99Ms, "less", undefined],
  ["attached to node status, p50 ms", ({ attach }) => attach.attachedToNode.p50Ms, "less", LATENCY_RATIO_MIN],
  ["  p99 ms", ({ attach }) => attach.attachedToNode.p99Ms, "less", undefined],
  ["CPU of all attaches, s", ({ attachCpuMs }) => attachCpuMs / 1_000, "less", undefined],
  ["CPU of all detaches, s", ({ detachCpuMs }) => detachCpuMs / 1_000, "less", undefined],
  ["CPU at rest, % of a core", ({ idleCpuPercent }) => idleCpuPercent, "less", IDLE_RATIO_MIN],
  ["RSS, MiB", ({ rssBytes }) => rssBytes / 2 ** 20, "less", MEMORY_RATIO_MIN],
  ["requests for one attach and detach", ({ requestsEach = NaN }) => requestsEach, "less", undefined],
  ["RSS peak, MiB", ({ rssPeakBytes }) => rssPeakBytes / 2 ** 20, "less", undefined],
];

export function meanOf<Measured>(
  rounds: readonly Measured[],
  figure: (measured: Measured) => number,
): number {
  return rounds.reduce((sum, side) => sum + figure(side), 0) / rounds.length;
}

/** How many times better ours is. */
function ratioOf(ours: number, theirs: number, better: "more" | "less"): number {
  return better === "more" ? ours / theirs : theirs / ours;
}

export function table({ scale, large, cluster }: Findings): string {
  const sizes = [scale?.small, scale?.middle, large && "result" in large ? large : undefined];
  const lines = sizes.some((size) => size !== undefined)
    ? [
        row(
          "ATTACHMENTS",
          "STOCK TAKEN",
          "HEAP",
          "RSS",
          "RSS PEAK",
          "AT REST",
          "REACTION",
          "P99",
          "CYCLE CPU",
        ),
      ]
    : [];
  for (const size of sizes) if (size !== undefined) lines.push(scaleRow(size.size, size.result));
  for (const findings of cluster) lines.push("", ...clusterRows(findings));
  return `${lines.join("\n").trimStart()}\n`;
}

function scaleRow(size: number, result: ScaleResult): string {
  const { stockMs, heapBytes, rssBytes, rssPeakBytes, idleCpuPercent, reaction, cycleCpuMs } = result;
  return row(
    String(size),
    `${fixed(stockMs / 1_000)} s`,
    ...[heapBytes, rssBytes, rssPeakBytes].map((bytes) => `${mib(bytes)} MiB`),
    idleCpuPercent === undefined ? "" : `${fixed(idleCpuPercent)} %`,
    `${fixed(reaction.p50Ms)} ms`,
    `${fixed(reaction.p99Ms)} ms`,
    `${fixed(cycleCpuMs)} ms`,
  );
}

function clusterRows({ load, ceiling, ours, peer }: ClusterFindings): string[] {
  const rate = load.perSecond === undefined ? "at once" : `at ${load.perSecond}/s`;
  const title = `${load.pods} pods ${rate}, ${load.nodes} nodes`.padEnd(34);
  const compared = peer.length > 0;
  return [
    row(title, "OURS", compared ? "PEER" : "", compared ? "RATIO" : ""),
    ...(ceiling ? [row("attaches/s if nobody decided".padEnd(34), fixed(ceiling.perSecond))] : []),
    ...FIGURES.map(([what, figure, better]) =>
      row(
        what.padEnd(34),
        fixed(meanOf(ours, figure)),
        compared ? fixed(meanOf(peer, figure)) : "",
        compared ? fixed(ratioOf(meanOf(ours, figure), meanOf(peer, figure), better)) : "",
      ),
    ),
  ];
}

function row(...[name = "", ...columns]: readonly string[]): string {
  return (name.padEnd(12) + columns.map((column) => column.padStart(13)).join("")).trimEnd();
}

export function toJson(findings: Findings, { tiny, ok }: { tiny: boolean; ok: boolean }): string {
  const { scale, large, cluster } = findings;
  const attachRate = ({ attach }: Side) => attach.perSecond;
  const compared = cluster.flatMap(({ ours, peer }) =>
    peer.length > 0 ? [meanOf(ours, attachRate) / meanOf(peer, attachRate)] : [],
  );
  return JSON.stringify(
    {
      bench: "attach-detach",
      ratio: compared.length === 0 ? null : Math.min(...compared),
      ok,
      tiny,
      eventRatio: scale ? eventRatio(scale) : null,
      scale: scale ?? null,
      large: large ?? null,
      cluster,
      machine: `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.version}`,
    },
    (_key, value: unknown) => (typeof value === "number" ? Number(value.toFixed(3)) : value),
  );
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}

function fixed(value: number): string {
  if (!Number.isFinite(value)) return "-";
  return value.toFixed(value >= 100 ? 0 : 2);
}

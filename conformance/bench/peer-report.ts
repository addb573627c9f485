import type { ClusterFindings, Side } from "../../bench/attach-detach/cluster.ts";

export interface AttachDetachRun {
  readonly cluster: readonly ClusterFindings[];
}

/** One load on both sides. */
export interface Comparison {
  readonly title: string;
  readonly figures: readonly Figure[];
}

export interface Figure {
  readonly name: string;
  readonly better: "more" | "less";
  readonly ours: number;
  /** Absent where there was no peer. */
  readonly peer: number | undefined;
}

const FIGURES: readonly (readonly [string, Figure["better"], (side: Side) => number])[] = [
  ["attaches/s", "more", ({ attach }) => attach.perSecond],
  ["detaches/s", "more", ({ detach }) => detach.perSecond],
  ["pod to VolumeAttachment p50 ms", "less", ({ attach }) => attach.podToAttachment.p50Ms],
  ["pod to VolumeAttachment p99 ms", "less", ({ attach }) => attach.podToAttachment.p99Ms],
  ["attached to node status p50 ms", "less", ({ attach }) => attach.attachedToNode.p50Ms],
  ["attached to node status p99 ms", "less", ({ attach }) => attach.attachedToNode.p99Ms],
  // The peer is started there without an endpoint that would tell; the loads of this command ask the server instead.
  ["API requests a volume", "less", ({ requestsEach }) => requestsEach ?? NaN],
  ["CPU s, attach", "less", ({ attachCpuMs }) => attachCpuMs / 1_000],
  ["CPU s, detach", "less", ({ detachCpuMs }) => detachCpuMs / 1_000],
  ["CPU at rest, % of a core", "less", ({ idleCpuPercent }) => idleCpuPercent],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];

export function comparisonsOf({ cluster }: AttachDetachRun): Comparison[] {
  return cluster.map(({ load, ours, peer }) => ({
    title: `${load.pods} pods ${load.perSecond === undefined ? "at once" : `at ${load.perSecond}/s`}, ${load.nodes} nodes`,
    figures: FIGURES.map(([name, better, of]) => ({
      name,
      better,
      ours: of(ours),
      peer: peer === undefined ? undefined : of(peer),
    })),
  }));
}

/** How many times better ours is; NaN where that cannot be said. */
function ratioOf({ better, ours, peer }: Figure): number {
  if (peer === undefined) return NaN;
  return better === "more" ? ours / peer : peer / ours;
}

export function tableOf(comparisons: readonly Comparison[]): string {
  const lines = comparisons.flatMap(({ title, figures }) => [
    `| ${title} | ours | peer | times better |`,
    "|---|---|---|---|",
    ...figures.map((figure) => {
      const { name, ours, peer } = figure;
      return `| ${name} | ${fixed(ours)} | ${fixed(peer ?? NaN)} | ${fixed(ratioOf(figure))} |`;
    }),
    "",
  ]);
  return lines.join("\n");
}

function fixed(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toFixed(value >= 100 ? 0 : 2);
}

const ROW = 22;
const LEFT = 300;
const WIDTH = 760;
/** Ratios from 1/10 to 1,000 on a logarithmic axis; one beyond is drawn at the edge. */
const DECADES = { from: -1, to: 3 };

/** Bars on a logarithmic axis: to the right of 1 ours is better, to the left the peer is. */
export function plot(comparisons: readonly Comparison[]): string {
  const bars: string[] = [];
  let y = 30;
  for (const { title, figures } of comparisons) {
    bars.push(`<text x="8" y="${y}" font-weight="bold">${title}</text>`);
    for (const figure of figures) {
      const ratio = ratioOf(figure);
      if (!(ratio > 0)) continue;
      y += ROW;
      bars.push(bar(figure.name, ratio, y));
    }
    y += ROW * 1.5;
  }
  const one = xOf(1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${y}" fill="white"/>`,
    `<line x1="${one}" x2="${one}" y1="10" y2="${y - 10}" stroke="#888"/>`,
    ...bars,
    "</svg>",
    "",
  ].join("\n");
}

function bar(name: string, ratio: number, y: number): string {
  const [from, to] = [xOf(Math.min(1, ratio)), xOf(Math.max(1, ratio))];
  const colour = ratio >= 1 ? "#2a7" : "#c63";
  const width = Math.max(1, to - from).toFixed(1);
  return (
    `<text x="8" y="${y}">${name}</text>` +
    `<rect x="${from.toFixed(1)}" y="${y - 11}" width="${width}" height="14" fill="${colour}"/>` +
    `<text x="${WIDTH - 8}" y="${y}" text-anchor="end">${fixed(ratio)}×</text>`
  );
}

function xOf(ratio: number): number {
  const decade = Math.min(DECADES.to, Math.max(DECADES.from, Math.log10(ratio)));
  return LEFT + ((decade - DECADES.from) / (DECADES.to - DECADES.from)) * (WIDTH - LEFT - 70);
}

import type { ControlPlane } from "../harness/control-plane.ts";
import type { Stage } from "../harness/stage.ts";
import type { Binaries } from "../peers/binaries.ts";

/** What a comparison gets to work with: a real API server that nobody has used before. */
export interface CompareTask {
  readonly stage: Stage;
  readonly plane: ControlPlane;
  readonly binaries: Binaries;
  readonly tiny: boolean;
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

/** The comparisons of one API server, all measured in one go. */
export interface Part {
  readonly name: string;
  readonly date: string;
  readonly machine: string;
  readonly kubernetes: string;
  readonly minutes: number;
  /** Processes that wanted to run in the minute before it began and in its last one, its own included. */
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly comparisons: readonly Comparison[];
}

/** How many times better ours is; NaN where that cannot be said. */
export function ratioOf({ better, ours, peer }: Figure): number {
  if (peer === undefined) return NaN;
  return better === "more" ? ours / peer : peer / ours;
}

export function tableOf({ comparisons, ...part }: Part): string {
  const load = `load average ${part.loadBefore.toFixed(1)} before, ${part.loadAfter.toFixed(1)} after`;
  const head = `${part.date}, ${part.machine}, Kubernetes ${part.kubernetes}, ${part.minutes.toFixed(0)} min; ${load}.`;
  const tables = comparisons.flatMap(({ title, figures }) => [
    "",
    `| ${title} | ours | peer | times better |`,
    "|---|---|---|---|",
    ...figures.map((figure) => {
      const { name, ours, peer } = figure;
      return `| ${name} | ${rounded(ours)} | ${rounded(peer ?? NaN)} | ${rounded(ratioOf(figure))} |`;
    }),
  ]);
  return [head, ...tables].join("\n");
}

export function rounded(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 10 ? 1 : 2);
}

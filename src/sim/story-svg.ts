import { labelOf, type Entry, type Story } from "./story.ts";

const LEFT = 90;
const GAP = 150;
const ROW = 34;
const TOP = 70;
const CHAR = 6.2;

/** The same diagram as SVG, readable on light and dark ground, without any other file. */
export function renderStorySvg({ seed, volume, claim, participants, entries }: Story): string {
  const columns = new Map(participants.map((name, at) => [name, LEFT + GAP / 2 + at * GAP]));
  const width = LEFT + GAP * Math.max(participants.length, 1) + 20;
  const height = TOP + ROW * (entries.length + 1);
  const title = `volume ${volume}${claim === undefined ? "" : ` of claim ${claim}`}, seed ${seed}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    STYLE,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    `<text class="title" x="12" y="22">${escaped(title)}</text>`,
    ...[...columns].flatMap(([name, x]) => [
      `<rect class="box" x="${x - 55}" y="34" width="110" height="24" rx="4"/>`,
      `<text class="name" x="${x}" y="50">${escaped(name)}</text>`,
      `<line class="life" x1="${x}" y1="58" x2="${x}" y2="${height - 10}"/>`,
    ]),
    ...entries.flatMap((entry, at) => drawn(entry, { y: TOP + ROW * (at + 0.7), columns, width })),
    "</svg>",
  ].join("\n");
}

const STYLE = `<style>
  text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; } .name { text-anchor: middle; font-weight: 600; }
  .ground { fill: #fff; } .box { fill: #eef2f6; stroke: #8c959f; } .life { stroke: #c4cbd3; stroke-dasharray: 3 3; }
  .arrow { stroke: #0969da; stroke-width: 1.4; } .head { fill: #0969da; } .time { fill: #656d76; }
  .fault { fill: #bf3989; } .broken { fill: #cf222e; font-weight: 600; } .back { fill: #fff; fill-opacity: 0.85; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .ground, .back { fill: #0d1117; } .box { fill: #161b22; stroke: #545d68; }
    .life { stroke: #373e47; } .arrow { stroke: #4493f8; } .head { fill: #4493f8; } .time { fill: #9198a1; }
    .fault { fill: #f778ba; } .broken { fill: #ff7b72; }
  }
</style>`;

interface Where {
  readonly y: number;
  readonly columns: ReadonlyMap<string, number>;
  readonly width: number;
}

function drawn(entry: Entry, { y, columns, width }: Where): string[] {
  const from = columns.get(entry.from) ?? LEFT;
  const to = entry.to === undefined ? from : (columns.get(entry.to) ?? from);
  const side = to > from ? -1 : 1;
  const shape =
    from === to
      ? [`<circle class="${entry.kind === "message" ? "head" : entry.kind}" cx="${from}" cy="${y}" r="4"/>`]
      : [
          `<line class="arrow" x1="${from}" y1="${y}" x2="${to + 6 * side}" y2="${y}"/>`,
          `<path class="head" d="M${to} ${y}l${7 * side} -4v8z"/>`,
        ];
  const room = Math.floor((width - LEFT - 10) / CHAR);
  const whole = labelOf(entry);
  const label = whole.length > room ? `${whole.slice(0, room - 1)}…` : whole;
  const chars = label.length * CHAR;
  // Above the arrow, from its left end on, and moved left where the picture ends.
  const x = Math.max(LEFT, Math.min(Math.min(from, to) + 8, width - chars - 8));
  return [
    `<text class="time" x="8" y="${y + 4}">${(entry.atMs / 1_000).toFixed(3)}</text>`,
    ...shape,
    `<rect class="back" x="${x - 2}" y="${y - 17}" width="${Math.round(chars) + 4}" height="13"/>`,
    `<text${entry.kind === "message" ? "" : ` class="${entry.kind}"`} x="${x}" y="${y - 7}">${escaped(label)}</text>`,
  ];
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}

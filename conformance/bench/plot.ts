import { ratioOf, rounded, type Part } from "./peer-report.ts";

const ROW = 20;
const LEFT = 300;
const WIDTH = 860;
const RIGHT = 80;
/** Ratios from 1/10 to 1,000 on a logarithmic axis; one beyond is drawn at the edge. */
const DECADES = { from: -1, to: 3 };

/** Bars on a logarithmic axis: to the right of 1 ours is better, to the left the peer is. */
export function plot(parts: readonly Part[]): string {
  const drawn: string[] = [];
  let y = 64;
  for (const { date, machine, kubernetes, comparisons } of parts) {
    drawn.push(text(8, y, `${date}, ${machine}, Kubernetes ${kubernetes}`, 'fill="#555"'));
    y += ROW;
    for (const { title, figures } of comparisons) {
      drawn.push(text(8, y, title, 'font-weight="bold"'));
      for (const figure of figures) {
        const ratio = ratioOf(figure);
        if (!(ratio > 0)) continue;
        y += ROW;
        drawn.push(bar(figure.name, ratio, y));
      }
      y += ROW * 1.6;
    }
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${y}" fill="white"/>`,
    text(8, 20, "How many times better ours is than the real program, in turns in one run", 'font-size="15"'),
    ...axis(y),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

function axis(bottom: number): string[] {
  const lines: string[] = [];
  for (let decade = DECADES.from; decade <= DECADES.to; decade++) {
    const x = xOf(10 ** decade).toFixed(1);
    const colour = decade === 0 ? "#555" : "#ddd";
    const label = decade < 0 ? `1/${10 ** -decade}` : `${10 ** decade}×`;
    lines.push(`<line x1="${x}" x2="${x}" y1="44" y2="${bottom - 10}" stroke="${colour}"/>`);
    lines.push(text(Number(x), 40, label, 'text-anchor="middle" fill="#555"'));
  }
  return lines;
}

function bar(name: string, ratio: number, y: number): string {
  const [from, to] = [xOf(Math.min(1, ratio)), xOf(Math.max(1, ratio))];
  const colour = ratio >= 1 ? "#2a7" : "#c63";
  const width = Math.max(1, to - from).toFixed(1);
  return (
    text(20, y, name) +
    `<rect x="${from.toFixed(1)}" y="${y - 11}" width="${width}" height="14" fill="${colour}"/>` +
    text(WIDTH - 8, y, `${rounded(ratio)}×`, 'text-anchor="end"')
  );
}

function text(x: number, y: number, words: string, style = ""): string {
  const escaped = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y.toFixed(0)}" ${style}>${escaped}</text>`;
}

function xOf(ratio: number): number {
  const decade = Math.min(DECADES.to, Math.max(DECADES.from, Math.log10(ratio)));
  return LEFT + ((decade - DECADES.from) / (DECADES.to - DECADES.from)) * (WIDTH - LEFT - RIGHT);
}

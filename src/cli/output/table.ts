import { createCutter, createNameShortener, type Cutter } from "./cut.ts";
import { wrap } from "./wrap.ts";

/** Between two columns. */
const GAP = 2;

/** Aligned columns, two spaces apart, no spaces at the end: readable, and easy to cut by programs. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = widthsOf(header, rows);
  return [header, ...rows].map((row) => formatLine(row, widths)).join("\n");
}

/** One line more of a table that was begun with these widths; a longer cell pushes the rest to the right. */
export function formatLine(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join(" ".repeat(GAP))
    .trimEnd();
}

function widthsOf(header: readonly string[], rows: readonly (readonly string[])[]): readonly number[] {
  return header.map((title, column) =>
    rows.reduce((width, row) => Math.max(width, (row[column] ?? "").length), title.length),
  );
}

/** A table for so many columns of text, laid out by its first rows; a later one that needs more room takes what is left. */
export interface FittedTable {
  readonly header: string;
  /** One line, or several where a sentence stands below its row. */
  row(cells: readonly string[]): string;
}

/** The last column of lists holds a sentence, which stands below its row where there is no room beside it. */
const SENTENCE = "WHY";

/** No name of fewer characters says anything. */
const CELL_MIN = 8;

/** Words such as `not registered` are no names, and are not cut. */
const WHOLE_MAX = 14;

/**
 * Names lose their middle where the table is too wide, the longest first, so that short columns stay whole. Sentences are
 * wrapped below their row instead: half a reason is none.
 */
export function fitTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): FittedTable {
  const names = header.at(-1) === SENTENCE ? header.length - 1 : header.length;
  const titles = header.slice(0, names);
  const room = names === header.length ? width : width - GAP - SENTENCE.length;
  let widths = shrunk(titles, widthsOf(titles, rows), room);
  let cutters = cuttersFor(widths, rows);
  // A list that is watched may begin with no row at all.
  const makeRoom = (cells: readonly string[]) => {
    if (widths.every((most, column) => (cells[column] ?? "").length <= most)) return;
    const natural = widths.map((most, column) => Math.max(most, (cells[column] ?? "").length));
    const wider = shrunk(titles, natural, room);
    if (wider.every((most, column) => most === widths[column])) return;
    widths = wider;
    cutters = cuttersFor(widths, [...rows, cells]);
  };
  const short = width === Infinity ? (text: string) => text : createNameShortener();
  const cut = (cells: readonly string[]) =>
    cells.slice(0, names).map((cell, column) => cutters[column]?.cut(cell) ?? cell);
  return {
    header: formatLine(header, widths),
    row(cells) {
      makeRoom(cells);
      const [named, sentence] = [cut(cells), short(cells[names] ?? "")];
      const line = formatLine([...named, sentence], widths);
      if (line.length <= width) return line;
      const below = wrap(sentence, { width, first: INDENT, rest: INDENT });
      return `${formatLine(named, widths)}\n${below}`;
    },
  };
}

const INDENT = "    ";

function cuttersFor(widths: readonly number[], rows: readonly (readonly string[])[]): readonly Cutter[] {
  return widths.map((most, column) =>
    createCutter(
      most,
      rows.map((row) => row[column] ?? ""),
    ),
  );
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, widths.length - 1);
}

/** The widest column gives first, down to the next; titles are never cut. */
function shrunk(header: readonly string[], natural: readonly number[], width: number): readonly number[] {
  const widths = [...natural];
  const least = header.map((title, column) => {
    const whole = natural[column] ?? 0;
    return whole <= WHOLE_MAX ? whole : Math.max(title.length, CELL_MIN);
  });
  for (let over = totalOf(widths) - width; over > 0; over--) {
    const widest = widths.reduce(
      (best, room, column) =>
        room > (least[column] ?? 0) && (best < 0 || room > (widths[best] ?? 0)) ? column : best,
      -1,
    );
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

import { labelOf, type Entry, type Story } from "./story.ts";

const WIDTH = 100;
const TIME_WIDTH = 10;

/** A sequence diagram for a terminal of 100 columns. */
export function renderStory({ seed, volume, claim, participants, entries }: Story): string {
  const gap = Math.max(12, Math.floor((WIDTH - TIME_WIDTH) / Math.max(participants.length, 1)));
  const columns = new Map(participants.map((name, at) => [name, TIME_WIDTH + 5 + at * gap]));
  const title = `volume ${volume}${claim === undefined ? "" : ` of claim ${claim}`}, seed ${seed}`;
  return [
    title,
    "",
    heading(columns),
    ...entries.flatMap((entry) => drawn(entry, columns)),
    lifelines(columns).join("").trimEnd(),
  ].join("\n");
}

type Columns = ReadonlyMap<string, number>;

function heading(columns: Columns): string {
  const line: string[] = [];
  for (const [name, column] of columns) put(line, Math.max(0, column - (name.length >> 1)), name);
  return toText(line);
}

function lifelines(columns: Columns): string[] {
  const line: string[] = [];
  for (const column of columns.values()) put(line, column, "│");
  return Array.from(toText(line));
}

const MARKS: Readonly<Record<Entry["kind"], string>> = { message: "●", fault: "✗", broken: "▲" };

function drawn(entry: Entry, columns: Columns): string[] {
  const from = columns.get(entry.from) ?? TIME_WIDTH;
  const to = entry.to === undefined ? from : (columns.get(entry.to) ?? from);
  const line = lifelines(columns);
  put(line, 0, (entry.atMs / 1_000).toFixed(3).padStart(TIME_WIDTH - 1));
  const [left, right] = [Math.min(from, to), Math.max(from, to)];
  if (from === to) put(line, from, MARKS[entry.kind]);
  else {
    put(line, left, "─".repeat(right - left));
    put(line, from, from < to ? "├" : "┤");
    put(line, to, from < to ? "►" : "◄");
  }
  const label = labelOf(entry);
  if (right - left - 5 >= label.length) {
    put(line, left + 2 + ((right - left - 4 - label.length) >> 1), ` ${label} `);
    return [toText(line)];
  }
  if (right + 2 + label.length <= WIDTH) {
    put(line, right + 2, label);
    // The next lifeline stays apart from the text.
    if (line[right + 2 + label.length] === "│") line[right + 2 + label.length] = " ";
    return [toText(line)];
  }
  if (left - 2 - label.length > TIME_WIDTH) {
    put(line, left - 1 - label.length, label);
    return [toText(line)];
  }
  return [
    ...wrapped(label, WIDTH - TIME_WIDTH - 1).map((part) => " ".repeat(TIME_WIDTH + 1) + part),
    toText(line),
  ];
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word.slice(0, width));
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function put(line: string[], at: number, text: string): void {
  while (line.length < at) line.push(" ");
  for (const [offset, character] of Array.from(text).entries()) line[at + offset] = character;
}

function toText(line: readonly string[]): string {
  return line.join("").trimEnd();
}

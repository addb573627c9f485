import { cutAt } from "./cut.ts";

export interface Wrapping {
  readonly width: number;
  /** What the first line begins with; it counts. */
  readonly first?: string;
  /** What every other line begins with. */
  readonly rest?: string;
}

/** Breaks a sentence between words. A word that is longer than a line loses its middle. */
export function wrap(text: string, { width, first = "", rest = "" }: Wrapping): string {
  const room = width - rest.length;
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(" ")) {
    const fitted =
      word.length > room ? cutAt(word, Math.ceil((room - 1) / 2), Math.floor((room - 1) / 2)) : word;
    if (!isEmpty && line.length + 1 + fitted.length > width) {
      lines.push(line);
      line = rest;
      isEmpty = true;
    }
    line = isEmpty ? `${line}${fitted}` : `${line} ${fitted}`;
    isEmpty = false;
  }
  return [...lines, line].join("\n");
}

/** Between words, but not within quotes. */
const SHELL_WORDS = /(?:'[^']*'|[^\s'])+/g;

/**
 * Breaks a command so that a shell still takes it when it is copied; nothing of it is cut, so that a word longer than a
 * line makes a longer line. A flag stays with its value where both fit.
 */
export function wrapCommand(command: string, { width, first = "", rest = "" }: Wrapping): string {
  if (first.length + command.length <= width) return `${first}${command}`;
  const room = width - rest.length - CONTINUED.length;
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of withValues(command.match(SHELL_WORDS) ?? [], room)) {
    if (!isEmpty && line.length + 1 + word.length + CONTINUED.length > width) {
      lines.push(`${line}${CONTINUED}`);
      line = rest;
      isEmpty = true;
    }
    line = isEmpty ? `${line}${word}` : `${line} ${word}`;
    isEmpty = false;
  }
  return [...lines, line].join("\n");
}

const CONTINUED = " \\";

function withValues(words: readonly string[], room: number): readonly string[] {
  const joined: string[] = [];
  for (const word of words) {
    const flag = joined.at(-1) ?? "";
    const isValue = /^--[^\s=]+$/.test(flag) && !word.startsWith("-");
    if (isValue && flag.length + 1 + word.length <= room) joined[joined.length - 1] = `${flag} ${word}`;
    else joined.push(word);
  }
  return joined;
}

import { badRequest } from "../errors.ts";
import { addProblem, formatPath } from "./problems.ts";

/**
 * Levels a body may nest. The deepest object of the API has under 20, and what comes after decoding
 * recurses: 512 frames are far from the end of any stack.
 */
export const BODY_DEPTH_MAX = 512;

/** Above this many members an object's keys go into a set; below, comparing them one by one is faster. */
const KEYS_COMPARED_MAX = 12;

/**
 * Keys that occur more than once in an object, as paths: `data.a`, `spec.containers[1].name`. JSON.parse
 * keeps the last and says nothing, but the API promises a warning. Reads the text once from left to
 * right, skipping strings at the speed of indexOf: 2 kB take about 10 µs.
 *
 * The text must have passed JSON.parse; nothing is said about any other. Deeper than 512 levels is 400.
 * At most 100 paths are returned.
 */
export function findDuplicateKeys(text: string): string[] {
  const scanner = new Scanner(text);
  scanner.run();
  return scanner.duplicates;
}

interface Level {
  isObject: boolean;
  /** Keys seen so far, unless they moved to `seen`. */
  readonly keys: string[];
  seen: Set<string> | undefined;
  /** Where we are within it: the key being read, or the index of the element. */
  key: string;
  index: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

class Scanner {
  readonly duplicates: string[] = [];
  readonly #text: string;
  /** Levels are reused: the scan of a list of a thousand objects makes one. */
  readonly #levels: Level[] = [];
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): void {
    const text = this.#text;
    for (let at = 0; at < text.length; at++) {
      switch (text.charCodeAt(at)) {
        case QUOTE: {
          const end = endOfString(text, at);
          const after = this.#isObject() ? skipBlanks(text, end) : end;
          if (text.charCodeAt(after) === COLON) this.#addKey(text.slice(at + 1, end - 1));
          at = after - (text.charCodeAt(after) === COLON ? 0 : 1);
          break;
        }
        case OPEN_OBJECT:
          this.#open(true);
          break;
        case OPEN_LIST:
          this.#open(false);
          break;
        case CLOSE_OBJECT:
        case CLOSE_LIST:
          this.#depth--;
          break;
        case COMMA:
          this.#nextElement();
          break;
      }
    }
  }

  #isObject(): boolean {
    return this.#levels[this.#depth - 1]?.isObject ?? false;
  }

  #open(isObject: boolean): void {
    if (this.#depth >= BODY_DEPTH_MAX) {
      throw badRequest(`the body nests deeper than ${BODY_DEPTH_MAX} levels`);
    }
    const level = this.#levels[this.#depth++];
    if (level === undefined) {
      this.#levels.push({ isObject, keys: [], seen: undefined, key: "", index: 0 });
      return;
    }
    level.isObject = isObject;
    level.keys.length = 0;
    level.seen = undefined;
    level.index = 0;
  }

  #nextElement(): void {
    const level = this.#levels[this.#depth - 1];
    if (level !== undefined) level.index++;
  }

  #addKey(source: string): void {
    const level = this.#levels[this.#depth - 1];
    if (level === undefined) return;
    // Two spellings of one key are one key: "a" and "\u0061".
    const key = source.includes("\\") ? (JSON.parse(`"${source}"`) as string) : source;
    level.key = key;
    const isRepeated = level.seen === undefined ? level.keys.includes(key) : level.seen.has(key);
    if (isRepeated) {
      addProblem(this.duplicates, this.#path());
    } else if (level.seen !== undefined) {
      level.seen.add(key);
    } else if (level.keys.push(key) > KEYS_COMPARED_MAX) {
      level.seen = new Set(level.keys);
    }
  }

  #path(): string {
    const levels = this.#levels.slice(0, this.#depth);
    return formatPath(levels.map(({ isObject, key, index }) => (isObject ? key : index)));
  }
}

/** Behind the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, start, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

/** An odd number of backslashes before a quote makes it part of the string. */
function isEscaped(text: string, start: number, quote: number): boolean {
  let at = quote - 1;
  while (at > start && text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - 1 - at) % 2 === 1;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return at;
}

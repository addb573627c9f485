import { evaluationError, type CelError } from "../errors.ts";
import { isWordChar, perlClass, posixClass, unicodeClass } from "./classes.ts";
import { foldCase, type Assertion, type CharTest, type Regex } from "./syntax.ts";

/** What RE2 takes at most as a count. */
const REPEAT_MAX = 1_000;
const DEPTH_MAX = 200;

interface Flags {
  readonly ignoreCase: boolean;
  readonly multiLine: boolean;
  readonly dotAll: boolean;
  readonly isUngreedy: boolean;
}

/** Reads a pattern of RE2's syntax; throws at one it does not have, such as a look-ahead or `\1`. */
export function parseRegex(pattern: string): Regex {
  return new PatternParser(pattern).parse();
}

class PatternParser {
  readonly #chars: readonly string[];
  readonly #pattern: string;
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#chars = Array.from(pattern);
  }

  parse(): Regex {
    const flags = { ignoreCase: false, multiLine: false, dotAll: false, isUngreedy: false };
    const regex = this.#either(flags);
    if (this.#at < this.#chars.length) throw this.#wrong("unexpected )");
    return regex;
  }

  get #char(): string | undefined {
    return this.#chars[this.#at];
  }

  #take(char: string): boolean {
    if (this.#char !== char) return false;
    this.#at++;
    return true;
  }

  #either(flags: Flags): Regex {
    if (++this.#depth > DEPTH_MAX) throw this.#wrong("expression nests too deeply");
    // `(?i)` in the middle holds to the end of the group, beyond the next bar.
    let current = flags;
    const options: Regex[] = [];
    do {
      const parts: Regex[] = [];
      while (this.#char !== undefined && this.#char !== "|" && this.#char !== ")") {
        const changed = this.#flagChange(current);
        if (changed !== undefined) current = changed;
        else parts.push(this.#repeated(current));
      }
      const [only] = parts;
      options.push(parts.length === 1 && only !== undefined ? only : { kind: "sequence", parts });
    } while (this.#take("|"));
    this.#depth--;
    const [only] = options;
    return options.length === 1 && only !== undefined ? only : { kind: "either", options };
  }

  /** `(?i)`, without anything that it alone holds for. */
  #flagChange(flags: Flags): Flags | undefined {
    const match = /^\(\?([imsU]*)(?:-([imsU]+))?\)/.exec(this.#chars.slice(this.#at, this.#at + 16).join(""));
    if (match === null) return undefined;
    this.#at += match[0].length;
    return withFlags(flags, match[1] ?? "", match[2] ?? "");
  }

  #repeated(flags: Flags): Regex {
    let part = this.#single(flags);
    for (let isFirst = true; ; isFirst = false) {
      const count = this.#count();
      if (count === undefined) return part;
      if (!isFirst) throw this.#wrong("invalid nested repetition operator");
      const isLazy = this.#take("?");
      part = { kind: "repeat", part, ...count, isGreedy: isLazy === flags.isUngreedy };
    }
  }

  #count(): { min: number; max: number } | undefined {
    if (this.#take("*")) return { min: 0, max: Infinity };
    if (this.#take("+")) return { min: 1, max: Infinity };
    if (this.#take("?")) return { min: 0, max: 1 };
    const match = /^\{(\d{1,5})(?:(,)(\d{0,5}))?\}/.exec(this.#chars.slice(this.#at, this.#at + 13).join(""));
    if (match === null) return undefined;
    this.#at += match[0].length;
    const [, low = "", comma, high = ""] = match;
    const min = Number(low);
    const max = comma === undefined ? min : high === "" ? Infinity : Number(high);
    if (min > REPEAT_MAX || (max > REPEAT_MAX && max !== Infinity) || max < min) {
      throw this.#wrong(`invalid repeat count ${match[0]}`);
    }
    return { min, max };
  }

  #single(flags: Flags): Regex {
    const char = this.#char ?? "";
    this.#at++;
    switch (char) {
      case "(":
        return this.#group(flags);
      case "[":
        return this.#charOf(this.#set(), flags);
      case ".":
        return { kind: "char", matches: flags.dotAll ? () => true : (code) => code !== 0x0a };
      case "^":
        return assertion(flags.multiLine ? isLineStart : isTextStart);
      case "$":
        return assertion(flags.multiLine ? isLineEnd : isTextEnd);
      case "\\":
        return this.#escaped(flags);
      case "*":
      case "+":
      case "?":
        throw this.#wrong(`missing argument to repetition operator: ${char}`);
      default:
        return this.#charOf(exactly(char), flags);
    }
  }

  #charOf(matches: CharTest, { ignoreCase }: Flags): Regex {
    return { kind: "char", matches: ignoreCase ? foldCase(matches) : matches };
  }

  #group(flags: Flags): Regex {
    let inner = flags;
    if (this.#take("?")) {
      const rest = this.#chars.slice(this.#at, this.#at + 64).join("");
      const named = /^P?<([A-Za-z_]\w*)>/.exec(rest);
      const flagged = /^([imsU]*)(?:-([imsU]+))?:/.exec(rest);
      const head = named ?? flagged;
      if (head === null) throw this.#wrong("invalid or unsupported Perl syntax");
      this.#at += head[0].length;
      if (named === null) inner = withFlags(flags, head[1] ?? "", head[2] ?? "");
    }
    const regex = this.#either(inner);
    if (!this.#take(")")) throw this.#wrong("missing closing )");
    return regex;
  }

  #escaped(flags: Flags): Regex {
    const char = this.#char;
    const asserted = char === undefined ? undefined : ASSERTIONS[char];
    if (asserted !== undefined) {
      this.#at++;
      return assertion(asserted);
    }
    if (char === "Q") {
      this.#at++;
      return this.#quoted(flags);
    }
    return this.#charOf(this.#escape(), flags);
  }

  /** `\Q...\E`: everything in between stands for itself. */
  #quoted(flags: Flags): Regex {
    const parts: Regex[] = [];
    while (this.#char !== undefined) {
      const char = this.#char;
      if (char === "\\" && this.#chars[this.#at + 1] === "E") {
        this.#at += 2;
        break;
      }
      this.#at++;
      parts.push(this.#charOf(exactly(char), flags));
    }
    return { kind: "sequence", parts };
  }

  /** After a backslash: a class, or one character. */
  #escape(): CharTest {
    const code = this.#escapedCode();
    if (code !== undefined) return (other) => other === code;
    const char = this.#char ?? "";
    this.#at++;
    const perl = perlClass(char);
    if (perl !== undefined) return perl;
    if (char === "p" || char === "P") return this.#unicode(char === "P");
    throw this.#wrong(`invalid escape sequence: \\${char}`);
  }

  #unicode(isNegated: boolean): CharTest {
    const match = /^(?:\{(\^?)([A-Za-z_]+)\}|([A-Za-z]))/.exec(
      this.#chars.slice(this.#at, this.#at + 64).join(""),
    );
    const matches = match === null ? undefined : unicodeClass(match[2] ?? match[3] ?? "");
    if (match === null || matches === undefined) throw this.#wrong("invalid character class range");
    this.#at += match[0].length;
    return isNegated !== (match[1] === "^") ? (code) => !matches(code) : matches;
  }

  /** Undefined where it is not one character; nothing is taken then. */
  #escapedCode(): number | undefined {
    const rest = this.#chars.slice(this.#at, this.#at + 12).join("");
    const hex = /^x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(rest);
    if (hex !== null) {
      this.#at += hex[0].length;
      return parseInt(hex[1] ?? hex[2] ?? "0", 16);
    }
    const octal = /^(0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest);
    if (octal !== null) {
      this.#at += octal[0].length;
      return parseInt(octal[0], 8);
    }
    const char = this.#char ?? "";
    const control = CONTROLS[char];
    if (control === undefined && (char === "" || /[A-Za-z0-9]/.test(char) || char.charCodeAt(0) > 0x7f)) {
      return undefined;
    }
    this.#at++;
    return control ?? char.codePointAt(0);
  }

  /** `[...]`, from after its bracket. */
  #set(): CharTest {
    const isNegated = this.#take("^");
    const tests: CharTest[] = [];
    for (let isFirst = true; isFirst || this.#char !== "]"; isFirst = false) {
      if (this.#char === undefined) throw this.#wrong("missing closing ]");
      tests.push(this.#setItem());
    }
    this.#at++;
    const matches: CharTest = (code) => tests.some((test) => test(code));
    return isNegated ? (code) => !matches(code) : matches;
  }

  #setItem(): CharTest {
    const posix = /^\[:(\^?)([a-z]+):\]/.exec(this.#chars.slice(this.#at, this.#at + 16).join(""));
    if (posix !== null) {
      const matches = posixClass(posix[2] ?? "");
      if (matches === undefined) throw this.#wrong(`invalid character class range: ${posix[0]}`);
      this.#at += posix[0].length;
      return posix[1] === "^" ? (code) => !matches(code) : matches;
    }
    const low = this.#setCode();
    if (low === undefined) return this.#escape();
    if (this.#char !== "-" || this.#chars[this.#at + 1] === "]" || this.#chars[this.#at + 1] === undefined) {
      return (code) => code === low;
    }
    this.#at++;
    const high = this.#setCode();
    if (high === undefined || high < low) throw this.#wrong("invalid character class range");
    return (code) => code >= low && code <= high;
  }

  /** One character of a set; undefined before a class such as `\d`, whose backslash is taken. */
  #setCode(): number | undefined {
    if (this.#take("\\")) return this.#escapedCode();
    const code = this.#char?.codePointAt(0);
    this.#at++;
    return code;
  }

  #wrong(why: string): CelError {
    return evaluationError(`error parsing regexp: ${why} in ${JSON.stringify(this.#pattern.slice(0, 128))}`);
  }
}

const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

const isTextStart: Assertion = (before) => before === undefined;
const isTextEnd: Assertion = (_before, after) => after === undefined;
const isLineStart: Assertion = (before) => before === undefined || before === 0x0a;
const isLineEnd: Assertion = (_before, after) => after === undefined || after === 0x0a;
const isWordEdge: Assertion = (before, after) =>
  (before !== undefined && isWordChar(before)) !== (after !== undefined && isWordChar(after));

const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  A: isTextStart,
  z: isTextEnd,
  b: isWordEdge,
  B: (before, after) => !isWordEdge(before, after),
};

function assertion(holds: Assertion): Regex {
  return { kind: "assert", holds };
}

function exactly(char: string): CharTest {
  const wanted = char.codePointAt(0);
  return (code) => code === wanted;
}

function withFlags(flags: Flags, on: string, off: string): Flags {
  const choose = (letter: string, now: boolean) => !off.includes(letter) && (now || on.includes(letter));
  return {
    ignoreCase: choose("i", flags.ignoreCase),
    multiLine: choose("m", flags.multiLine),
    dotAll: choose("s", flags.dotAll),
    isUngreedy: choose("U", flags.isUngreedy),
  };
}

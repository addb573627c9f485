import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Recordings of a real kube-apiserver, and what it means that an answer is the same. Placeholders such as
 * `<UID-3>` stand for a value that is the same wherever the same token appears in one recording; `<RV>`,
 * `<AGE>` and their like for anything of the right shape.
 */
export interface Recording {
  readonly scenario: string;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly setup?: boolean;
  readonly note?: string;
  readonly request: RecordedRequest;
  readonly response: RecordedResponse;
  /** Requests sent while the watch of this step is open. */
  readonly during?: readonly Step[];
}

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Who asks, when it is not the administrator. */
  readonly as?: string;
}

export interface RecordedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly events?: readonly unknown[];
  readonly serverClosed?: boolean;
}

const FOLDER = join(import.meta.dirname, "..", "fixtures", "apiserver", "recordings");

export function readRecording(name: string): Recording {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as Recording;
}

/** What a bare placeholder may stand for. */
const SHAPES: Readonly<Record<string, string>> = {
  RV: "[0-9]+",
  UID: "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
  TIME: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ",
  MICROTIME: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z",
  CONTINUE: "[A-Za-z0-9_=.-]+",
  JWT: "[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+",
  PTR: "0x[0-9a-f]+",
  SUFFIX: "[bcdfghjklmnpqrstvwxz2456789]{5}",
  HASH: "[A-Za-z0-9]+",
  ETAG: '"[A-Za-z0-9]+"',
  ADDR: "[0-9a-z.:[\\]]+",
  AGE: "(?:\\d+[ywdhms])+|<unknown>|<invalid>",
  PEM: "[\\s\\S]+",
};

const TOKEN = /<([A-Z]+)(-\d+)?>/g;
const REPEAT = /<(\d+) (.)>/g;

/** The values that placeholders stand for in one replay. */
export class Bindings {
  readonly #values: Map<string, string>;
  readonly #latestVersion: () => string;

  /** `latestVersion` is what a list that nobody recorded would have said. */
  constructor(known: Readonly<Record<string, string>>, latestVersion: () => string) {
    this.#values = new Map(Object.entries(known));
    this.#latestVersion = latestVersion;
  }

  set(token: string, value: string): void {
    this.#values.set(token, value);
  }

  /** A path: a version that was not seen yet is the latest. */
  fillPath(path: string): string {
    for (const [token] of path.matchAll(/<RV-\d+>/g)) {
      if (!this.#values.has(token)) this.#values.set(token, this.#latestVersion());
    }
    return this.fill(path);
  }

  /** Text as it is to be sent. A token not seen yet gets a valid value of its own. */
  fill(text: string): string {
    return text
      .replace(REPEAT, (_, count: string, letter: string) => letter.repeat(Number(count)))
      .replace(TOKEN, (token, kind: string) => this.#values.get(token) ?? FRESH[kind] ?? token);
  }

  fillAll(value: unknown): unknown {
    if (typeof value === "string") return this.fill(value);
    if (Array.isArray(value)) return value.map((item) => this.fillAll(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [this.fill(name), this.fillAll(field)]),
    );
  }

  /** Whether `actual` is what `expected` says; binds what it sees for the first time. */
  matchText(expected: string, actual: string): boolean {
    const tokens: string[] = [];
    const repeated = expected.replace(REPEAT, (_, count: string, letter: string) =>
      letter.repeat(Number(count)),
    );
    const pattern = repeated
      .split(/(<[A-Z]+(?:-\d+)?>)/)
      .map((part) => this.#patternOf(part, tokens))
      .join("");
    const match = new RegExp(`^${pattern}$`).exec(actual);
    if (match === null) return false;
    return tokens.every((token, index) => this.#bind(token, match[index + 1] ?? ""));
  }

  #patternOf(part: string, tokens: string[]): string {
    const [, kind, number] = /^<([A-Z]+)(-\d+)?>$/.exec(part) ?? [];
    if (kind === undefined) return part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const shape = SHAPES[kind] ?? ".*";
    if (number === undefined) return `(?:${shape})`;
    tokens.push(part);
    return `(${shape})`;
  }

  #bind(token: string, value: string): boolean {
    const known = this.#values.get(token);
    // Two seconds that were one in the recording may be two here; what counts is that a time is there.
    if (known === undefined || token.startsWith("<TIME") || token.startsWith("<MICROTIME")) {
      this.#values.set(token, value);
      return true;
    }
    return known === value;
  }
}

const FRESH: Readonly<Record<string, string>> = {
  UID: "11111111-2222-4333-8444-555555555555",
  TIME: "2026-01-01T00:00:00Z",
  MICROTIME: "2026-01-01T00:00:00.000000Z",
  RV: "1",
};

/**
 * Where an answer differs from the recorded one, as `path: expected, got`. Fields that were not recorded are
 * not looked at: many bodies were trimmed.
 */
export function differences(
  expected: unknown,
  actual: unknown,
  bindings: Bindings,
  ignore: (path: string) => boolean,
  path = "",
): string[] {
  if (ignore(path)) return [];
  if (typeof expected === "string") {
    const same = typeof actual === "string" && bindings.matchText(expected, actual);
    return same || expected === "<omitted>" ? [] : [`${path}: ${short(expected)}, got ${short(actual)}`];
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) {
      return [`${path}: ${expected.length} items, got ${short(actual)}`];
    }
    return expected.flatMap((item, index) =>
      differences(item, actual[index], bindings, ignore, `${path}[${index}]`),
    );
  }
  if (typeof expected !== "object" || expected === null) {
    // null and absent are the same in this API.
    const same = expected === actual || (expected === null && actual === undefined);
    return same ? [] : [`${path}: ${short(expected)}, got ${short(actual)}`];
  }
  if (typeof actual !== "object" || actual === null)
    return [`${path}: ${short(expected)}, got ${short(actual)}`];
  return Object.entries(expected).flatMap(([name, field]) => {
    const filled = bindings.fill(name);
    return differences(
      field,
      (actual as Record<string, unknown>)[filled],
      bindings,
      ignore,
      `${path}.${filled}`,
    );
  });
}

function short(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

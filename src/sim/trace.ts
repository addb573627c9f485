import { createHash } from "node:crypto";

/** What a line is about, so that nobody has to read it out of the text. */
export interface About {
  /** The storage system's handle, or a PersistentVolume's name where a program's log has only that. */
  readonly volume?: string;
  readonly persistentVolume?: string;
  readonly claim?: string;
  readonly pod?: string;
  readonly node?: string;
  /** Whom it reaches: `attacher`, `san`, `node-2`. Without it, it is something that `who` does alone. */
  readonly to?: string;
}

/** What happened in a simulated cluster, a line a change, oldest first. Two runs of a seed have the same lines. */
export interface TraceLine {
  readonly atMs: number;
  /** `controller-0`, `node-1`, `san`, `workload`, `fault`. */
  readonly who: string;
  readonly what: string;
  readonly about?: About;
  /** Written by an observer that not every run has, such as a log: no part of the hash. */
  readonly isDetail?: true;
  /** Of a log: somebody should look. */
  readonly isWarning?: true;
}

export class Trace {
  readonly lines: TraceLine[] = [];
  readonly #now: () => number;
  readonly #onLine: ((line: TraceLine) => void) | undefined;

  constructor(now: () => number, onLine?: (line: TraceLine) => void) {
    this.#now = now;
    this.#onLine = onLine;
  }

  add(who: string, what: string, about?: About): void {
    this.#push({ atMs: this.#now(), who, what, ...(about && { about }) });
  }

  /** A line that leaves the hash as it is. */
  addDetail(who: string, what: string, about: About, { isWarning = false } = {}): void {
    this.#push({ atMs: this.#now(), who, what, about, isDetail: true, ...(isWarning && { isWarning }) });
  }

  /** Equal for equal runs, on any machine, whoever looks on. */
  hash(): string {
    const hash = createHash("sha256");
    for (const line of this.lines) if (line.isDetail !== true) hash.update(`${renderLine(line)}\n`);
    return hash.digest("hex").slice(0, 16);
  }

  #push(line: TraceLine): void {
    this.lines.push(line);
    this.#onLine?.(line);
  }
}

/** `    12.345  node-1        mounts v3 for web-0`. */
export function renderLine({ atMs, who, what }: TraceLine): string {
  return `${(atMs / 1_000).toFixed(3).padStart(10)}  ${who.padEnd(14)}${what}`;
}

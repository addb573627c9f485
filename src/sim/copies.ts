/** What is known of the content of one volume. */
export interface Content {
  /** Lines that have to be there, in this order; after the first `synced` of them only a power loss may take some. */
  readonly wanted: string[];
  synced: number;
  /** Lines that a power loss met before they were synced: whoever reads next finds out what is left of them. */
  readonly uncertain: string[];
  /** Those of which a part was there, or nothing. */
  readonly cut: string[];
}

/** A copy that nobody has opened yet. */
interface Unopened {
  /** Of its source, synced before the copy was begun: all of them are in it. */
  readonly least: readonly string[];
  /** What else its source had when the copy was done: whole, cut or not at all. */
  readonly loose: readonly string[];
}

export interface CopyOptions {
  /** Whether all of it is of one moment, whoever writes to the source; else it is read from one end to the other. */
  readonly atOnce: boolean;
}

/**
 * What copies of volumes have to begin with: snapshots, volumes made of them, and clones. Every line that was synced
 * before a copy was begun is in it, and none that was written after it was done. Whichever of those between it has decides
 * itself when it is first opened; from then on it is held to them.
 */
export class Copies {
  readonly #contentOf: (handle: string) => Content;
  readonly #unopened = new Map<string, Unopened>();
  readonly #sources = new Map<string, string>();
  readonly #onBegin = new Set<(from: string, options: CopyOptions) => void>();

  /** `contentOf` is what a volume is held to, to be added to. */
  constructor(contentOf: (handle: string) => Content) {
    this.#contentOf = contentOf;
  }

  /** Told of every copy when it is begun. */
  onBegin(listener: (from: string, options: CopyOptions) => void): void {
    this.#onBegin.add(listener);
  }

  /** A copy of a volume or snapshot is begun; to be called once it is done, which it never may be. */
  begin(from: string, to: string, options: CopyOptions = { atOnce: true }): () => void {
    for (const listener of this.#onBegin) listener(from, options);
    const { wanted, synced } = this.#contentOf(from);
    const least = this.#unopened.get(from)?.least ?? wanted.slice(0, synced);
    return () => {
      this.#unopened.set(to, { least, loose: this.#unopened.get(from)?.loose ?? this.#looseOf(from, least) });
      this.#sources.set(to, from);
    };
  }

  /** What it was copied from; also once that is gone. */
  sourceOf(handle: string): string | undefined {
    return this.#sources.get(handle);
  }

  /** What is wrong with the lines of a copy that is opened for the first time. */
  open(handle: string, found: readonly string[]): string | undefined {
    const copy = this.#unopened.get(handle);
    if (copy === undefined) return undefined;
    const { least, loose } = copy;
    const known = new Set([...least, ...loose]);
    const parts = found.filter((line) => !known.has(line));
    const foreign = parts.find((line) => !loose.some((whole) => whole.startsWith(line)));
    if (foreign !== undefined)
      return `${handle} is a copy with what its source ${this.sourceOf(handle)} did not have: ${foreign}`;
    let met = 0;
    for (const line of found) if (line === least[met]) met++;
    if (met < least.length)
      return `${handle} lacks ${least.length - met} of ${least.length} writes that its source ${this.sourceOf(handle)} had acknowledged before it was copied, the first: ${least[met]}`;
    this.#unopened.delete(handle);
    const content = this.#contentOf(handle);
    content.wanted.push(...found.filter((line) => known.has(line)));
    content.synced = content.wanted.length;
    content.cut.push(...parts);
    return undefined;
  }

  forget(handle: string): void {
    this.#unopened.delete(handle);
  }

  #looseOf(handle: string, least: readonly string[]): readonly string[] {
    const { wanted, uncertain, cut } = this.#contentOf(handle);
    return [...wanted.slice(least.length), ...uncertain, ...cut];
  }
}

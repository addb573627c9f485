/** A copy that nobody has opened yet. */
interface Unopened {
  /** Of its source, when the copy was done. */
  readonly lines: readonly string[];
  /** So many of them were on the disk when it was begun. */
  readonly least: number;
}

/**
 * What copies of volumes have to begin with: snapshots, volumes made of them, and clones. Every line that was acknowledged
 * before a copy was begun is in it, and none that was written after it was done. Whichever of those between it has decides
 * itself when it is first opened; from then on it is held to them.
 */
export class Copies {
  readonly #linesOf: (handle: string) => string[];
  readonly #unopened = new Map<string, Unopened>();
  readonly #sources = new Map<string, string>();

  /** `linesOf` is what a volume is held to, to be added to. */
  constructor(linesOf: (handle: string) => string[]) {
    this.#linesOf = linesOf;
  }

  /** A copy of a volume or snapshot is begun; to be called once it is done, which it never may be. */
  begin(from: string, to: string): () => void {
    const least = this.#unopened.get(from)?.least ?? this.#linesOf(from).length;
    return () => {
      const lines = [...(this.#unopened.get(from)?.lines ?? this.#linesOf(from))];
      this.#unopened.set(to, { lines, least });
      this.#sources.set(to, from);
    };
  }

  /** What it was copied from; also once that is gone. */
  sourceOf(handle: string): string | undefined {
    return this.#sources.get(handle);
  }

  /** What is wrong with a copy that is opened for the first time. */
  open(handle: string, found: readonly string[]): string | undefined {
    const copy = this.#unopened.get(handle);
    if (copy === undefined) return undefined;
    const { lines, least } = copy;
    const foreign = found.findIndex((line, at) => line !== lines[at]);
    if (foreign >= 0)
      return `${handle} is a copy with what its source ${this.sourceOf(handle)} did not have: ${found[foreign]}`;
    if (found.length < least)
      return `${handle} lacks ${least - found.length} of ${least} writes that its source ${this.sourceOf(handle)} had acknowledged before it was copied, the first: ${lines[found.length]}`;
    this.#unopened.delete(handle);
    this.#linesOf(handle).push(...found);
    return undefined;
  }

  forget(handle: string): void {
    this.#unopened.delete(handle);
  }
}

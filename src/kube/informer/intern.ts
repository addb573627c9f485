/**
 * One copy of a text that many objects repeat. JSON.parse makes a new string for every value longer than
 * ten characters, so 1,000,000 attachments would carry 1,000,000 copies of a few thousand node names.
 *
 * Past `entriesMax` it forgets everything and starts anew: what was handed out stays right, only less shared.
 */
export class Interner {
  readonly #entriesMax: number;
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, string[]>();

  constructor({ entriesMax }: { entriesMax: number }) {
    this.#entriesMax = entriesMax;
  }

  /** Texts and lists known at the moment; at most `entriesMax` of each. */
  get size(): number {
    return this.#texts.size + this.#lists.size;
  }

  text(text: string): string {
    return share(this.#texts, text, text, this.#entriesMax);
  }

  /** For lists that nearly always hold the same one text, such as finalizers; longer ones are not shared. */
  list(list: string[]): string[] {
    const [only] = list;
    if (only === undefined || list.length > 1) return list;
    // Frozen, so that whoever changes a cached object learns it before the other owners of the list do.
    return (
      this.#lists.get(only) ?? share(this.#lists, only, Object.freeze(list) as string[], this.#entriesMax)
    );
  }
}

function share<T>(known: Map<string, T>, key: string, value: T, entriesMax: number): T {
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= entriesMax) known.clear();
  known.set(key, value);
  return value;
}

/**
 * Shared by the trims of all kinds: a node's name is the same text in the node, its pods and its attachments.
 * The bound is above the names of 100,000 nodes and 20,000 namespaces; full, it holds about 15 MB.
 */
export const interned = new Interner({ entriesMax: 131_072 });

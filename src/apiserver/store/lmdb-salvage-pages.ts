import {
  overflowPages,
  parseFreeRuns,
  parseLeafNodes,
  parseMeta,
  parseOverflow,
  parseTreePage,
  type LeafNode,
  type Meta,
} from "./lmdb-pages.ts";
import { readBytes, type PageSource } from "./lmdb-source.ts";

/**
 * A damaged file, page by page: what can be read is, what cannot is counted, and nothing is thrown. What a page says is
 * not believed here any more than elsewhere; whether a record is what was written, its checksum tells.
 */

/** The engine's settings give every store this size; a meta page that says another is damaged. */
const PAGE_BYTES = 4_096;

export interface SalvagedNode {
  readonly key: Buffer;
  /** Undefined where the pages of a long value cannot be read. */
  readonly value: Buffer | undefined;
}

export interface SalvagedPages {
  /** Nodes of the tree of the last commit, as far as it can be followed. */
  readonly current: readonly SalvagedNode[];
  /** Of pages that belong to that tree or to an earlier one: which, cannot be told. */
  readonly unplaced: readonly SalvagedNode[];
  /** Offsets of what could not be read. */
  readonly damagedAt: readonly number[];
  /** Records that were counted by the last commit and are on no page; undefined where the count cannot be believed. */
  readonly missing: number | undefined;
  /** More than a file of this length holds. */
  readonly recordsMax: number;
  /** Whether the newest records of the last commit were found; there may be later ones otherwise. */
  readonly isEndKnown: boolean;
}

export function salvagePages(source: PageSource): SalvagedPages {
  return new Salvage(source).run();
}

/** Keys of the tree of free pages are transactions, those of records 1 or 9 bytes long; see `lmdb-records.ts`. */
const FREE_KEY_BYTES = 8;
const DEPTH_MAX = 20;
/** One takes 50 bytes at least: the node, its key, and 27 before the names. */
const RECORDS_A_PAGE = 80;

class Salvage {
  readonly #source: PageSource;
  readonly #count: number;
  readonly #damagedAt = new Set<number>();
  readonly #seen = new Set<number>();
  /** Of the last walk: whether what it came to last, the highest keys, was sound. */
  #isLastLeafWhole = false;

  constructor(source: PageSource) {
    this.#source = source;
    this.#count = Math.floor(source.sizeBytes / PAGE_BYTES);
  }

  run(): SalvagedPages {
    const roots = this.#roots();
    let current = this.#walkMain(roots, new Set());
    const recordsMax = this.#count * RECORDS_A_PAGE;
    const counted = (roots?.counted ?? Infinity) > recordsMax ? undefined : roots?.counted;
    const isWhole = this.#damagedAt.size === 0 && counted !== undefined && current.length === counted;
    let isEndWhole = this.#isLastLeafWhole;
    const free = new Set<number>();
    const isFreeKnown = roots !== undefined && this.#readFree(roots, free);
    if (!isWhole && isFreeKnown) {
      current = this.#walkMain(roots, free);
      isEndWhole = this.#isLastLeafWhole;
    }
    const unplaced: SalvagedNode[] = [];
    for (let number = 2; number < this.#count; number++) {
      if (this.#seen.has(number)) continue;
      const nodes = this.#leafNodes(number);
      // Where all free pages are known, a page of records that is neither free nor in the tree was torn from it.
      const isTorn = !isWhole && isFreeKnown && !free.has(number) && isRecords(nodes);
      (isTorn ? current : unplaced).push(...nodes);
    }
    return {
      current,
      unplaced,
      damagedAt: [...this.#damagedAt].sort((a, b) => a - b),
      missing: counted === undefined ? undefined : Math.max(0, counted - current.length),
      recordsMax,
      isEndKnown: roots?.isLast === true && isEndWhole,
    };
  }

  /** A branch that leads to a free page is damaged: what is there belongs to an earlier commit. */
  #walkMain(roots: Roots | undefined, free: ReadonlySet<number>): SalvagedNode[] {
    const found: SalvagedNode[] = [];
    this.#seen.clear();
    if (roots?.main !== undefined)
      this.#walk(roots.main, { ...roots, free }, 1, (nodes) => found.push(...nodes));
    return found;
  }

  /** Of the newer meta page; where that one cannot be read, the roots that nothing else refers to. */
  #roots(): Roots | undefined {
    const metas = [0, 1].map((number) => this.#meta(number));
    const [first, second] = metas;
    if (first && second) {
      const newer = first.transaction > second.transaction ? first : second;
      const isNext = Math.abs(first.transaction - second.transaction) <= 1;
      if (isNext && this.#isWrittenBy(newer)) return rootsOf(newer);
    }
    for (const [number, meta] of metas.entries()) if (!meta) this.#damagedAt.add(number * PAGE_BYTES);
    if (first && second) this.#damagedAt.add(0);
    return this.#rootsFromPages(Math.max(...metas.map((meta) => meta?.transaction ?? 0)));
  }

  #meta(number: number): Meta | undefined {
    const meta = this.#read(number, 1, (bytes) => parseMeta(bytes));
    return meta?.pageBytes === PAGE_BYTES ? meta : undefined;
  }

  #isWrittenBy({ main, transaction }: Meta): boolean {
    if (main.root === undefined) return true;
    const page = this.#read(main.root, 1, (bytes) => parseTreePage(bytes, main.root ?? 0));
    return page?.transaction === transaction;
  }

  /** Every commit writes both roots anew, so they are the pages of the last that no other page of it refers to. */
  #rootsFromPages(known: number): Roots | undefined {
    const pages = [...this.#treePages()];
    const transaction = pages
      .map((page) => page.transaction)
      .filter((at) => at <= known + 1 || known === 0)
      .reduce((last, at) => Math.max(last, at), 0);
    const last = pages.filter((page) => page.transaction === transaction);
    const children = new Set(last.flatMap(({ children }) => children));
    const heads = last.filter(({ number }) => !children.has(number));
    const [mains, frees] = [heads.filter(({ isFree }) => !isFree), heads.filter(({ isFree }) => isFree)];
    if (transaction === 0 || mains.length !== 1 || frees.length > 1) return undefined;
    return {
      main: mains[0]?.number,
      free: frees[0]?.number,
      transaction,
      counted: undefined,
      isLast: known > 0 && transaction === known + 1,
    };
  }

  *#treePages() {
    for (let number = 2; number < this.#count; number++) {
      const page = this.#read(number, 1, (bytes) => parseTreePage(bytes, number));
      if (page === undefined) continue;
      const isFree = page.nodes.at(-1)?.key.length === FREE_KEY_BYTES;
      const children = page.kind === "branch" ? page.nodes.map((node) => node.page) : [];
      yield { number, transaction: page.transaction, isFree, children };
    }
  }

  #walk(number: number, tree: Walked, depth: number, found: (nodes: readonly SalvagedNode[]) => void): void {
    if (this.#seen.has(number) || depth > DEPTH_MAX) return;
    const page = this.#read(number, 1, (bytes) => parseTreePage(bytes, number));
    this.#isLastLeafWhole = false;
    if (tree.free.has(number)) {
      this.#damagedAt.add(number * PAGE_BYTES);
      return;
    }
    this.#seen.add(number);
    if (page === undefined || page.transaction > tree.transaction) {
      this.#damagedAt.add(number * PAGE_BYTES);
      // Of a damaged leaf, the nodes that can be read; a damaged branch loses its leaves, which are looked for later.
      found(this.#leafNodes(number));
    } else if (page.kind === "branch") {
      for (const node of page.nodes) this.#walk(node.page, tree, depth + 1, found);
    } else {
      this.#isLastLeafWhole = true;
      found(page.nodes.map((node) => this.#valueOf(node)));
    }
  }

  /** Whether all of it could be read. */
  #readFree({ free: root, transaction }: Roots, free: Set<number>): boolean {
    if (root === undefined) return true;
    const before = this.#damagedAt.size;
    let unreadable = 0;
    this.#walk(root, { transaction, free: new Set() }, 1, (nodes) => {
      for (const { value } of nodes) {
        const runs = value && quietly(() => parseFreeRuns(value));
        if (runs === undefined) unreadable++;
        for (const [first, count] of runs ?? [])
          for (let page = first; page < Math.min(first + count, this.#count); page++) free.add(page);
      }
    });
    return this.#damagedAt.size + unreadable === before;
  }

  #leafNodes(number: number): readonly SalvagedNode[] {
    const nodes = this.#read(number, 1, (bytes) => parseLeafNodes(bytes)) ?? [];
    return nodes.map((node) => this.#valueOf(node));
  }

  #valueOf(node: LeafNode): SalvagedNode {
    const { key } = node;
    if (node.kind === "inline") return { key, value: node.value };
    const count = overflowPages(node.bytes, PAGE_BYTES);
    const value = this.#read(node.page, count, (bytes) =>
      Buffer.from(parseOverflow(bytes, node.page, node.bytes, PAGE_BYTES)),
    );
    for (let page = node.page; value !== undefined && page < node.page + count; page++) this.#seen.add(page);
    return { key, value };
  }

  #read<T>(number: number, count: number, parse: (bytes: Buffer) => T): T | undefined {
    return quietly(() =>
      parse(Buffer.from(readBytes(this.#source, number * PAGE_BYTES, count * PAGE_BYTES))),
    );
  }
}

interface Roots {
  readonly main: number | undefined;
  readonly free: number | undefined;
  readonly transaction: number;
  /** The records that the meta page counts; undefined where it cannot be read. */
  readonly counted: number | undefined;
  /** Whether no later commit can have been. */
  readonly isLast: boolean;
}

type Walked = Pick<Roots, "transaction"> & { readonly free: ReadonlySet<number> };

function rootsOf({ main, free, transaction }: Meta): Roots {
  return { main: main.root, free: free.root, transaction, counted: main.entries, isLast: true };
}

function isRecords(nodes: readonly SalvagedNode[]): boolean {
  return nodes.length > 0 && nodes.every(({ key }) => key.length !== FREE_KEY_BYTES);
}

/** Here every failure means one thing: it cannot be read. */
function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

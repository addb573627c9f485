import {
  overflowPages,
  PageProblem,
  parseFreeRuns,
  parseOverflow,
  parseTreePage,
  type LeafNode,
  type Meta,
  type Tree,
  type TreePage,
} from "./lmdb-pages.ts";
import { at, problemAt, readBytes, type PageSource } from "./lmdb-source.ts";
import type { StoreError } from "./store.ts";

interface TreeFile {
  readonly source: PageSource;
  readonly meta: Meta;
  readonly ledger: PageLedger;
}

type Compare = (a: Buffer, b: Buffer) => number;

/** One entry of a tree. The buffers are valid until the next one is asked for. */
export type TreeRecord = readonly [key: Buffer, value: Buffer];

/** Every record of a tree, in order; the tree is checked on the way, and its counts at the end. */
export function readTree(file: TreeFile, tree: Tree, compare: Compare): Iterable<TreeRecord> {
  return new TreeWalk(file, tree, compare).run();
}

/** Keys from `lowest` on and below `end`, as the branches above a page say. */
interface KeyRange {
  readonly lowest: Buffer | undefined;
  readonly end: Buffer | undefined;
}

class TreeWalk {
  readonly #file: TreeFile;
  readonly #tree: Tree;
  readonly #compare: Compare;
  readonly #seen = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };
  #last: Buffer | undefined;

  constructor(file: TreeFile, tree: Tree, compare: Compare) {
    this.#file = file;
    this.#tree = tree;
    this.#compare = compare;
  }

  *run(): Iterable<TreeRecord> {
    if (this.#tree.root !== undefined) {
      yield* this.#visit(this.#tree.root, 1, { lowest: undefined, end: undefined });
    }
    for (const what of ["branchPages", "leafPages", "overflowPages", "entries"] as const) {
      if (this.#seen[what] === this.#tree[what]) continue;
      const text = `${this.#seen[what]} ${what} where the meta page counts ${this.#tree[what]}`;
      throw problemAt(this.#file.source, 0, text);
    }
  }

  *#visit(number: number, depth: number, range: KeyRange): Iterable<TreeRecord> {
    const page = this.#page(number);
    this.#at(number, () => {
      const isLeaf = page.kind === "leaf";
      if (isLeaf !== (depth === this.#tree.depth)) throw new PageProblem(`a ${page.kind} at depth ${depth}`);
    });
    if (page.kind === "leaf") {
      this.#seen.leafPages++;
      for (const node of page.nodes) yield this.#record(number, node, range);
      return;
    }
    this.#seen.branchPages++;
    for (const [index, { key, page: child }] of page.nodes.entries()) {
      const lowest = index === 0 ? range.lowest : key;
      yield* this.#visit(child, depth + 1, { lowest, end: page.nodes[index + 1]?.key ?? range.end });
    }
  }

  #record(number: number, node: LeafNode, { lowest, end }: KeyRange): TreeRecord {
    const { key } = node;
    this.#at(number, () => {
      const isAfterLast = this.#last === undefined || this.#compare(this.#last, key) < 0;
      const isInRange =
        (lowest === undefined || this.#compare(lowest, key) <= 0) &&
        (end === undefined || this.#compare(key, end) < 0);
      if (!isAfterLast || !isInRange) throw new PageProblem(`key ${key.toString("hex")} is out of order`);
    });
    this.#last = key;
    this.#seen.entries++;
    return [key, node.kind === "inline" ? node.value : this.#longValue(node)];
  }

  #page(number: number): TreePage {
    const { source, meta, ledger } = this.#file;
    ledger.claim(number, 1);
    return this.#at(number, () => {
      // A copy: the walk comes back to it after its children, and the source reuses its buffer.
      const bytes = Buffer.from(readBytes(source, number * meta.pageBytes, meta.pageBytes));
      const page = parseTreePage(bytes, number);
      if (page.transaction <= meta.transaction) return page;
      throw new PageProblem(`transaction ${page.transaction} wrote it, after the last, ${meta.transaction}`);
    });
  }

  #longValue({ page, bytes }: Extract<LeafNode, { kind: "overflow" }>): Buffer {
    const { source, meta, ledger } = this.#file;
    const count = overflowPages(bytes, meta.pageBytes);
    this.#seen.overflowPages += count;
    ledger.claim(page, count);
    return this.#at(page, () => {
      const pages = readBytes(source, page * meta.pageBytes, count * meta.pageBytes);
      return parseOverflow(pages, page, bytes, meta.pageBytes);
    });
  }

  #at<T>(page: number, work: () => T): T {
    return at(this.#file.source, page * this.#file.meta.pageBytes, work);
  }
}

/** Which pages of the file are in use. A page in two places would be overwritten through one of them. */
export class PageLedger {
  readonly #source: PageSource;
  readonly #meta: Meta;
  /** One byte a page that is in the file: whether some tree has it. */
  readonly #used: Uint8Array;
  /** Free pages that the file is too short for. */
  #freeBeyond = 0;

  constructor(source: PageSource, meta: Meta) {
    this.#source = source;
    this.#meta = meta;
    this.#used = new Uint8Array(Math.min(meta.lastPage + 1, Math.ceil(source.sizeBytes / meta.pageBytes)));
    this.#used.fill(1, 0, 2);
  }

  claim(first: number, count: number): void {
    if (first < 2 || first + count > this.#used.length)
      throw this.#problem(first, "used, and not in the file");
    if (this.#used.subarray(first, first + count).includes(1)) throw this.#problem(first, "in two places");
    this.#used.fill(1, first, first + count);
  }

  /** A record of the tree of free pages: none of them may be in use, or the next write would overwrite it. */
  release(value: Buffer): void {
    for (const [first, count] of at(this.#source, 0, () => parseFreeRuns(value))) {
      if (first < 2 || first + count - 1 > this.#meta.lastPage) {
        throw this.#problem(first, "free, and not in the file");
      }
      this.#freeBeyond += Math.max(0, first + count - Math.max(first, this.#used.length));
      const used = this.#used.subarray(first, first + count).indexOf(1);
      if (used >= 0) throw this.#problem(first + used, "in use, and listed as free");
    }
  }

  /** After all pages: the file may end before the last of them only because those in between are free. */
  checkEnd(): void {
    const beyond = this.#meta.lastPage + 1 - this.#used.length;
    if (this.#freeBeyond < beyond)
      throw this.#problem(this.#used.length, `cut off, of ${this.#meta.lastPage}`);
  }

  #problem(page: number, text: string): StoreError {
    return problemAt(this.#source, page * this.#meta.pageBytes, `page ${page} is ${text}`);
  }
}

/**
 * One page of an LMDB file, as the pinned engine lays it out on 64-bit little-endian machines. Parsing
 * checks everything the engine would trust: it has no checksums, and an offset or page number that points
 * outside takes the whole process down with it.
 *
 * A page begins with a header of 24 bytes: u64 number, u64 transaction that wrote it, u16 unused, u16 kind, u16
 * end of the offsets, u16 start of the nodes. Offsets count from the end of the header.
 */

const HEADER_BYTES = 24;
const NODE_BYTES = 8;
const BRANCH = 1;
const LEAF = 2;
const OVERFLOW = 4;
const META = 8;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
/** Of an empty tree: all ones. */
const NO_PAGE = 0xffff_ffff_ffff_ffffn;

/** A tree as its meta page describes it. */
export interface Tree {
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  /** Undefined when the tree is empty. */
  readonly root: number | undefined;
}

export interface Meta {
  readonly pageBytes: number;
  readonly free: Tree;
  readonly main: Tree;
  readonly lastPage: number;
  readonly transaction: number;
}

export type LeafNode =
  | { readonly kind: "inline"; readonly key: Buffer; readonly value: Buffer }
  | { readonly kind: "overflow"; readonly key: Buffer; readonly page: number; readonly bytes: number };

interface BranchNode {
  /** Every key below `page` is at least this one; without meaning in the first node of a page. */
  readonly key: Buffer;
  readonly page: number;
}

export type TreePage =
  | { readonly kind: "branch"; readonly transaction: number; readonly nodes: readonly BranchNode[] }
  | { readonly kind: "leaf"; readonly transaction: number; readonly nodes: readonly LeafNode[] };

/** Says what is wrong with a page; whoever read it knows where it stands. */
export class PageProblem extends Error {
  override readonly name = "PageProblem";
}

/** `bytes` holds at least the first 168 of the page. */
export function parseMeta(bytes: Buffer): Meta {
  check(bytes.length >= 168, "the file is too short to hold a store");
  check(
    bytes.readUInt16LE(18) === META && bytes.readUInt32LE(24) === MAGIC,
    "it is not the start of a store",
  );
  check(bytes.readUInt32LE(28) === DATA_VERSION, `data version ${bytes.readUInt32LE(28)} is not known`);
  const pageBytes = bytes.readUInt32LE(48);
  check(pageBytes >= 512 && pageBytes <= 65_536 && (pageBytes & (pageBytes - 1)) === 0, "no such page size");
  // Integer keys in the tree of free pages, and nothing special in the other.
  check(bytes.readUInt16LE(52) === 8 && bytes.readUInt16LE(100) === 0, "a tree has unknown flags");
  return {
    pageBytes,
    free: parseTree(bytes, 48),
    main: parseTree(bytes, 96),
    lastPage: uint64(bytes, 144),
    transaction: uint64(bytes, 152),
  };
}

function parseTree(bytes: Buffer, at: number): Tree {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    depth: bytes.readUInt16LE(at + 6),
    branchPages: uint64(bytes, at + 8),
    leafPages: uint64(bytes, at + 16),
    overflowPages: uint64(bytes, at + 24),
    entries: uint64(bytes, at + 32),
    root: root === NO_PAGE ? undefined : uint64(bytes, at + 40),
  };
}

export function parseTreePage(page: Buffer, number: number): TreePage {
  check(uint64(page, 0) === number, `it says it is page ${uint64(page, 0)}`);
  const kind = page.readUInt16LE(18);
  check(kind === BRANCH || kind === LEAF, `kind ${kind} does not belong into a tree`);
  const transaction = uint64(page, 8);
  const offsets = parseOffsets(page);
  if (kind === BRANCH)
    return { kind: "branch", transaction, nodes: parseNodes(page, offsets, parseBranchNode) };
  return { kind: "leaf", transaction, nodes: parseNodes(page, offsets, parseLeafNode) };
}

/** The nodes of a leaf that can be read, one by one, in a page whose other parts may be damaged. */
export function parseLeafNodes(page: Buffer): readonly LeafNode[] {
  const [kind, lower] = [page.readUInt16LE(18), page.readUInt16LE(20)];
  if (kind === BRANCH || kind === OVERFLOW) return [];
  const nodes: LeafNode[] = [];
  for (let at = HEADER_BYTES; at < Math.min(HEADER_BYTES + lower, page.length - 1); at += 2) {
    try {
      nodes.push(parseLeafNode(page, page.readUInt16LE(at) + HEADER_BYTES)[0]);
    } catch {
      // This one is damaged; the others need not be.
    }
  }
  return nodes;
}

/** Where the nodes begin. They fill the end of the page without a gap, in any order. */
function parseOffsets(page: Buffer): readonly number[] {
  const [lower, upper] = [page.readUInt16LE(20), page.readUInt16LE(22)];
  const room = page.length - HEADER_BYTES;
  check(lower > 0 && lower % 2 === 0 && lower <= upper && upper < room, `bounds ${lower} and ${upper}`);
  const offsets: number[] = [];
  for (let at = HEADER_BYTES; at < HEADER_BYTES + lower; at += 2) {
    const offset = page.readUInt16LE(at);
    check(offset >= upper && offset + NODE_BYTES <= room, `a node at ${offset}, outside ${upper} to ${room}`);
    offsets.push(offset + HEADER_BYTES);
  }
  return offsets;
}

type Parsed<Node> = readonly [Node, sizeBytes: number];

function parseNodes<Node>(
  page: Buffer,
  offsets: readonly number[],
  parse: (page: Buffer, at: number) => Parsed<Node>,
): readonly Node[] {
  let filled = 0;
  const nodes = offsets.map((at) => {
    const [node, sizeBytes] = parse(page, at);
    filled += sizeBytes + (sizeBytes % 2);
    return node;
  });
  const expected = page.length - HEADER_BYTES - page.readUInt16LE(22);
  check(filled === expected, `its nodes take ${filled} bytes where there are ${expected}`);
  return nodes;
}

function parseBranchNode(page: Buffer, at: number): Parsed<BranchNode> {
  const keyBytes = page.readUInt16LE(at + 6);
  const key = slice(page, at + NODE_BYTES, keyBytes);
  const child = page.readUInt32LE(at) + page.readUInt16LE(at + 4) * 2 ** 32;
  return [{ key, page: child }, NODE_BYTES + keyBytes];
}

function parseLeafNode(page: Buffer, at: number): Parsed<LeafNode> {
  const [bytes, flags, keyBytes] = [
    page.readUInt32LE(at),
    page.readUInt16LE(at + 4),
    page.readUInt16LE(at + 6),
  ];
  const key = slice(page, at + NODE_BYTES, keyBytes);
  const valueAt = at + NODE_BYTES + keyBytes;
  if (flags === 0) {
    return [{ kind: "inline", key, value: slice(page, valueAt, bytes) }, NODE_BYTES + keyBytes + bytes];
  }
  check(flags === 1, `a node with flags ${flags}`);
  // u64 first page, u64 transaction, u64 number of pages.
  const reference = slice(page, valueAt, 24);
  const pages = uint64(reference, 16);
  check(pages === overflowPages(bytes, page.length), `${pages} pages for a value of ${bytes} bytes`);
  return [{ kind: "overflow", key, page: uint64(reference, 0), bytes }, NODE_BYTES + keyBytes + 24];
}

export function overflowPages(bytes: number, pageBytes: number): number {
  return Math.floor((HEADER_BYTES - 1 + bytes) / pageBytes) + 1;
}

/** The value that begins in `pages`, which are all pages it takes. */
export function parseOverflow(pages: Buffer, number: number, bytes: number, pageBytes: number): Buffer {
  check(uint64(pages, 0) === number, `it says it is page ${uint64(pages, 0)}`);
  check(pages.readUInt16LE(18) === OVERFLOW, `kind ${pages.readUInt16LE(18)} where a long value should be`);
  const count = pages.readUInt32LE(20);
  check(count === overflowPages(bytes, pageBytes), `it says it takes ${count} pages`);
  return slice(pages, HEADER_BYTES, bytes);
}

/**
 * The pages named by one record of the tree of free pages, as [first, count]. A record is a list of u64: how many
 * follow, then page numbers; a negative number -n says that the next one begins a run of n; 0 is a hole.
 */
export function parseFreeRuns(value: Buffer): readonly (readonly [number, number])[] {
  check(value.length >= 8 && value.length % 8 === 0, `a list of free pages of ${value.length} bytes`);
  const count = uint64(value, 0);
  check(count * 8 + 8 <= value.length, `a list of ${count} free pages in ${value.length} bytes`);
  const runs: (readonly [number, number])[] = [];
  for (let index = 1; index <= count; index++) {
    const entry = Number(value.readBigInt64LE(8 * index));
    if (entry > 0) runs.push([entry, 1]);
    if (entry >= 0) continue;
    check(++index <= count, "a run of free pages without a beginning");
    runs.push([uint64(value, 8 * index), -entry]);
  }
  return runs;
}

function slice(page: Buffer, at: number, bytes: number): Buffer {
  check(at + bytes <= page.length, `a node that reaches to ${at + bytes} of ${page.length}`);
  return page.subarray(at, at + bytes);
}

/** Numbers above 2^53 are wrong wherever they stand. */
function uint64(buffer: Buffer, at: number): number {
  const value = buffer.readUInt32LE(at) + buffer.readUInt32LE(at + 4) * 2 ** 32;
  check(Number.isSafeInteger(value), "a number beyond all bounds");
  return value;
}

function check(claim: boolean, problem: string): asserts claim {
  if (!claim) throw new PageProblem(problem);
}

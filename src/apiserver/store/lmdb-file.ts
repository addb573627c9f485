import { at, problemAt, readBytes, type PageSource } from "./lmdb-source.ts";
import { PageProblem, parseFreeRuns, parseMeta, parseTreePage, type Meta } from "./lmdb-pages.ts";
import { PageLedger, readTree, type TreeRecord } from "./lmdb-tree.ts";

/**
 * Reads every record of an LMDB file without the engine, and checks all of it on the way.
 *
 * Why not through the engine: it maps the file and follows whatever it finds there. Of 2,000 copies of a store, each with
 * one byte changed, it read 948 wrong without a word and took the process down with a signal for 3. Checksums
 * in the records would catch most of the first kind, and nothing of the second. Here every copy either gives all
 * records as they were, the damage being in bytes that do not matter, or an error that says at which offset.
 * The engine is opened only for files that passed. It also saves memory: mapped pages count as the process's own.
 *
 * What is checked: both meta pages and the roots they name; every page of both trees: number, kind, bounds,
 * order of keys; the engine's own counts; no page in two places, none both used and free. Checksums of
 * records are for the caller. Damage in pages that are free does not matter and is not looked for.
 */
export function* readRecords(source: PageSource): Iterable<TreeRecord> {
  const meta = readMeta(source);
  const ledger = new PageLedger(source, meta);
  const file = { source, meta, ledger };
  yield* readTree(file, meta.main, compareKeys);
  for (const [, value] of readTree(file, meta.free, compareTransactions)) ledger.release(value);
  ledger.checkEnd();
}

/** Pages that the next commit may write to: freed by those before the last, whose own the older meta page still needs. */
export function freePagesOf(source: PageSource): number {
  const meta = readMeta(source);
  const file = { source, meta, ledger: new PageLedger(source, meta) };
  let pages = 0;
  for (const [key, value] of readTree(file, meta.free, compareTransactions)) {
    if (key.readBigUInt64LE(0) >= BigInt(meta.transaction)) continue;
    for (const [, count] of at(source, 0, () => parseFreeRuns(value))) pages += count;
  }
  return pages;
}

/**
 * The newer of the two meta pages. Transactions alternate between them, and the tree of the older one stays as it was
 * until the next commit: so both roots must carry the transaction of their page. A page whose number was changed
 * would otherwise silently take back the last commit.
 */
export function readMeta(source: PageSource): Meta {
  const first = metaAt(source, 0);
  const second = metaAt(source, first.pageBytes);
  const [older, newer] = first.transaction <= second.transaction ? [first, second] : [second, first];
  if (newer.pageBytes !== older.pageBytes) throw problemAt(source, 0, "the meta pages differ in page size");
  // A file that was just made has its only transaction on the second page.
  const isSingle = first.transaction === 0 && first.main.root === undefined;
  const isNext = newer.transaction === older.transaction + 1 && first.transaction % 2 === 0;
  if (!isSingle && !isNext) {
    const text = `transactions ${first.transaction} and ${second.transaction} cannot follow each other`;
    throw problemAt(source, 0, text);
  }
  checkRoot(source, newer, [newer.transaction]);
  // Where the engine failed to write a meta page, it put the old number back on the new roots.
  checkRoot(source, older, [older.transaction, ...(source.hasFailedCommit ? [older.transaction + 2] : [])]);
  return newer;
}

function metaAt(source: PageSource, offset: number): Meta {
  return at(source, offset, () => parseMeta(readBytes(source, offset, 168)));
}

function checkRoot(source: PageSource, meta: Meta, writers: readonly number[]): void {
  const { main, pageBytes, transaction } = meta;
  const { root } = main;
  if (root === undefined) return;
  at(source, root * pageBytes, () => {
    const page = parseTreePage(readBytes(source, root * pageBytes, pageBytes), root);
    if (writers.includes(page.transaction)) return;
    throw new PageProblem(
      `transaction ${transaction} names it as its root, and transaction ${page.transaction} wrote it`,
    );
  });
}

function compareKeys(a: Buffer, b: Buffer): number {
  return Buffer.compare(a, b);
}

/** Keys of the tree of free pages are transactions, as this machine writes a u64. */
function compareTransactions(a: Buffer, b: Buffer): number {
  if (a.length !== 8 || b.length !== 8) throw new PageProblem("a key of free pages that is no transaction");
  const difference = a.readBigUInt64LE(0) - b.readBigUInt64LE(0);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

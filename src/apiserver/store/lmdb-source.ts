import { PageProblem } from "./lmdb-pages.ts";
import { damaged } from "./lmdb-records.ts";
import type { StoreError } from "./store.ts";

/** Where the bytes come from; the adapter reads a file, tests a buffer. */
export interface PageSource {
  /** Named in messages. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Whether the process that wrote last noted that a commit had failed. */
  readonly hasFailedCommit: boolean;
  /** Valid until the next call. Never asked for bytes outside the file. */
  read(offset: number, bytes: number): Buffer;
}

export function readBytes(source: PageSource, offset: number, bytes: number): Buffer {
  if (offset + bytes > source.sizeBytes)
    throw new PageProblem(`the file ends before it, at ${source.sizeBytes}`);
  return source.read(offset, bytes);
}

/** Gives the problems that `work` finds their place in the file. */
export function at<T>(source: PageSource, offset: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PageProblem) throw problemAt(source, offset, error.message);
    throw error;
  }
}

export function problemAt(source: PageSource, offset: number, text: string): StoreError {
  return damaged(`${source.path} at offset ${offset}`, text);
}

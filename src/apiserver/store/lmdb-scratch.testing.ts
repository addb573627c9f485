import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { readMeta } from "./lmdb-file.ts";
import type { PageSource } from "./lmdb-source.ts";
import type { ObjectStore, StoredObject, StoreKey } from "./store.ts";

/** Directories of one test file, gone when it is done. */
export function scratch(): (name: string) => string {
  const root = mkdtempSync(join(tmpdir(), "mooring-store-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  let made = 0;
  return (name) => join(root, `${name}-${++made}`);
}

export function pod(name: string, namespace = "default"): StoreKey {
  return { resource: "pods", namespace, name };
}

export async function put(store: ObjectStore, key: StoreKey, text: string): Promise<StoredObject> {
  const current = store.get(key);
  const outcome =
    current === undefined
      ? await store.create(key, () => text)
      : await store.update(key, () => text, { expected: current.revision });
  if (outcome.kind !== "committed") throw new Error(`writing ${key.name}: ${outcome.kind}`);
  return outcome.object;
}

/** All that a reader can learn of a store. */
export function viewOf(store: Pick<ObjectStore, "revision" | "compactedRevision" | "scan" | "watch">) {
  const { revision, compactedRevision } = store;
  const watch = store.watch({ resource: "pods", afterRevision: compactedRevision }, () => undefined);
  const events = [];
  for (let event = watch.take(); event !== undefined; event = watch.take()) events.push(event);
  const first = [...store.scan({ resource: "pods", atRevision: compactedRevision })];
  return { revision, compactedRevision, first, events, last: [...store.scan({ resource: "pods" })] };
}

export function sourceOf(bytes: Buffer, { hasFailedCommit = false } = {}): PageSource {
  return {
    path: "data.mdb",
    sizeBytes: bytes.length,
    hasFailedCommit,
    read: (offset, count) => bytes.subarray(offset, offset + count),
  };
}

/** The pages of a store, without the room behind the last. */
export function bytesOf(directory: string): Buffer {
  const bytes = readFileSync(join(directory, "data.mdb"));
  return bytes.subarray(0, (readMeta(sourceOf(bytes, { hasFailedCommit: true })).lastPage + 1) * 4_096);
}

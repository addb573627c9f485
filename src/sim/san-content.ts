import type { Filesystem } from "../node/memory/tree.ts";

/** What is on a disk of the storage system, or was on it when a snapshot was cut. */
export interface SanContent {
  /** Undefined while it is blank. */
  content: Pick<Filesystem, "root" | "type" | "unsynced"> | undefined;
  /** Of one that is used without a filesystem. */
  readonly blocks: Map<string, string>;
  /** Of all nodes together, as if their kernels shared one cache. */
  readonly unsyncedBlocks: Map<string, string>;
}

export const newContent = (): SanContent => ({
  content: undefined,
  blocks: new Map(),
  unsyncedBlocks: new Map(),
});

/** In one instant: what has reached the disk by now. */
export function copyOf({ content, blocks, unsyncedBlocks }: SanContent): SanContent {
  const copied = content && {
    type: content.type,
    root: content.unsynced.durable(content.root),
    unsynced: content.unsynced.another(),
  };
  return {
    content: copied,
    blocks: new Map([...blocks, ...unsyncedBlocks]),
    unsyncedBlocks: new Map(),
  };
}

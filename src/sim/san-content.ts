import { cloneTree } from "../node/memory/disks.ts";
import type { Filesystem } from "../node/memory/tree.ts";

/** What is on a disk of the storage system, or was on it when a snapshot was cut. */
export interface SanContent {
  /** Undefined while it is blank. */
  content: Pick<Filesystem, "root" | "type"> | undefined;
  /** Of one that is used without a filesystem. */
  readonly blocks: Map<string, string>;
}

export const newContent = (): SanContent => ({ content: undefined, blocks: new Map() });

/** In one instant: what has reached the disk by now. */
export function copyOf({ content, blocks }: SanContent): SanContent {
  const copied = content && { type: content.type, root: cloneTree(content.root) };
  return { content: copied, blocks: new Map(blocks) };
}

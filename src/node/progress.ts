import { mark, type Context } from "./context.ts";
import type { Reconstruction } from "./restart/reconstruct.ts";
import { settleAttachability } from "./status.ts";

/** How far the start has come. */
export interface Progress {
  found: Reconstruction | undefined;
  /** What keeps the start from going on. */
  problem: string | undefined;
  podsKnown: boolean;
  /** What `volumesInUse` said when this process began. */
  earlier: ReadonlySet<string>;
  /** Disk, pods and the node's status were read: things may be taken down, and the list may be written. */
  synced: boolean;
}

export function newProgress(): Progress {
  return { found: undefined, problem: undefined, podsKnown: false, earlier: new Set(), synced: false };
}

/** True where this was what it waited for. */
export function trySync(context: Context, state: Progress): boolean {
  const node = context.inUse.node();
  if (state.synced || !state.found || !state.podsKnown || !node) return false;
  settleAttachability(context.world, context.inUse);
  state.earlier = new Set(node.status?.volumesInUse ?? []);
  state.synced = true;
  context.log.info("states synced", { volumes: context.world.volumes.size });
  context.inUse.changed();
  for (const volume of context.world.volumes.values()) mark(context, volume);
  return true;
}

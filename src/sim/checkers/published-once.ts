import type { World } from "../world.ts";

/** A cluster in which volumes are published. */
interface Publishing extends Pick<World, "storages" | "violate"> {
  /** Where a node's id is its name, there is none. */
  nodeOf?(nodeId: string): { readonly name: string } | undefined;
}

/** A volume for one node is never published on two. */
export function watchPublishes(world: Publishing): void {
  world.storages.on({
    published(volume) {
      // A node that its driver knows by a new id is the same machine.
      const ids = [...volume.publishedOn.keys()];
      const holders = [...new Set(ids.map((id) => world.nodeOf?.(id)?.name ?? id))];
      if (holders.length > 1 && !volume.shared)
        world.violate(`published-once: ${volume.handle} is published on ${holders.join(" and ")}`);
    },
  });
}

import type { World } from "../world.ts";

/** A volume for one node is never published on two. */
export function watchPublishes(world: World): void {
  world.storages.on({
    published(volume) {
      // A node that its driver knows by a new id is the same machine.
      const ids = [...volume.publishedOn.keys()];
      const holders = [...new Set(ids.map((id) => world.nodeOf(id)?.name ?? id))];
      if (!volume.shared && holders.length > 1)
        world.violate(`published-once: ${volume.handle} is published on ${holders.join(" and ")}`);
    },
    unpublished: () => undefined,
    deleted: () => undefined,
  });
}

import type { World } from "../world.ts";

/** At no instant two nodes write to one volume that is for one. */
export function watchWriters(world: World): void {
  world.data.onWrite((volume, { node }) => {
    if (volume.shared) return;
    for (const other of world.nodes.values())
      if (other.name !== node && other.containers.writes(volume.handle))
        world.violate(`writers: ${node} writes to ${volume.handle} while ${other.name} can`);
  });
}

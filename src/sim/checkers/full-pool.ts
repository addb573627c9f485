import type { World } from "../world.ts";

/** Calls that give something back: on a full disk nothing else makes room. */
const LETS_GO =
  /\/(NodeUnpublishVolume|NodeUnstageVolume|ControllerUnpublishVolume|DeleteVolume|DeleteSnapshot)$/;
/** As the pool's filesystem says it; a refusal that a fault made up says something else. */
const NO_ROOM = "no space left on device";

/** On a pool without a free block everything that lets go of a volume works. */
export function watchFullPool(world: World): void {
  world.onDriverCall(({ path, outcome }) => {
    if (LETS_GO.test(path) && outcome.includes(NO_ROOM)) world.violate(`full-pool: ${path}: ${outcome}`);
  });
}

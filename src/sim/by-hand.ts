import type { Objects } from "./objects.ts";
import type { Storages, StoredVolume } from "./storage.ts";

/**
 * What people with kubectl did to VolumeAttachments. Somebody who deletes one takes the disk from its node, whoever uses it
 * there: what follows at once is his doing, and checkers blame nobody else for it.
 */
export class ByHand {
  /** Uids of VolumeAttachments that were deleted by hand, whoever made them. */
  readonly letGo = new Set<string>();
  readonly #taken = new Set<string>();
  readonly #objects: Objects;

  /** `nodeOf` tells the name of a node by an id under which the storage system knows it. */
  constructor(objects: Objects, storages: Storages, nodeOf: (nodeId: string) => string | undefined) {
    this.#objects = objects;
    const keyOf = ({ handle }: StoredVolume, nodeId: string) => `${handle} ${nodeOf(nodeId)}`;
    storages.on({
      published: (volume, nodeId) => void this.#taken.delete(keyOf(volume, nodeId)),
      unpublished: (volume, nodeId) => {
        if (this.#isLetGo(volume, nodeOf(nodeId))) this.#taken.add(keyOf(volume, nodeId));
      },
    });
  }

  /** Whether the disk is off the node because somebody deleted its VolumeAttachment, and was not put back yet. */
  hasTaken({ handle }: Pick<StoredVolume, "handle">, node: string): boolean {
    return this.#taken.has(`${handle} ${node}`);
  }

  #isLetGo({ handle }: StoredVolume, node: string | undefined): boolean {
    return this.#objects.all("volumeattachments.storage.k8s.io").some(({ metadata, spec }) => {
      if (spec.nodeName !== node || !this.letGo.has(metadata.uid ?? "")) return false;
      const recorded = metadata.annotations?.["mooring.dev/volume-handle"];
      const volume = this.#objects.get("persistentvolumes", spec.source.persistentVolumeName ?? "");
      return (recorded ?? volume?.spec?.csi?.volumeHandle) === handle;
    });
  }
}

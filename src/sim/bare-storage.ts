import { Storages, type StoredVolume } from "./storage.ts";

interface BareVolume extends StoredVolume {
  readonly publishedOn: Map<string, { readonly readonly: boolean }>;
}

/**
 * Storage without disks, which has every volume that it is asked for, by whatever name: which one is published on which node. It
 * refuses nothing, also not what would cost data, so that a checker sees what a controller did instead of what a clever
 * backend prevented. Who listens is told of every call after it was carried out, also of one that changed nothing.
 */
export class BareStorage extends Storages {
  /** `publish n1`, in the order of arrival. */
  readonly calls: string[] = [];
  readonly #volumes = new Map<string, BareVolume>();
  readonly #isShared: (handle: string) => boolean;

  constructor(isShared: (handle: string) => boolean = () => false) {
    super();
    this.#isShared = isShared;
  }

  publish(handle: string, node: string): void {
    const volume = this.#volume(handle);
    volume.publishedOn.set(node, { readonly: false });
    this.calls.push(`publish ${node}`);
    this.published(volume, node);
  }

  unpublish(handle: string, node: string): void {
    const volume = this.#volume(handle);
    volume.publishedOn.delete(node);
    this.calls.push(`unpublish ${node}`);
    this.unpublished(volume, node);
  }

  publishedOn(handle: string): readonly string[] {
    return [...(this.volumes.get(handle)?.publishedOn.keys() ?? [])].sort();
  }

  #volume(handle: string): BareVolume {
    const known = this.#volumes.get(handle);
    if (known !== undefined) return known;
    const isShared = this.#isShared;
    const publishedOn: BareVolume["publishedOn"] = new Map();
    const volume: BareVolume = {
      ...{ driver: "bare", handle, publishedOn },
      get shared() {
        return isShared(handle);
      },
      isReachedFrom: (nodeIds) => nodeIds.some((id) => publishedOn.has(id)),
    };
    this.#volumes.set(handle, volume);
    this.add(volume);
    return volume;
  }
}

import type { Disk } from "../node/memory/disks.ts";
import type { Mounted } from "../node/memory/tree.ts";

/** A volume as its storage system knows it, whichever that is: what checkers and workloads ask. */
export interface StoredVolume {
  readonly driver: string;
  readonly handle: string;
  /** Whether several nodes may have it at once, by the capability it was made with. */
  readonly shared: boolean;
  /** Node ids it can be reached from, read-only or not. */
  readonly publishedOn: ReadonlyMap<string, { readonly readonly: boolean }>;
  /** Whether what a workload writes on a machine with these ids still reaches it. */
  isReachedFrom(nodeIds: readonly string[]): boolean;
}

export interface StorageEvents {
  published(volume: StoredVolume, nodeId: string): void;
  unpublished(volume: StoredVolume, nodeId: string): void;
  deleted(volume: StoredVolume): void;
}

/** All storage systems of a cluster together: whose disk is mounted somewhere, and what becomes of volumes. */
export class Storages {
  readonly volumes = new Map<string, StoredVolume>();
  readonly #byDisk = new WeakMap<Disk, StoredVolume>();
  readonly #events: Partial<StorageEvents>[] = [];

  on(events: Partial<StorageEvents>): void {
    this.#events.push(events);
  }

  add(volume: StoredVolume): void {
    this.volumes.set(volume.handle, volume);
  }

  /** A kernel sees the volume as this disk. */
  shows(disk: Disk, volume: StoredVolume): void {
    this.#byDisk.set(disk, volume);
  }

  /** The volume behind a mount, of a filesystem or of a device node; also one that is deleted by now. */
  at({ root, filesystem }: Mounted): StoredVolume | undefined {
    const disk = diskOf({ root, filesystem });
    return disk && this.of(disk);
  }

  /** The volume that a kernel sees as this disk. */
  of(disk: Disk): StoredVolume | undefined {
    return this.#byDisk.get(disk);
  }

  published(volume: StoredVolume, nodeId: string): void {
    for (const events of this.#events) events.published?.(volume, nodeId);
  }

  unpublished(volume: StoredVolume, nodeId: string): void {
    for (const events of this.#events) events.unpublished?.(volume, nodeId);
  }

  deleted(volume: StoredVolume): void {
    this.volumes.delete(volume.handle);
    for (const events of this.#events) events.deleted?.(volume);
  }
}

export function diskOf({ root, filesystem }: Pick<Mounted, "root" | "filesystem">): Disk | undefined {
  return root.device === undefined ? filesystem.disk : root.device.disk;
}

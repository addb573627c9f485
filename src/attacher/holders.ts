import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import { toKey } from "../kube/object.ts";
import { BY_HANDLE, BY_VOLUME, type AttacherCaches } from "./caches.ts";
import { AttacherError } from "./errors.ts";
import { recordedNodeId } from "./node-id.ts";
import { detachSource, volumeNameOf } from "./source.ts";

/** An attachment that has a volume, or may have it. */
export interface Holder {
  readonly attachment: string;
  readonly node: string;
  readonly deleting: boolean;
}

/** Another attachment of the same volume on the same node. */
export interface Twin {
  readonly attachment: string;
  /** Being deleted, or already in work for that. */
  readonly detaching: boolean;
  /** With our finalizer: its deletion comes to us. */
  readonly held: boolean;
}

/**
 * Whether the volume may be on the attachment's node. The finalizer says so from before the first publish until after
 * the last unpublish. A status alone is believed too, unless the object is on its way out: then the finalizer, which goes
 * only after an unpublish, has gone already.
 */
export function mayBeAttached(attachment: VolumeAttachment, finalizer: string): boolean {
  if (hasFinalizer(attachment, finalizer)) return true;
  return attachment.status?.attached === true && !attachment.metadata.deletionTimestamp;
}

/**
 * Who else may have a volume: the last line of defence against a second writer. The attach/detach controller decides who
 * gets a volume; here is only seen to it that two attachments of one single-node volume, by whatever mistake they came to
 * be, do not both reach the driver.
 *
 * A finalizer that is being written counts from the moment it is asked for. One whose write got no answer counts until the
 * attachment is seen with it, or is gone. Bound of these claims: attachments that exist; usually those in work.
 */
export class Holders {
  readonly #caches: AttacherCaches;
  readonly #driver: { readonly name: string; readonly finalizer: string };
  readonly #newest: (cached: VolumeAttachment) => VolumeAttachment | undefined;
  readonly #claims = new Set<string>();

  constructor(
    caches: AttacherCaches,
    driver: { readonly name: string; readonly finalizer: string },
    newest: (cached: VolumeAttachment) => VolumeAttachment | undefined,
  ) {
    this.#caches = caches;
    this.#driver = driver;
    this.#newest = newest;
  }

  /** On other nodes than its own. */
  elsewhere(attachment: VolumeAttachment, volume: PersistentVolume | undefined): readonly Holder[] {
    const { finalizer } = this.#driver;
    const found = new Map<string, Holder>();
    for (const cached of this.sharing(attachment, volume)) {
      const other = this.#newest(cached);
      const name = cached.metadata.name ?? "";
      if (other === undefined || other.spec.nodeName === attachment.spec.nodeName) continue;
      if (!mayBeAttached(other, finalizer) && !this.#claims.has(name)) continue;
      const deleting = Boolean(other.metadata.deletionTimestamp);
      found.set(name, { attachment: name, node: other.spec.nodeName, deleting });
    }
    return [...found.values()];
  }

  /** On the same node, under the same id of it: publish and unpublish of one are those of the other. */
  twins(
    attachment: VolumeAttachment,
    volume: PersistentVolume | undefined,
    isDetaching: (name: string) => boolean,
  ): readonly Twin[] {
    const handle = handleOf(attachment, volume);
    const found = new Map<string, Twin>();
    for (const cached of this.sharing(attachment, volume)) {
      const other = this.#newest(cached);
      const name = cached.metadata.name ?? "";
      if (other === undefined || other.spec.nodeName !== attachment.spec.nodeName) continue;
      if (this.#handleOf(other) !== handle || isUnderOtherId(attachment, other)) continue;
      const detaching = Boolean(other.metadata.deletionTimestamp) || isDetaching(name);
      const held = hasFinalizer(other, this.#driver.finalizer) || this.#claims.has(name);
      found.set(name, { attachment: name, detaching, held });
    }
    return [...found.values()];
  }

  #handleOf(attachment: VolumeAttachment): string | undefined {
    const name = volumeNameOf(attachment);
    const volume = name === "" ? undefined : this.#caches.volumes.get(toKey({ name }));
    return handleOf(attachment, volume);
  }

  /** Attachments of the same volume, whichever PersistentVolume or inline spec they know it by. */
  *sharing(attachment: VolumeAttachment, volume: PersistentVolume | undefined): Iterable<VolumeAttachment> {
    const { attachments } = this.#caches;
    const name = volumeNameOf(attachment);
    const handle = handleOf(attachment, volume);
    const byName = name === "" ? [] : this.#byVolume(name, handle);
    const byHandle = handle === undefined ? [] : attachments.byIndex(BY_HANDLE, handle);
    // In work for an attach: the cache may not show yet which handle it was recorded with.
    const claimed = [...this.#claims]
      .flatMap((claim) => attachments.get(toKey({ name: claim })) ?? [])
      .filter((other) => handle !== undefined && this.#handleOf(other) === handle);
    for (const other of [...byName, ...byHandle, ...this.#byOtherVolumes(name, handle), ...claimed]) {
      const same = other.metadata.name === attachment.metadata.name;
      if (!same && other.spec.attacher === this.#driver.name) yield other;
    }
  }

  /**
   * Of the same PersistentVolume, unless it was attached as another disk, which that one was until it was replaced. One in work
   * counts either way: it may be about to be recorded with the handle of today.
   */
  #byVolume(name: string, handle: string | undefined): readonly VolumeAttachment[] {
    return this.#caches.attachments
      .byIndex(BY_VOLUME, name)
      .filter(
        (other) =>
          handle === undefined ||
          this.#claims.has(other.metadata.name ?? "") ||
          [undefined, handle].includes(this.#handleOf(other)),
      );
  }

  /** Of other PersistentVolumes with that handle, unless it was attached as something else. */
  #byOtherVolumes(name: string, handle: string | undefined): readonly VolumeAttachment[] {
    if (handle === undefined) return [];
    const { attachments, volumes } = this.#caches;
    return volumes
      .byIndex(BY_HANDLE, handle)
      .filter(({ metadata }) => metadata.name !== name)
      .flatMap(({ metadata }) => attachments.byIndex(BY_VOLUME, metadata.name ?? ""))
      .filter((other) => [undefined, handle].includes(this.#handleOf(other)));
  }

  /** Right before its finalizer is asked for, in the same tick in which nobody else was found. */
  claim(attachment: VolumeAttachment): void {
    this.#claims.add(attachment.metadata.name ?? "");
  }

  /** The finalizer is there for all to see, or certainly was not written. */
  unclaim(name: string): void {
    this.#claims.delete(name);
  }
}

/** The driver was registered anew between the two: what is published under one id stays when the other's is unpublished. */
function isUnderOtherId(attachment: VolumeAttachment, other: VolumeAttachment): boolean {
  const [id, otherId] = [recordedNodeId(attachment), recordedNodeId(other)];
  return id !== undefined && otherId !== undefined && id !== otherId;
}

function handleOf(attachment: VolumeAttachment, volume: PersistentVolume | undefined): string | undefined {
  try {
    return detachSource(attachment, volume).volumeHandle;
  } catch (error) {
    // What it names cannot be told; it will not get as far as a publish either.
    if (error instanceof AttacherError) return undefined;
    throw error;
  }
}

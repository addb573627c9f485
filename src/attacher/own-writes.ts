import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { compareVersions, type KubeObject } from "../kube/object.ts";

/**
 * Our own writes, until the cache shows them. Without this, an event that was on its way while we wrote makes the next
 * pass believe the state before: it would unpublish what was just unpublished (external-attacher #587).
 *
 * Bound: one attachment a name, dropped as soon as the cache is as new or the object is gone; in all, what was written
 * within the lag of one watch.
 */
export class OwnWrites {
  readonly #written = new Map<string, VolumeAttachment | { readonly goneUid: string }>();

  note(attachment: VolumeAttachment): void {
    this.#written.set(attachment.metadata.name ?? "", attachment);
  }

  /** The server says that this one is no more. */
  noteGone({ metadata }: VolumeAttachment): void {
    this.#written.set(metadata.name ?? "", { goneUid: metadata.uid ?? "" });
  }

  /** The cache's object, or what we know to be newer; undefined for one that is known to be gone. */
  newest(cached: VolumeAttachment): VolumeAttachment | undefined {
    const name = cached.metadata.name ?? "";
    const written = this.#written.get(name);
    if (written === undefined) return cached;
    if ("goneUid" in written) {
      if (written.goneUid === cached.metadata.uid) return undefined;
    } else if (written.metadata.uid === cached.metadata.uid && isNewer(written, cached)) {
      return written;
    }
    this.#written.delete(name);
    return cached;
  }

  /** Whether this is what we wrote, or older: the pass that wrote it has seen all of it in the answer. */
  isEcho({ metadata }: VolumeAttachment): boolean {
    const written = this.#written.get(metadata.name ?? "");
    if (written === undefined || "goneUid" in written) return false;
    return written.metadata.uid === metadata.uid && !isNewer({ metadata }, written);
  }

  forget(name: string): void {
    this.#written.delete(name);
  }
}

/** Versions that cannot be compared are taken for newer: a look too many costs less than one too few. */
export function isNewer(a: KubeObject, b: KubeObject): boolean {
  const order = compareVersions(a.metadata.resourceVersion ?? "", b.metadata.resourceVersion ?? "");
  return order === undefined || order > 0;
}

import type { Placement } from "./world.ts";

/**
 * Placements by what they wait for, where an event about it does not lead to them by itself: a VolumeAttachment that has
 * their name and stands for something else, perhaps on another node; and another node's part in the same disk, which may be
 * known by another PersistentVolume with other access modes. Without this they would wait for the sweep.
 *
 * Bound: the placements that wait so. Each is here under the last wait it was given, until that ends or it is forgotten.
 */
export class Waiters {
  readonly #byKey = new Map<string, Set<Placement>>();
  readonly #keys = new Map<Placement, string>();

  /** To be called for every look at a placement, once its wait is known. */
  follow(placement: Placement): void {
    const key = keyOf(placement);
    if (this.#keys.get(placement) === key) return;
    this.forget(placement);
    if (key === undefined) return;
    this.#keys.set(placement, key);
    this.#byKey.set(key, (this.#byKey.get(key) ?? new Set()).add(placement));
  }

  forget(placement: Placement): void {
    const key = this.#keys.get(placement);
    if (key === undefined) return;
    this.#keys.delete(placement);
    const all = this.#byKey.get(key);
    all?.delete(placement);
    if (all?.size === 0) this.#byKey.delete(key);
  }

  onAttachment(name: string): readonly Placement[] {
    return [...(this.#byKey.get(attachmentKey(name)) ?? [])];
  }

  onVolume(volume: string): readonly Placement[] {
    return [...(this.#byKey.get(volumeKey(volume)) ?? [])];
  }

  /** VolumeAttachments that somebody waits for; nearly always none. */
  *attachments(): Generator<string> {
    for (const key of this.#byKey.keys()) if (key.startsWith(ATTACHMENT)) yield key.slice(ATTACHMENT.length);
  }

  get size(): number {
    return this.#keys.size;
  }
}

const ATTACHMENT = "VolumeAttachment ";
const attachmentKey = (name: string) => `${ATTACHMENT}${name}`;
const volumeKey = (name: string) => `Volume ${name}`;

function keyOf({ waiting, volume }: Placement): string | undefined {
  if (waiting?.object.kind === "VolumeAttachment") return attachmentKey(waiting.object.name);
  return waiting?.reason === "held-by-other-node" ? volumeKey(volume.name) : undefined;
}

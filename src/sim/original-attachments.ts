import type { Caches } from "../attach-detach/caches.ts";
import type { Clock } from "../base/clock.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { ObjectKey } from "../kube/object.ts";
import { standsFor } from "../volumes/attachment-identity.ts";
import { splitCsiVolume, splitVolumeName, volumeAttachmentName } from "../volumes/names.ts";
import { specName } from "../volumes/spec.ts";
import type { DesiredVolume, Place } from "./original-desired.ts";

const POLL_MS = 1_000;
/** How long an attacher may take. */
const WAIT_MS = 120_000;

export interface OriginalAttachmentsDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly caches: Caches;
}

/**
 * How the original controller attaches and detaches a CSI volume: it makes or deletes the VolumeAttachment of the name that volume and
 * node give, and polls its cache until an attacher has done its part. One of that name for something else is not taken for the
 * volume's, and a deletion says which one is meant: W-7 is left out, with which it takes disks from whoever has them.
 */
export class OriginalAttachments {
  readonly #deps: OriginalAttachmentsDeps;

  constructor(deps: OriginalAttachmentsDeps) {
    this.#deps = deps;
  }

  /** As the cache has it, or the server where the cache has none; undefined where there is none. */
  async find(place: Place, signal: AbortSignal): Promise<VolumeAttachment | undefined> {
    const name = nameOf(place);
    return this.#cached(name) ?? this.#deps.client.get(volumeAttachments, { name }, { signal }).catch(gone);
  }

  cached(place: Place): VolumeAttachment | undefined {
    return this.#cached(nameOf(place));
  }

  async attach(desired: DesiredVolume, signal: AbortSignal): Promise<void> {
    const name = nameOf(desired);
    if (this.#cached(name) === undefined) await this.#create(name, desired, signal);
    await this.#until(signal, () => {
      const attachment = this.#cached(name);
      if (attachment === undefined) return false;
      this.#check(attachment, desired);
      const { metadata, status } = attachment;
      if (metadata.deletionTimestamp !== undefined) throw new Error("volume attachment is being deleted");
      if (status?.attached === true) return true;
      if (status?.attachError !== undefined) throw new Error(status.attachError.message);
      return false;
    });
  }

  async detach(place: Place, signal: AbortSignal): Promise<void> {
    const found = await this.find(place, signal);
    if (found === undefined) return;
    this.#check(found, place);
    const { name = "", uid = "" } = found.metadata;
    const { client } = this.#deps;
    await client.delete(volumeAttachments, { name }, { preconditions: { uid }, signal }).catch(gone);
    await this.#until(signal, () => {
      const left = this.#cached(name);
      if (left === undefined || left.metadata.uid !== uid) return true;
      if (left.status?.detachError !== undefined) throw new Error(left.status.detachError.message);
      return false;
    });
  }

  async #create(name: string, { volume, node, spec }: DesiredVolume, signal: AbortSignal): Promise<void> {
    const source = { persistentVolumeName: specName(spec) };
    const object = {
      metadata: { name },
      spec: { attacher: sourceOf(volume).driver, nodeName: node, source },
    };
    await this.#deps.client.create(volumeAttachments, object, { signal }).catch((error: unknown) => {
      if (!isKubeError(error, "AlreadyExists")) throw error;
    });
  }

  #check(attachment: VolumeAttachment, { volume, node }: Place): void {
    const volumeNamed = (name: string) => this.#deps.caches.volumes.get(name as ObjectKey);
    if (!standsFor(attachment, { source: sourceOf(volume), node }, volumeNamed))
      throw new Error(`VolumeAttachment ${attachment.metadata.name} is for something else`);
  }

  #cached(name: string): VolumeAttachment | undefined {
    return this.#deps.caches.attachments.get(name as ObjectKey);
  }

  async #until(signal: AbortSignal, isDone: () => boolean): Promise<void> {
    const { clock } = this.#deps;
    const startedMs = clock.now();
    do {
      await clock.sleep(POLL_MS, signal);
      if (isDone()) return;
    } while (clock.now() - startedMs < WAIT_MS);
    throw new Error("timed out waiting for external-attacher");
  }
}

/** What is not there any more is no failure. */
function gone(error: unknown): undefined {
  if (!isKubeError(error, "NotFound")) throw error;
  return undefined;
}

/** Driver and handle of a volume; of one that is not a CSI driver's, nothing is known here. */
function sourceOf(volume: Place["volume"]) {
  const source = splitCsiVolume(splitVolumeName(volume)?.pluginVolume ?? "");
  if (source === undefined) throw new Error(`${volume} is not the name of a CSI volume`);
  return source;
}

function nameOf({ volume, node }: Place): string {
  return volumeAttachmentName(sourceOf(volume), node);
}

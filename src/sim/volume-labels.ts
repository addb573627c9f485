import { csiVolumeName, volumeAttachmentName, type VolumeName } from "../volumes/names.ts";
import type { Labels } from "./request-lines.ts";

interface CsiVolume {
  readonly driver: string;
  readonly volumeHandle: string;
}

/** What a test calls its volumes, and what the API does: unique names and names of VolumeAttachments. */
export class VolumeLabels implements Labels {
  readonly #volumes = new Map<string, CsiVolume>();
  readonly #nodes = new Set<string>();

  addVolume(label: string, volume: CsiVolume): void {
    this.#volumes.set(label, volume);
  }

  addNode(name: string): void {
    this.#nodes.add(name);
  }

  handleOf(label: string): string | undefined {
    return this.#volumes.get(label)?.volumeHandle;
  }

  /** A label that is none is taken for a unique name. */
  uniqueName(label: string): VolumeName {
    const volume = this.#volumes.get(label);
    return volume === undefined ? (label as VolumeName) : csiVolumeName(volume);
  }

  attachmentName(label: string, node: string): string {
    const volume = this.#volumes.get(label);
    if (volume === undefined) throw new Error(`no volume "${label}" in this world`);
    return volumeAttachmentName(volume, node);
  }

  driverOf(label: string): string {
    return this.#volumes.get(label)?.driver ?? "";
  }

  get drivers(): readonly string[] {
    return [...new Set([...this.#volumes.values()].map(({ driver }) => driver))];
  }

  volume(name: string): string {
    for (const [label, volume] of this.#volumes) if (csiVolumeName(volume) === name) return label;
    return name;
  }

  attachment(name: string): string {
    for (const [label, volume] of this.#volumes)
      for (const node of this.#nodes)
        if (volumeAttachmentName(volume, node) === name) return `${label}@${node}`;
    return name;
  }
}

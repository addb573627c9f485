import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { mayMultiAttach } from "../volumes/access.ts";
import {
  isOwnAttachmentName,
  splitCsiVolume,
  splitVolumeName,
  volumeAttachmentName,
  type NodeName,
  type VolumeName,
} from "../volumes/names.ts";
import { specName } from "../volumes/spec.ts";
import { volumeNamedBy, type AttachmentIdentity } from "../volumes/attachment-identity.ts";
import { attachmentOnlyName, mayUse } from "./node-view.ts";
import { NO_FOREIGN, type ForeignHold, type Placement, type World } from "./world.ts";

/**
 * VolumeAttachments that are not ours, and those of ours whose PersistentVolume is gone. Neither has a place in the world
 * by its name, yet each may have a volume on its node:
 * - what it says it stands for holds that volume there (`Placement.foreign`);
 * - a name like ours also holds the volume whose digest it is: of a PersistentVolume that was renamed, nothing else is left;
 * - one that nobody can read holds whatever its node uses of its driver.
 *
 * The last two cannot be found under the volume, so whoever wants a volume asks here: a digest for each node that has such
 * an attachment of the driver, which is nearly always none.
 */
export class ForeignAttachments {
  readonly #world: World;
  /** By name. Bound: the foreign ones that exist. */
  readonly #records = new Map<string, ForeignRecord>();
  /** By driver and node. Bound: attachments whose volume their PersistentVolume does not tell. */
  readonly #unread = new Map<string, Map<NodeName, Map<string, Trace>>>();
  /** Names by the PersistentVolume they miss, to be read again when it comes. */
  readonly #missing = new Map<string, Set<string>>();
  readonly #waiting = new Set<Placement>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Takes in one that is there; answers what it holds now, and whether it is new. */
  seen(attachment: VolumeAttachment, identity: AttachmentIdentity): ForeignChange {
    const { name = "", uid } = attachment.metadata;
    const node = attachment.spec.nodeName as NodeName;
    this.#rememberMissing(attachment, identity);
    this.#trace(attachment, identity);
    const before = this.#records.get(name);
    if (identity.kind !== "foreign") return this.#drop(name);
    // A PersistentVolume that went takes nothing off the node: what was known of this very object stays true.
    const known = before?.uid === uid ? before?.volumes : undefined;
    const volumes = [...new Set([...identity.volumes, ...(known ?? [])])];
    const shown = volumes.length === 0 ? [attachmentOnlyName(name)] : volumes;
    const placements = shown.map((volume) => this.#world.placement(volume, node));
    const left = (before?.placements ?? []).filter((placement) => !placements.includes(placement));
    for (const placement of left) release(this.#world, placement, name);
    const hold = holdOf(attachment, identity);
    for (const placement of placements) replace(placement, hold);
    this.#records.set(name, { uid, volumes, placements });
    return { placements, left, isNew: before?.uid !== uid };
  }

  /** Whether this very object was seen to be somebody else's. */
  knows({ metadata: { name = "", uid } }: VolumeAttachment): boolean {
    return uid !== undefined && this.#records.get(name)?.uid === uid;
  }

  gone(attachment: VolumeAttachment): ForeignChange {
    const { metadata, spec } = attachment;
    const name = metadata.name ?? "";
    this.#forgetTrace(spec.attacher, spec.nodeName as NodeName, name);
    this.#found(volumeNamedBy(attachment), name);
    return this.#drop(name);
  }

  /** On other nodes: attachments that may have this volume, though they are not found under it. */
  tracesOf({ volume, node }: Placement): readonly TracedHolder[] {
    const csi = this.#unread.size === 0 ? undefined : csiOf(volume.name);
    const found: TracedHolder[] = [];
    for (const [name, names] of this.#unread.get(csi?.driver ?? "") ?? []) {
      if (csi === undefined || name === node.name) continue;
      const digest = volumeAttachmentName(csi, name);
      if (names.has(digest)) found.push({ node: name, attachment: digest });
      const state = this.#world.nodes.get(name);
      const uses = state !== undefined && mayUse(state, volume.name);
      for (const [attachment, trace] of names)
        if (trace === "use" && uses) found.push({ node: name, attachment });
    }
    return found;
  }

  /** The placement of an attachment of ours that nobody could read, which turns out to be this volume's. */
  unreadTwin({ volume, node }: Placement): Placement | undefined {
    const csi = this.#unread.size === 0 ? undefined : csiOf(volume.name);
    const names = csi && this.#unread.get(csi.driver)?.get(node.name);
    if (csi === undefined || names === undefined) return undefined;
    const name = volumeAttachmentName(csi, node.name);
    return names.has(name) ? this.#world.find(attachmentOnlyName(name), node.name) : undefined;
  }

  /** It waits for something that only this index knows. */
  waits(placement: Placement): void {
    this.#waiting.add(placement);
  }

  /** Whoever waited; each asks again. */
  takeWaiting(): readonly Placement[] {
    const all = [...this.#waiting];
    this.#waiting.clear();
    return all;
  }

  hasUnread(): boolean {
    return this.#unread.size > 0;
  }

  /** The PersistentVolume that these name is gone; when one of that name comes it may be another disk. */
  volumeGone(volume: string, attachments: Iterable<string>): void {
    for (const name of attachments) this.#miss(volume, name);
  }

  /** Attachments to be read again, now that a PersistentVolume of that name is there. */
  takeMissing(volume: string): readonly string[] {
    const names = [...(this.#missing.get(volume) ?? [])];
    this.#missing.delete(volume);
    return names;
  }

  #drop(name: string): ForeignChange {
    const left = this.#records.get(name)?.placements ?? [];
    this.#records.delete(name);
    for (const placement of left) release(this.#world, placement, name);
    return { placements: [], left, isNew: false };
  }

  #rememberMissing(attachment: VolumeAttachment, identity: AttachmentIdentity): void {
    const volume = volumeNamedBy(attachment);
    if (volume === "" || identity.kind === "own") return;
    if (identity.kind === "own-unread" || identity.spec === undefined)
      this.#miss(volume, attachment.metadata.name ?? "");
  }

  #miss(volume: string, name: string): void {
    this.#missing.set(volume, (this.#missing.get(volume) ?? new Set()).add(name));
  }

  #found(volume: string, name: string): void {
    const names = this.#missing.get(volume);
    if (names?.delete(name) && names.size === 0) this.#missing.delete(volume);
  }

  #trace({ metadata, spec }: VolumeAttachment, identity: AttachmentIdentity): void {
    const [name, node] = [metadata.name ?? "", spec.nodeName as NodeName];
    const trace = traceOf(name, identity);
    if (trace === undefined) {
      this.#forgetTrace(spec.attacher, node, name);
      return;
    }
    const nodes = this.#unread.get(spec.attacher) ?? new Map<NodeName, Map<string, Trace>>();
    const names = nodes.get(node) ?? new Map<string, Trace>();
    this.#unread.set(spec.attacher, nodes.set(node, names.set(name, trace)));
  }

  #forgetTrace(driver: string, node: NodeName, name: string): void {
    const nodes = this.#unread.get(driver);
    const names = nodes?.get(node);
    if (nodes === undefined || !names?.delete(name)) return;
    if (names.size === 0) nodes.delete(node);
    if (nodes.size === 0) this.#unread.delete(driver);
  }
}

interface ForeignRecord {
  readonly uid: string | undefined;
  readonly volumes: readonly VolumeName[];
  readonly placements: readonly Placement[];
}

/** What one word about a VolumeAttachment changed. */
export interface ForeignChange {
  /** What it holds now. */
  readonly placements: readonly Placement[];
  /** What it held before and does no longer. */
  readonly left: readonly Placement[];
  readonly isNew: boolean;
}

/** A node that may have a volume by an attachment which does not say so. */
export interface TracedHolder {
  readonly node: NodeName;
  readonly attachment: string;
}

/** How the volume of an attachment can be told: by the digest in its name, or by what its node uses. */
type Trace = "digest" | "use";

function traceOf(name: string, identity: AttachmentIdentity): Trace | undefined {
  if (identity.kind === "own") return undefined;
  if (isOwnAttachmentName(name)) return "digest";
  return identity.kind === "foreign" && identity.volumes.length === 0 ? "use" : undefined;
}

function holdOf(
  { metadata, status }: VolumeAttachment,
  { spec }: Extract<AttachmentIdentity, { kind: "foreign" }>,
): ForeignHold {
  return {
    name: metadata.name ?? "",
    attached: status?.attached === true,
    deleting: Boolean(metadata.deletionTimestamp),
    persistentVolume: spec === undefined ? "" : specName(spec),
    singleNode: spec !== undefined && !mayMultiAttach(spec),
  };
}

function replace(placement: Placement, hold: ForeignHold): void {
  placement.foreign = [...placement.foreign.filter(({ name }) => name !== hold.name), hold];
}

function release(world: World, placement: Placement, name: string): void {
  const left = placement.foreign.filter((hold) => hold.name !== name);
  placement.foreign = left.length === 0 ? NO_FOREIGN : left;
  world.tidy(placement);
}

function csiOf(volume: VolumeName): { driver: string; volumeHandle: string } | undefined {
  const parts = splitVolumeName(volume);
  return parts?.plugin === "kubernetes.io/csi" ? splitCsiVolume(parts.pluginVolume) : undefined;
}

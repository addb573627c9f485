import type { CSINode } from "../kube/api/csi-node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { JsonPatchOperation, Patch } from "../kube/client/client.ts";
import { addFinalizerPatch, hasFinalizer, removeFinalizerPatch } from "../kube/finalizers.ts";
import { textMap, toVolumeCapability, type VolumeCapability } from "./capability.ts";
import type { DriverFacts, PublishRequest, UnpublishRequest } from "./driver.ts";
import { AttacherError } from "./errors.ts";
import { refuseReplaced } from "./identity.ts";
import type { Holder, Twin } from "./holders.ts";
import { finalizerOf, NODE_ID_ANNOTATION } from "./names.ts";
import { attachNodeId, detachNodeId, recordedNodeId } from "./node-id.ts";
import { attachedPatch, detachedPatch, holdPatch } from "./patches.ts";
import { recordAnnotations } from "./record.ts";
import type { SecretRef, SecretValues } from "./secrets.ts";
import { attachSource, detachSource, namedBy, secretRefOf } from "./source.ts";

/**
 * One attachment: what is known -> the next step. Pure, so that the order of writes and calls, on which data depends,
 * can be read here and tested alone:
 *
 *   attach: hold the volume, fetch the secret, hold the attachment, publish, report; before the hold an unpublish where an
 *           earlier try used another id of the node
 *   detach: fetch the secret, unpublish, let the attachment go, report; without the unpublish where another attachment
 *           keeps the volume on the node
 *
 * Nothing is sent to the driver before the attachment carries our finalizer, because only that makes sure that a deletion
 * comes to us. The finalizer goes only after an unpublish succeeded; it goes before the status, because the other order
 * lets the event of the first write start a second unpublish.
 *
 * What the shell did since the key was taken is in `done`; everything else is read from objects, so a process that is
 * killed between any two steps begins again at a step that bears repeating.
 */
export interface AttachmentView {
  readonly attachment: VolumeAttachment;
  /** The PersistentVolume it names, if that exists; another one of the disk where an attach has begun with it (`renamed.ts`). */
  readonly volume: PersistentVolume | undefined;
  readonly node: CSINode | undefined;
  readonly driver: DriverFacts;
  readonly defaultFsType: string;
  /** The driver's list of volumes contradicts the status: act although nothing seems to be left to do. */
  readonly forced: boolean;
  /** Attachments of the same volume that are, or may be, attached to other nodes. */
  readonly holders: readonly Holder[];
  /** Attachments of the same volume on the same node. */
  readonly twins: readonly Twin[];
  readonly done: Done;
}

export interface Done {
  readonly secrets?: SecretValues;
  readonly published?: Readonly<Record<string, string>>;
  readonly unpublished?: true;
  /** From this id of the node, which an earlier try of the attach used. */
  readonly withdrawn?: string;
  /** Read from the server: no other attachment keeps the volume on the node; or which one does. */
  readonly twins?: "none" | { readonly attachment: string };
  /** The finalizer was taken away by us: the status is told, whatever it says. */
  readonly released?: true;
  readonly reported?: true;
}

export type Step =
  | { readonly kind: "nothing" }
  /** Cannot be done now. The error goes into the status; a change of what it names brings the key back. */
  | { readonly kind: "refuse"; readonly error: AttacherError }
  | {
      readonly kind: "hold-volume";
      readonly name: string;
      readonly operations: readonly JsonPatchOperation[];
    }
  /** Whether one of these attachments, which share volume and node, still needs the volume there: asked of the server. */
  | { readonly kind: "check-twins"; readonly names: readonly string[] }
  | { readonly kind: "fetch-secret"; readonly ref: SecretRef }
  | { readonly kind: "hold"; readonly operations: readonly JsonPatchOperation[] }
  | { readonly kind: "publish"; readonly request: PublishRequest; readonly migrated: boolean }
  | { readonly kind: "unpublish"; readonly request: UnpublishRequest; readonly migrated: boolean }
  /** The same call in the middle of an attach: what an earlier try may have published under another id goes first. */
  | { readonly kind: "withdraw"; readonly request: UnpublishRequest; readonly migrated: boolean }
  | { readonly kind: "release"; readonly operations: readonly JsonPatchOperation[] }
  | { readonly kind: "report"; readonly patch: Patch };

export type Operation = "attach" | "detach";

export function operationOf({ metadata }: VolumeAttachment): Operation {
  return metadata.deletionTimestamp ? "detach" : "attach";
}

export function planAttachment(view: AttachmentView): Step {
  try {
    return operationOf(view.attachment) === "attach" ? planAttach(view) : planDetach(view);
  } catch (error) {
    if (error instanceof AttacherError) return { kind: "refuse", error };
    throw error;
  }
}

function planAttach(view: AttachmentView): Step {
  const { attachment, volume, driver, done } = view;
  if (done.reported) return { kind: "nothing" };
  if (done.published) return { kind: "report", patch: attachedPatch(attachment, done.published) };
  if (attachment.status?.attached && !view.forced) return { kind: "nothing" };

  const finalizer = finalizerOf(driver.name);
  const named = namedBy(attachment);
  if (named.kind === "volume" && volume?.metadata.name === named.name) {
    refuseDeleting(named.name, volume);
    const operations = addFinalizerPatch(volume, finalizer);
    if (operations) return { kind: "hold-volume", name: named.name, operations };
  }
  const source = attachSource(attachment, volume, driver.name);
  if (named.kind === "volume") {
    const { csi, migrated } = source;
    refuseReplaced(attachment, { handle: csi.volumeHandle, migrated, driver: driver.name });
  }
  refuseBeingDetached(view.twins);
  const { publishReadonly } = driver.capabilities;
  const capability = toVolumeCapability(source.spec, driver.capabilities, view.defaultFsType);
  if (named.kind === "volume") refuseSecondNode(named.name, capability, view.holders);
  const secretRef = secretRefOf(source.csi);
  if (secretRef && !done.secrets) return { kind: "fetch-secret", ref: secretRef };

  const nodeId = attachNodeId(attachment, view.node, driver.name);
  const { volumeHandle } = source.csi;
  const earlierId = unacknowledgedNodeId(view, finalizer);
  if (earlierId !== undefined && earlierId !== nodeId && done.withdrawn !== earlierId) {
    const request = { volumeId: volumeHandle, nodeId: earlierId, secrets: done.secrets };
    return { kind: "withdraw", request, migrated: source.migrated };
  }
  const operations = holdPatch(attachment, finalizer, {
    [NODE_ID_ANNOTATION]: nodeId,
    ...(named.kind === "volume" && recordAnnotations({ volumeHandle, secretRef })),
  });
  if (operations) return { kind: "hold", operations };

  const request: PublishRequest = {
    volumeId: volumeHandle,
    nodeId,
    readonly: publishReadonly && source.csi.readOnly === true,
    capability,
    volumeContext: textMap(source.csi.volumeAttributes),
    secrets: done.secrets,
  };
  return { kind: "publish", request, migrated: source.migrated };
}

/**
 * Where the volume may be published although no attach was ever acknowledged: a driver that was registered anew with another
 * node id since has two names for one machine, and after a detach under the second the first would still hold the volume.
 */
function unacknowledgedNodeId({ attachment, twins }: AttachmentView, finalizer: string): string | undefined {
  if (attachment.status?.attached === true || !hasFinalizer(attachment, finalizer)) return undefined;
  // An unpublish would take the volume from under the other attachment, which pods may use.
  if (twins.some(({ held }) => held)) return undefined;
  return recordedNodeId(attachment);
}

function planDetach(view: AttachmentView): Step {
  const { attachment, volume, driver, done } = view;
  const finalizer = finalizerOf(driver.name);
  const held = hasFinalizer(attachment, finalizer);
  if (done.unpublished || typeof done.twins === "object") return planRelease(view, finalizer);
  // The status is not asked: unattached and held may be an attach that timed out and is still under way.
  if (!held && !view.forced) return { kind: "nothing" };

  const source = detachSource(attachment, volume);
  const twins = view.twins.filter(({ detaching, held }) => held && !detaching);
  if (held && twins.length > 0 && done.twins === undefined)
    return { kind: "check-twins", names: twins.map(({ attachment: name }) => name) };
  if (source.secretRef && !done.secrets) return { kind: "fetch-secret", ref: source.secretRef };
  const nodeId = detachNodeId(attachment, view.node, driver.name);
  const request: UnpublishRequest = { volumeId: source.volumeHandle, nodeId, secrets: done.secrets };
  return { kind: "unpublish", request, migrated: source.migrated };
}

function planRelease({ attachment, done }: AttachmentView, finalizer: string): Step {
  if (done.reported) return { kind: "nothing" };
  const operations = removeFinalizerPatch(attachment, finalizer);
  if (operations) return { kind: "release", operations };
  if (!done.released && !attachment.status?.attached) return { kind: "nothing" };
  return { kind: "report", patch: detachedPatch(attachment) };
}

/**
 * Asked again before every step, since another may have come meanwhile. An inline volume is let through: its access modes
 * are made up by whoever translated it, and say nothing.
 */
function refuseSecondNode(name: string, { accessMode }: VolumeCapability, holders: readonly Holder[]): void {
  const [holder] = holders;
  if (holder === undefined || !accessMode.startsWith("SINGLE_NODE")) return;
  const { attachment, node, deleting } = holder;
  const advice = deleting
    ? "it goes on as soon as that one is detached and gone"
    : "it goes on as soon as that one is deleted and gone";
  throw new AttacherError(
    "HeldElsewhere",
    `persistentvolume "${name}" may be attached to one node only, and is or may be attached to node ${node} ` +
      `by VolumeAttachment ${attachment}; ${advice}`,
    { subject: { kind: "VolumeAttachment", name: attachment } },
  );
}

/**
 * What unpublishes the volume from the node takes it from both: the second is published after that. Asked again before every
 * step, so also after our own finalizer was written; whoever is deleted later finds that and leaves the volume where it is.
 */
function refuseBeingDetached(twins: readonly Twin[]): void {
  const twin = twins.find(({ detaching, held }) => detaching && held);
  if (twin === undefined) return;
  throw new AttacherError(
    "BeingDetached",
    `VolumeAttachment ${twin.attachment} of the same volume on the same node is being detached; it goes on as soon as that one is gone`,
    { subject: { kind: "VolumeAttachment", name: twin.attachment } },
  );
}

function refuseDeleting(name: string, { metadata }: PersistentVolume): void {
  if (!metadata.deletionTimestamp) return;
  throw new AttacherError(
    "VolumeDeleting",
    `persistentvolume "${name}" is being deleted: it is not attached`,
  );
}

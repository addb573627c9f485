import type { Clock } from "../base/clock.ts";
import type { CSIDriver } from "../kube/api/csi-driver.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { interned } from "../kube/informer/intern.ts";
import type { Informer } from "../kube/informer/informer.ts";
import type { ObjectKey } from "../kube/object.ts";
import {
  CSI_PLUGIN,
  splitCsiVolume,
  splitVolumeName,
  volumeAttachmentName,
  type NodeName,
} from "../volumes/names.ts";
import type {
  AttachablePlugin,
  AttachRequest,
  DetachRequest,
  Verdict,
  VerifyRequest,
} from "../volumes/plugin.ts";
import { csiSourceOf, specName, type CsiSource, type VolumeSpec } from "../volumes/spec.ts";
import {
  isUnread,
  leadsTo,
  standsFor,
  volumeNamedBy,
  type VolumeLookup,
} from "../volumes/attachment-identity.ts";
import type { AttachmentWatch } from "./attachment-watch.ts";
import type { Doubts } from "./doubts.ts";
import { AttachDetachError } from "./errors.ts";
import { attachmentNameOf } from "./node-view.ts";

/** How long a driver's attacher may take, as upstream. The VolumeAttachment stays: the next try goes on from it. */
const DRIVER_MS = 120_000;

export interface CsiPluginDeps {
  readonly client: Pick<Client, "create" | "delete" | "get">;
  readonly drivers: Pick<Informer<CSIDriver>, "get">;
  readonly volumeNamed: VolumeLookup;
  readonly watch: AttachmentWatch;
  readonly doubts: Doubts;
  readonly clock: Clock;
  /** Asked right before every write. */
  readonly mayAct: () => boolean;
}

/** CSI volumes are attached by writing a VolumeAttachment, which the driver's attacher acts upon. */
export function createCsiPlugin(deps: CsiPluginDeps): AttachablePlugin {
  return {
    name: CSI_PLUGIN,
    canSupport: (spec) => (csiSourceOf(spec) ?? inlineCsi(spec)) !== undefined,
    needsAttach(spec) {
      const source = csiSourceOf(spec);
      if (source === undefined) return false;
      return deps.drivers.get(source.driver as ObjectKey)?.spec.attachRequired !== false;
    },
    volumeName(spec) {
      const source = csiSourceOf(spec);
      return source?.driver && source.volumeHandle ? `${source.driver}^${source.volumeHandle}` : undefined;
    },
    metricName(spec) {
      const source = spec && (csiSourceOf(spec) ?? inlineCsi(spec));
      // Kept for every volume of every pod.
      return source ? interned.text(`${CSI_PLUGIN}:${source.driver}`) : CSI_PLUGIN;
    },
    attach: (request) => attach(deps, request),
    detach: (request) => detach(deps, request),
    verify: ({ spec, volume, node }) => verify(deps, { spec, volume, node }),
  };
}

function inlineCsi(spec: VolumeSpec): { driver: string } | undefined {
  return spec.kind === "inline" ? spec.volume.csi : undefined;
}

async function attach(
  deps: CsiPluginDeps,
  { spec, node, signal, onAccepted }: AttachRequest,
): Promise<string> {
  const source = csiSourceOf(spec);
  if (!source)
    throw new AttachDetachError(
      "NotAttachable",
      `volume ${specName(spec)} has no PersistentVolume CSI source`,
    );
  const expected = { name: volumeAttachmentName(source, node), source, node };
  const startedAtMs = deps.clock.now();
  const oldError = errorMark(deps.watch.current(expected.name)?.status?.attachError);
  // What the watch showed when the server said otherwise: it is asked once a change, not as often as it can answer.
  let contradicted: VolumeAttachment | undefined;
  for (;;) {
    const known = deps.watch.current(expected.name);
    const ours = known ? undefined : await create(deps, { ...expected, spec, signal });
    onAccepted?.();
    const outcome = await deps.watch.until(
      expected.name,
      attachLook(deps, { ...expected, oldError, ours, contradicted }),
      {
        deadlineMs: startedAtMs + DRIVER_MS - deps.clock.now(),
        onDeadline: () => timedOut("attach", source, deps.watch.current(expected.name)?.status?.attachError),
        signal,
      },
    );
    if (outcome.kind === "deleted") continue;
    if (ours !== undefined || (await isStillAttached(deps, outcome.attachment, signal))) return "";
    contradicted = outcome.attachment;
  }
}

/**
 * The one that is cached was there before us, and the cache may have been cut off since: without this look a volume could
 * be given to a node on the word of an object that is long gone.
 */
async function isStillAttached(
  { client, watch }: CsiPluginDeps,
  cached: VolumeAttachment,
  signal: AbortSignal,
): Promise<boolean> {
  const { name = "", uid } = cached.metadata;
  try {
    const live = await client.get(volumeAttachments, { name }, { signal });
    if (live.metadata.uid === uid && !live.metadata.deletionTimestamp) return live.status?.attached === true;
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw apiFailed(error);
    watch.markGone(cached);
    return false;
  }
  throw new AttachDetachError("BeingDeleted", "volume attachment is being deleted");
}

interface Expected {
  readonly name: string;
  readonly source: CsiSource;
  readonly node: NodeName;
}

interface AttachLook extends Expected {
  readonly oldError: string | undefined;
  readonly ours: Created | undefined;
  /** Said to be attached, though the server has answered that it is not. */
  readonly contradicted: VolumeAttachment | undefined;
}

type AttachSight =
  { readonly kind: "attached"; readonly attachment: VolumeAttachment } | { readonly kind: "deleted" };

/**
 * What a look at the VolumeAttachment tells while its attach is awaited. It may take a while until the watch shows the one
 * just created (`ours`); one that was there and is gone was deleted by somebody, and has to be made again.
 */
function attachLook(
  { watch, volumeNamed }: CsiPluginDeps,
  { ours, oldError, contradicted, ...expected }: AttachLook,
): () => AttachSight | undefined {
  let seen = false;
  return () => {
    const attachment = watch.current(expected.name);
    if (attachment === undefined)
      return seen || watch.isTold(ours?.resourceVersion) ? { kind: "deleted" } : undefined;
    // An older one of that name, which the watch has not yet taken back.
    if (ours !== undefined && attachment.metadata.uid !== ours.uid) return undefined;
    seen = true;
    if (!standsFor(attachment, expected, volumeNamed)) throw mismatch(attachment, expected);
    const { metadata, status } = attachment;
    if (metadata.deletionTimestamp)
      throw new AttachDetachError("BeingDeleted", "volume attachment is being deleted");
    if (attachment === contradicted) return undefined;
    if (status?.attached === true) return { kind: "attached", attachment };
    const error = errorMark(status?.attachError);
    // An error from before this attempt says nothing about it: the attacher is trying again.
    if (error === undefined || error === oldError) return undefined;
    throw new AttachDetachError("DriverFailed", status?.attachError?.message ?? "");
  };
}

type Created = Pick<VolumeAttachment["metadata"], "uid" | "resourceVersion">;

/** Answers what it made, undefined where one was there already. */
async function create(
  { client, doubts, mayAct, volumeNamed }: CsiPluginDeps,
  wanted: Expected & { spec: VolumeSpec; signal: AbortSignal },
): Promise<Created | undefined> {
  if (!mayAct()) throw new AttachDetachError("NotLeading", "this process no longer leads");
  const { name, spec, source, node, signal } = wanted;
  const object: VolumeAttachment = {
    metadata: { name },
    spec: { attacher: source.driver, nodeName: node, source: attachmentSource(spec) },
  };
  if (!leadsTo(object, source, volumeNamed)) throw noLongerNamed(object, source);
  try {
    return (await client.create(volumeAttachments, object, { signal })).metadata;
  } catch (error) {
    if (isKubeError(error, "AlreadyExists")) return undefined;
    if (signal.aborted || (isKubeError(error) && error.outcomeUnknown)) doubts.add(name);
    throw apiFailed(error);
  }
}

function apiFailed(error: unknown): AttachDetachError {
  const text = `kubernetes.io/csi: attacher.Attach failed: ${detailOf(error)}`;
  return new AttachDetachError("ApiFailed", text, { cause: error });
}

function attachmentSource(spec: VolumeSpec): VolumeAttachment["spec"]["source"] {
  if (spec.kind === "persistent" && spec.migrated === "inline" && spec.volume.spec)
    return { inlineVolumeSpec: spec.volume.spec };
  return { persistentVolumeName: specName(spec) };
}

async function detach(deps: CsiPluginDeps, request: DetachRequest): Promise<void> {
  const { volume, node, signal } = request;
  const name = attachmentNameOf(volume, node);
  if (name === undefined)
    throw new AttachDetachError("NotAttachable", `${volume} is not the name of a CSI volume`);
  for (;;) {
    await detachOnce(deps, name, request);
    if (deps.doubts.remainingMs(name) === 0) return;
    await appearance(deps, name, signal);
  }
}

/** A create of ours may still be carried out: waits until its VolumeAttachment is seen, or no longer to be feared. */
async function appearance(
  { watch, doubts }: CsiPluginDeps,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const over = new Error("no VolumeAttachment appeared");
  const look = () => (watch.current(name) === undefined ? undefined : true);
  const wait = { deadlineMs: doubts.remainingMs(name), onDeadline: () => over, signal };
  await watch.until(name, look, wait).catch((error: unknown) => {
    if (error !== over) throw error;
  });
}

/** Resolves when the VolumeAttachment that is there now, if one is, is gone. */
async function detachOnce(
  deps: CsiPluginDeps,
  name: string,
  { pluginVolume, node, signal, onlyVersion, onAccepted }: DetachRequest,
): Promise<void> {
  const source = splitCsiVolume(pluginVolume);
  const known = deps.watch.current(name) ?? (await findUnseen(deps, name, signal));
  if (known === undefined) return;
  if (source && !standsFor(known, { source, node }, deps.volumeNamed))
    throw mismatch(known, { source, node });
  // Known by its name alone until now; by what it says, it is for another placement to delete, or for nobody here.
  if (!source && !isUnread(known, node, deps.volumeNamed))
    throw new AttachDetachError("Mismatch", `VolumeAttachment ${name} has become another than it was`);
  const oldError = errorMark(known.status?.detachError);
  // Before the DELETE: a driver that answers at once takes it off the watch before our own answer is here.
  const shown = deps.watch.isShown(known);
  if ((await deleteAttachment(deps, { known, shown, signal, onlyVersion })) === "gone") return;
  onAccepted?.();
  await deps.watch.until(name, detachLook(deps.watch, { name, oldError, known, shown }), {
    deadlineMs: DRIVER_MS,
    onDeadline: () =>
      timedOut(
        "detach",
        {
          driver: source?.driver ?? known.spec.attacher,
          volumeHandle: source?.volumeHandle ?? name,
        },
        deps.watch.current(name)?.status?.detachError,
      ),
    signal,
  });
}

/**
 * Gone is what the watch showed and shows no longer, or does not show although it has told everything up to that version. One
 * that it has not come to yet was found by asking the server, and may have a finalizer: until it is seen nobody knows when that ends.
 */
function detachLook(
  watch: AttachmentWatch,
  {
    name,
    oldError,
    known,
    shown,
  }: { name: string; oldError: string | undefined; known: VolumeAttachment; shown: boolean },
): () => true | undefined {
  let seen = shown || watch.isShown(known);
  return () => {
    const attachment = watch.current(name);
    if (attachment === undefined || attachment.metadata.uid !== known.metadata.uid)
      return seen || watch.isTold(known.metadata.resourceVersion) ? true : undefined;
    seen = true;
    const error = errorMark(attachment.status?.detachError);
    if (error === undefined || error === oldError) return undefined;
    throw new AttachDetachError("DriverFailed", attachment.status?.detachError?.message ?? "");
  };
}

/** One that the watch has not shown yet; undefined if there is none. */
async function findUnseen(
  { client }: CsiPluginDeps,
  name: string,
  signal: AbortSignal,
): Promise<VolumeAttachment | undefined> {
  try {
    return await client.get(volumeAttachments, { name }, { signal });
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw new AttachDetachError("ApiFailed", `read VolumeAttachment ${name}: ${detailOf(error)}`, {
      cause: error,
    });
  }
}

interface Deletion extends Pick<DetachRequest, "signal" | "onlyVersion"> {
  readonly known: VolumeAttachment;
  /** Whether the watch has shown it. */
  readonly shown: boolean;
}

/**
 * Never by name alone: a DELETE whose answer got lost may be carried out later, and would then hit the VolumeAttachment
 * of a pod that came back. With a uid it can only hit the one that is meant, and can be repeated.
 */
async function deleteAttachment(
  deps: CsiPluginDeps,
  { known, shown, signal, onlyVersion }: Deletion,
): Promise<"accepted" | "gone"> {
  const { client, watch, mayAct } = deps;
  const { name = "", uid = "", deletionTimestamp } = known.metadata;
  // Asked for already, by an earlier try: what is left is to wait for the driver.
  if (deletionTimestamp) return "accepted";
  if (!mayAct()) throw new AttachDetachError("NotLeading", "this process no longer leads");
  try {
    const preconditions = { uid, ...(onlyVersion !== undefined && { resourceVersion: onlyVersion }) };
    await client.delete(volumeAttachments, { name }, { signal, preconditions });
  } catch (error) {
    if (!isKubeError(error, "NotFound"))
      throw new AttachDetachError("ApiFailed", `delete VolumeAttachment ${name}: ${detailOf(error)}`, {
        cause: error,
      });
    watch.markGone(known);
    return "gone";
  }
  if (shown || watch.isShown(known)) return "accepted";
  const left = await findUnseen(deps, name, signal);
  return left?.metadata.uid === uid ? "accepted" : "gone";
}

/** One that has the volume's name and stands for another says nothing about the volume. */
async function verify(
  { client, drivers, watch, volumeNamed }: CsiPluginDeps,
  { spec, volume, node }: VerifyRequest,
): Promise<Verdict> {
  const name = attachmentNameOf(volume, node);
  const source = splitCsiVolume(splitVolumeName(volume)?.pluginVolume ?? "");
  const driver = spec && csiSourceOf(spec)?.driver;
  if (driver !== undefined && drivers.get(driver as ObjectKey)?.spec.attachRequired === false)
    return "attached";
  if (name === undefined) return "unknown";
  try {
    const attachment = watch.current(name) ?? (await client.get(volumeAttachments, { name }));
    if (source && !standsFor(attachment, { source, node }, volumeNamed)) return "unknown";
    return attachment.status?.attached === true ? "attached" : "not-attached";
  } catch (error) {
    // Only absence is proof; a server that cannot answer has not said that the volume is off.
    return isKubeError(error, "NotFound") ? "not-attached" : "unknown";
  }
}

/** Names are digests without separators: two volumes can share one, and people can write what they like. */
function mismatch(
  attachment: VolumeAttachment,
  { source, node }: { source: Pick<CsiSource, "driver" | "volumeHandle">; node: NodeName },
): AttachDetachError {
  const { metadata, spec } = attachment;
  const what = volumeNamedBy(attachment) || "an inline volume";
  return new AttachDetachError(
    "Mismatch",
    `VolumeAttachment ${metadata.name ?? ""} is for ${what} of driver ${spec.attacher} on node ${spec.nodeName}, not for ${source.volumeHandle} of ${source.driver} on ${node}`,
  );
}

/**
 * A pod keeps the disk that it was led to while its claim leads nowhere, and the PersistentVolume may be deleted and made anew
 * for another disk meanwhile. A VolumeAttachment that names it now would have the name of one disk and stand for the other:
 * it is a mismatch from its first second, which keeps both disks on the node until a person deletes it.
 */
function noLongerNamed(
  attachment: VolumeAttachment,
  { driver, volumeHandle }: Pick<CsiSource, "driver" | "volumeHandle">,
): AttachDetachError {
  return new AttachDetachError(
    "Mismatch",
    `PersistentVolume ${volumeNamedBy(attachment)} is gone or is another disk by now: no VolumeAttachment that names it is made for ${volumeHandle} of ${driver}`,
  );
}

type VolumeError = { readonly time?: string | undefined; readonly message?: string | undefined };

/** Tells one error from the next without comparing clocks. */
function errorMark(error: VolumeError | undefined): string | undefined {
  return error && `${error.time ?? ""} ${error.message ?? ""}`;
}

function timedOut(
  verb: "attach" | "detach",
  { driver, volumeHandle }: { driver: string; volumeHandle: string },
  last: VolumeError | undefined,
): AttachDetachError {
  const text = `timed out waiting for external-attacher of ${driver} CSI driver to ${verb} volume ${volumeHandle}`;
  return new AttachDetachError("TimedOut", last?.message ? `${text}; its last error: ${last.message}` : text);
}

function detailOf(error: unknown): string {
  if (isKubeError(error)) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

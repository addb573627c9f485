import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from "../kinds.ts";
import type { EventReason, Told, Waiting } from "../waiting.ts";
import {
  BEING_DELETED,
  CLAIM_SOURCE_FINALIZER,
  DEFAULT_SNAPSHOT_CLASS,
  SNAPSHOT_BOUND_FINALIZER,
  SNAPSHOT_SOURCE_FINALIZER,
} from "./names.ts";
import { snapshotStatus } from "./status.ts";

/** Everything one snapshot depends on. */
export interface SnapshotView {
  readonly snapshot: VolumeSnapshot;
  readonly driver: string;
  /** The content of the name the snapshot has, or would have. */
  readonly content: VolumeSnapshotContent | undefined;
  /** Whether the API server was asked for that content, and for the claims made from it, just now. */
  readonly confirmed: boolean;
  /** The claim it is of, and that claim's volume. */
  readonly claim: PersistentVolumeClaim | undefined;
  readonly volume: PersistentVolume | undefined;
  readonly classes: readonly VolumeSnapshotClass[];
  /** Claims for which the driver was asked to make a volume from it, and has not said that it did. */
  readonly restores: number;
}

export type SnapshotAction =
  | { readonly kind: "change"; readonly change: object }
  | { readonly kind: "status"; readonly status: object }
  | { readonly kind: "hold-claim"; readonly claim: PersistentVolumeClaim }
  | {
      readonly kind: "create-content";
      readonly volume: PersistentVolume;
      readonly snapshotClass: VolumeSnapshotClass;
    }
  /** Completes the reference of a content that somebody made by hand. */
  | { readonly kind: "change-content"; readonly change: object }
  | { readonly kind: "delete-content" }
  /** Ask the API server for the content, then plan again. */
  | { readonly kind: "confirm" };

export interface SnapshotPlan {
  readonly action?: SnapshotAction;
  readonly tell?: Told;
  readonly waitingFor?: Waiting;
}

/** Unique, and the same however often it is asked for. */
export function contentNameOf({ metadata, spec }: VolumeSnapshot): string {
  return spec.source.volumeSnapshotContentName ?? `snapcontent-${metadata.uid}`;
}

export function planSnapshot(view: SnapshotView): SnapshotPlan {
  const { snapshot } = view;
  if (snapshot.metadata.deletionTimestamp) return planDeletion(view);
  return snapshot.spec.source.volumeSnapshotContentName === undefined ? planDynamic(view) : planStatic(view);
}

function planDynamic(view: SnapshotView): SnapshotPlan {
  const { snapshot, content, driver, confirmed } = view;
  if (content) return isBoundTo(content, snapshot) ? planBound(view, content) : misbound(content);
  if (snapshot.status?.boundVolumeSnapshotContentName !== undefined) {
    if (view.volume?.spec?.csi?.driver !== driver && view.volume) return {};
    return confirmed ? lostContent(snapshot) : { action: { kind: "confirm" } };
  }
  return planCutting(view);
}

/** Everything that has to be there before the driver is asked, a step at a time. */
function planCutting({ snapshot, claim, volume, driver, classes }: SnapshotView): SnapshotPlan {
  const name = snapshot.spec.source.persistentVolumeClaimName ?? "";
  if (!claim || claim.status?.phase !== "Bound" || !volume) {
    const message = `Failed to create snapshot content with error: the PVC ${name} is not yet bound to a PV, will not attempt to take a snapshot`;
    return failure("SnapshotContentCreationFailed", message, "claim-unbound");
  }
  if (volume.spec?.csi?.driver !== driver) return {};
  if (claim.metadata.deletionTimestamp) {
    const message = `Failed to create snapshot content with error: claim ${name} is being deleted`;
    return failure("SnapshotContentCreationFailed", message, "claim-unbound");
  }
  const chosen = chooseClass(snapshot, driver, classes);
  if (!chosen.snapshotClass) return chosen;
  const { snapshotClass } = chosen;
  if (snapshot.spec.volumeSnapshotClassName === undefined) {
    const change = { spec: { volumeSnapshotClassName: snapshotClass.metadata.name } };
    return { action: { kind: "change", change } };
  }
  const held = holdSnapshot(snapshot);
  if (held) return { action: held };
  if (!hasFinalizer(claim, CLAIM_SOURCE_FINALIZER)) return { action: { kind: "hold-claim", claim } };
  return { action: { kind: "create-content", volume, snapshotClass } };
}

function chooseClass(
  snapshot: VolumeSnapshot,
  driver: string,
  classes: readonly VolumeSnapshotClass[],
): SnapshotPlan & { readonly snapshotClass?: VolumeSnapshotClass } {
  const name = snapshot.spec.volumeSnapshotClassName;
  if (name !== undefined) {
    const named = classes.find(({ metadata }) => metadata.name === name);
    if (!named) {
      const message = `Failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io "${name}" not found`;
      return failure("GetSnapshotClassFailed", message, "class-missing");
    }
    if (named.driver === driver) return { snapshotClass: named };
    const message = `Failed to create snapshot content with error: class "${name}" is of driver ${named.driver}, the volume of ${driver}`;
    return failure("SnapshotContentCreationFailed", message, "class-missing");
  }
  const defaults = classes.filter(
    (one) => one.driver === driver && one.metadata.annotations?.[DEFAULT_SNAPSHOT_CLASS] === "true",
  );
  if (defaults.length === 1 && defaults[0]) return { snapshotClass: defaults[0] };
  const why =
    defaults.length === 0 ? "cannot find default snapshot class" : "more than one default snapshot class";
  const message = `Failed to set default snapshot class with error ${why} for driver ${driver}; name one in spec.volumeSnapshotClassName`;
  return failure("SetDefaultSnapshotClassFailed", message, "class-missing");
}

function planStatic(view: SnapshotView): SnapshotPlan {
  const { snapshot, content, driver, confirmed } = view;
  if (!content) {
    if (!confirmed) return { action: { kind: "confirm" } };
    return failure("SnapshotContentMissing", "VolumeSnapshotContent is missing", "content-missing");
  }
  if (content.spec.driver !== driver) return {};
  const { volumeSnapshotRef: ref, source } = content.spec;
  const { name, namespace, uid } = snapshot.metadata;
  if (ref.name !== name || ref.namespace !== namespace || (ref.uid && ref.uid !== uid))
    return misbound(content);
  if (source.snapshotHandle === undefined) {
    const message = "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one";
    return failure("SnapshotContentMismatch", message, "content-mismatch");
  }
  const held = holdSnapshot(snapshot);
  if (held) return { action: held };
  if (ref.uid) return planBound(view, content);
  const { volumeSnapshotClassName } = snapshot.spec;
  const volumeSnapshotRef = { uid };
  const spec = volumeSnapshotClassName
    ? { volumeSnapshotRef, volumeSnapshotClassName }
    : { volumeSnapshotRef };
  return { action: { kind: "change-content", change: { spec } } };
}

/** What the content says is what the snapshot says. */
function planBound({ snapshot, driver }: SnapshotView, content: VolumeSnapshotContent): SnapshotPlan {
  if (content.spec.driver !== driver) return {};
  const status = snapshotStatus(snapshot, content);
  if (status) return { action: { kind: "status", status } };
  if (content.status?.readyToUse === true) return {};
  const message = content.status?.error?.message ?? "the driver has not finished the snapshot";
  return { waitingFor: { reason: "driver-cutting", message } };
}

function planDeletion(view: SnapshotView): SnapshotPlan {
  const { snapshot, content, driver, restores, confirmed } = view;
  const held = [SNAPSHOT_BOUND_FINALIZER, SNAPSHOT_SOURCE_FINALIZER].some((one) =>
    hasFinalizer(snapshot, one),
  );
  if (!held || (content && content.spec.driver !== driver)) return {};
  if (restores > 0) {
    const message = `${restores} claim${restores === 1 ? "" : "s"} wait for a volume made from it`;
    return { waitingFor: { reason: "in-use", message } };
  }
  if (!confirmed) return { action: { kind: "confirm" } };
  if (!content || !isBoundTo(content, snapshot)) return { action: letGo(snapshot) };
  if (content.metadata.annotations?.[BEING_DELETED] === undefined) {
    const change = { metadata: { annotations: { [BEING_DELETED]: "yes" } } };
    return { action: { kind: "change-content", change } };
  }
  if (content.spec.deletionPolicy === "Retain") return { action: letGo(snapshot) };
  if (!content.metadata.deletionTimestamp) return { action: { kind: "delete-content" } };
  const message = content.status?.error?.message ?? "the driver has not deleted the snapshot";
  return { waitingFor: { reason: "driver-cutting", message } };
}

function letGo({ metadata }: VolumeSnapshot): SnapshotAction {
  const ours: readonly string[] = [SNAPSHOT_BOUND_FINALIZER, SNAPSHOT_SOURCE_FINALIZER];
  const finalizers = (metadata.finalizers ?? []).filter((name) => !ours.includes(name));
  return { kind: "change", change: { metadata: { finalizers } } };
}

function holdSnapshot(snapshot: VolumeSnapshot): SnapshotAction | undefined {
  const wanted = [SNAPSHOT_SOURCE_FINALIZER, SNAPSHOT_BOUND_FINALIZER];
  const missing = wanted.filter((name) => !hasFinalizer(snapshot, name));
  if (missing.length === 0) return undefined;
  const finalizers = [...(snapshot.metadata.finalizers ?? []), ...missing];
  return { kind: "change", change: { metadata: { finalizers } } };
}

function isBoundTo({ spec }: VolumeSnapshotContent, { metadata }: VolumeSnapshot): boolean {
  const ref = spec.volumeSnapshotRef;
  return ref.name === metadata.name && ref.namespace === metadata.namespace && ref.uid === metadata.uid;
}

function misbound({ metadata }: VolumeSnapshotContent): SnapshotPlan {
  const message = `VolumeSnapshotContent [${metadata.name}] is bound to a different snapshot`;
  return failure("SnapshotContentMisbound", message, "content-mismatch");
}

function lostContent(snapshot: VolumeSnapshot): SnapshotPlan {
  const message = "VolumeSnapshotContent is missing";
  const plan = failure("SnapshotContentMissing", message, "content-missing");
  if (snapshot.status?.readyToUse !== true) return plan;
  return { ...plan, action: { kind: "status", status: { readyToUse: false } } };
}

function failure(reason: EventReason, message: string, waits: Waiting["reason"]): SnapshotPlan {
  return { tell: { type: "Warning", reason, message }, waitingFor: { reason: waits, message } };
}

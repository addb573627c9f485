import { unreachable } from "../../base/assert.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import type { VolumeSnapshotClass, VolumeSnapshotContent } from "../kinds.ts";
import type { Told, Waiting } from "../waiting.ts";
import { BEING_CREATED, BEING_DELETED, CONTENT_FINALIZER } from "./names.ts";

export interface ContentView {
  readonly content: VolumeSnapshotContent;
  readonly driver: string;
  readonly snapshotClass: VolumeSnapshotClass | undefined;
  /** What the API server has just said of the snapshot that the content is of; undefined while it was not asked. */
  readonly snapshot?: "there" | "going" | "gone" | undefined;
}

export type ContentAction =
  | { readonly kind: "change"; readonly change: object }
  /** Have the driver cut the snapshot, or say again what became of it. */
  | {
      readonly kind: "cut";
      readonly sourceVolumeId: string;
      readonly snapshotClass: VolumeSnapshotClass | undefined;
    }
  /** Somebody made it elsewhere; the driver may know more about it. */
  | { readonly kind: "look-up"; readonly snapshotHandle: string }
  | { readonly kind: "delete-snapshot"; readonly snapshotHandle: string }
  /** Ask the API server for the snapshot, then plan again. */
  | { readonly kind: "confirm" }
  /** Delete the content in exactly the version looked at: of it the driver has nothing. */
  | { readonly kind: "discard" };

export interface ContentPlan {
  readonly action?: ContentAction;
  readonly tell?: Told;
  readonly waitingFor?: Waiting;
}

export function planContent(view: ContentView): ContentPlan {
  const { content, driver } = view;
  if (content.spec.driver !== driver) return {};
  return content.metadata.deletionTimestamp ? planGoing(view) : planStaying(view);
}

function planStaying(view: ContentView): ContentPlan {
  const { content } = view;
  const { metadata, spec, status } = content;
  if (!hasFinalizer(content, CONTENT_FINALIZER)) {
    return changed({ metadata: { finalizers: [...(metadata.finalizers ?? []), CONTENT_FINALIZER] } });
  }
  const beingCreated = metadata.annotations?.[BEING_CREATED] !== undefined;
  if (spec.source.snapshotHandle !== undefined) {
    const known = status?.readyToUse === true && status.snapshotHandle !== undefined;
    return known ? {} : { action: { kind: "look-up", snapshotHandle: spec.source.snapshotHandle } };
  }
  if (status?.snapshotHandle !== undefined && status.readyToUse === true) {
    return beingCreated ? settled() : {};
  }
  return beingCreated ? planCut(view, { beingCreated }) : planFirstCut(view);
}

/**
 * A creation whose answer was lost may be carried out long after it was sent again, and after snapshot, content and cut have
 * come and gone: that content's snapshot is gone for good, as uids are never given twice, and what was cut for it would stay
 * for ever. A snapshot that goes looks for its content only until it is let go, so it is too late for a cut then.
 */
function planFirstCut(view: ContentView): ContentPlan {
  switch (view.snapshot) {
    case undefined:
      return { action: { kind: "confirm" } };
    case "gone":
      return { action: { kind: "discard" } };
    case "going":
      return waitForSnapshot(view, "is being deleted");
    case "there":
      return planCut(view, { beingCreated: false });
    default:
      return unreachable(view.snapshot);
  }
}

/** The annotation comes first: it is what a successor finds if the answer never reaches us. */
function planCut(
  { content, snapshotClass }: ContentView,
  { beingCreated }: { beingCreated: boolean },
): ContentPlan {
  const { spec } = content;
  if (spec.volumeSnapshotClassName !== undefined && !snapshotClass) {
    const message = `volumesnapshotclass.snapshot.storage.k8s.io "${spec.volumeSnapshotClassName}" not found`;
    return {
      tell: { type: "Warning", reason: "SnapshotContentCreationFailed", message },
      waitingFor: { reason: "class-missing", message },
    };
  }
  if (!beingCreated) return changed({ metadata: { annotations: { [BEING_CREATED]: "yes" } } });
  const sourceVolumeId = spec.source.volumeHandle ?? "";
  return { action: { kind: "cut", sourceVolumeId, snapshotClass } };
}

function planGoing(view: ContentView): ContentPlan {
  const { content } = view;
  const { metadata, spec, status } = content;
  if (!hasFinalizer(content, CONTENT_FINALIZER)) return {};
  const released = !spec.volumeSnapshotRef.uid || metadata.annotations?.[BEING_DELETED] !== undefined;
  const snapshotHandle = status?.snapshotHandle ?? spec.source.snapshotHandle;
  const beingCreated = metadata.annotations?.[BEING_CREATED] !== undefined;
  if (!released) {
    const isUncut = snapshotHandle === undefined && !beingCreated;
    if (isUncut && view.snapshot === undefined) return { action: { kind: "confirm" } };
    if (!isUncut || view.snapshot !== "gone") return waitForSnapshot(view, "is bound to it; delete that");
  }
  // What the driver did is asked for once more: only its answer names what is to be deleted.
  if (snapshotHandle === undefined && beingCreated) return planCut(view, { beingCreated });
  if (spec.deletionPolicy === "Delete" && snapshotHandle !== undefined) {
    return { action: { kind: "delete-snapshot", snapshotHandle } };
  }
  return letGo(content);
}

function waitForSnapshot({ content }: ContentView, state: string): ContentPlan {
  const { namespace, name } = content.spec.volumeSnapshotRef;
  return { waitingFor: { reason: "in-use", message: `VolumeSnapshot ${namespace}/${name} ${state}` } };
}

export function letGo({ metadata }: VolumeSnapshotContent): ContentPlan {
  return changed({
    metadata: { finalizers: (metadata.finalizers ?? []).filter((name) => name !== CONTENT_FINALIZER) },
  });
}

/** The driver's answer is known, whatever it was. */
export function settled(): ContentPlan {
  return changed({ metadata: { annotations: { [BEING_CREATED]: null } } });
}

function changed(change: object): ContentPlan {
  return { action: { kind: "change", change } };
}

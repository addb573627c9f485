import type { PersistentVolumeClaimCondition } from "kubernetes-types/core/v1.js";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { wantedBytes } from "../binder/match.ts";
import { classNameOf } from "../claims.ts";
import type { StorageClass } from "../kinds.ts";
import { bytesOf, toQuantity } from "../sizes.ts";
import type { Told, Waiting } from "../waiting.ts";

export interface ResizeView {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume | undefined;
  readonly storageClass: StorageClass | undefined;
  readonly driver: string;
}

export interface ResizePlan {
  /** Have the driver grow the volume to this size; `begin` is written into the claim's status first, where it is new. */
  readonly expand?: { readonly bytes: bigint; readonly begin: boolean };
  readonly tell?: Told;
  readonly waitingFor?: Waiting;
}

/** Newer than the types. */
interface ResizeStatus {
  readonly allocatedResources?: Readonly<Record<string, string>>;
  readonly allocatedResourceStatuses?: Readonly<Record<string, string>>;
}

export function planResize(view: ResizeView): ResizePlan {
  const { claim, volume, storageClass, driver } = view;
  if (!isBoundPair(claim, volume) || volume?.spec?.csi?.driver !== driver) return {};
  const requested = wantedBytes(claim);
  // What was given at first may be more than was asked for.
  if (requested <= bytesOf(claim.status?.capacity?.["storage"])) return {};
  if (!storageClass?.allowVolumeExpansion) return refused(claim, storageClass);
  const { state, allocated } = stateOf(claim);
  const bytes = state === "ControllerResizeInProgress" && allocated > requested ? allocated : requested;
  const withNode =
    state.startsWith("NodeResize") && allocated >= requested && volumeBytes(volume) >= allocated;
  if (withNode && !(state === "NodeResizeInfeasible" && allocated !== requested)) {
    return { waitingFor: { reason: "node-resize", message: `the node has to grow it: ${state}` } };
  }
  const begun = state === "ControllerResizeInProgress" || state === "ControllerResizeInfeasible";
  return { expand: { bytes, begin: !begun || allocated !== bytes } };
}

function isBoundPair(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): boolean {
  if (claim.metadata.deletionTimestamp || claim.status?.phase !== "Bound" || !volume) return false;
  return volume.spec?.claimRef?.uid === claim.metadata.uid && !volume.metadata.deletionTimestamp;
}

/** A real server refuses such a request; one that came all the same is explained and left. */
function refused(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): ResizePlan {
  const name = classNameOf(claim) ?? "";
  const message = storageClass
    ? `storage class "${name}" does not allow volumes to grow: allowVolumeExpansion is not true`
    : `storageclass.storage.k8s.io "${name}" not found: nobody says whether its volumes may grow`;
  return {
    tell: { type: "Warning", reason: "VolumeResizeFailed", message },
    waitingFor: { reason: storageClass ? "class-forbids" : "class-missing", message },
  };
}

function stateOf({ status }: PersistentVolumeClaim): { readonly state: string; readonly allocated: bigint } {
  const { allocatedResources, allocatedResourceStatuses } = (status ?? {}) as ResizeStatus;
  return {
    state: allocatedResourceStatuses?.["storage"] ?? "",
    allocated: bytesOf(allocatedResources?.["storage"]),
  };
}

function volumeBytes({ spec }: PersistentVolume): bigint {
  return bytesOf(spec?.capacity?.["storage"]);
}

const RESIZE_CONDITIONS = ["Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"];

/** The driver is about to be asked. */
export function beginStatus(claim: PersistentVolumeClaim, bytes: bigint, now: string): object {
  return {
    allocatedResources: { storage: toQuantity(bytes) },
    allocatedResourceStatuses: { storage: "ControllerResizeInProgress" },
    conditions: [...otherConditions(claim), condition("Resizing", now)],
  };
}

/** The volume has grown, what is on it has not. */
export function pendingStatus(claim: PersistentVolumeClaim, now: string): object {
  const message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
  return {
    allocatedResourceStatuses: { storage: "NodeResizePending" },
    conditions: [...otherConditions(claim), condition("FileSystemResizePending", now, message)],
  };
}

export function finishedStatus(claim: PersistentVolumeClaim, bytes: bigint): object {
  return {
    capacity: { storage: toQuantity(bytes) },
    allocatedResourceStatuses: { storage: null },
    conditions: otherConditions(claim),
  };
}

/** `infeasible`: it will fail the same way until somebody asks for another size. */
export function failedStatus(
  claim: PersistentVolumeClaim,
  {
    message,
    infeasible,
    now,
  }: { readonly message: string; readonly infeasible: boolean; readonly now: string },
): object {
  const kept = conditionsOf(claim).filter(({ type }) => type !== "ControllerResizeError");
  return {
    conditions: [...kept, condition("ControllerResizeError", now, message)],
    ...(infeasible && { allocatedResourceStatuses: { storage: "ControllerResizeInfeasible" } }),
  };
}

/** Whether the status says so already, whenever that was. */
export function saysFailure(claim: PersistentVolumeClaim, message: string, infeasible: boolean): boolean {
  const said = conditionsOf(claim).some(
    (one) => one.type === "ControllerResizeError" && one.message === message,
  );
  return said && (!infeasible || stateOf(claim).state === "ControllerResizeInfeasible");
}

function condition(type: string, now: string, message?: string): PersistentVolumeClaimCondition {
  return { type, status: "True", lastTransitionTime: now, ...(message !== undefined && { message }) };
}

function otherConditions(claim: PersistentVolumeClaim): readonly PersistentVolumeClaimCondition[] {
  return conditionsOf(claim).filter(({ type }) => !RESIZE_CONDITIONS.includes(type));
}

function conditionsOf({ status }: PersistentVolumeClaim): readonly PersistentVolumeClaimCondition[] {
  return Array.isArray(status?.conditions) ? status.conditions : [];
}

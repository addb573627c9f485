import type { PersistentVolumeClaimCondition } from "kubernetes-types/core/v1.js";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import { parseQuantity, quantityToBytes } from "../../kube/quantity.ts";

/** What a claim says about growing its volume on the node (sections 13.3 to 13.5 of the specification). Pure. */
export type ExpansionPlan =
  | {
      readonly kind: "proceed";
      readonly sizeBytes: number;
      readonly markInProgress: boolean;
      readonly alreadyUpdated: boolean;
      /** Nobody keeps books of it in the claim. */
      readonly legacy: boolean;
    }
  | { readonly kind: "finished"; readonly sizeBytes: number }
  /** Not the node's turn, or never. */
  | { readonly kind: "not-yet" };

/** Newer than the types. */
interface ResizeStatus {
  readonly allocatedResourceStatuses?: Readonly<Record<string, string>>;
  readonly allocatedResources?: Readonly<Record<string, string>>;
}

const NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required";
const RESIZE_CONDITIONS = ["Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"];

export function planExpansion(
  claim: PersistentVolumeClaim,
  { wantedBytes }: { readonly wantedBytes: number },
): ExpansionPlan {
  const { allocatedResourceStatuses, allocatedResources } = (claim.status ?? {}) as ResizeStatus;
  const status = allocatedResourceStatuses?.["storage"];
  const allocated = allocatedResources?.["storage"];
  if (status === undefined && allocated === undefined)
    return {
      kind: "proceed",
      sizeBytes: wantedBytes,
      markInProgress: false,
      alreadyUpdated: false,
      legacy: true,
    };
  const sizeBytes = allocated === undefined ? wantedBytes : bytesOf(allocated);
  const alreadyUpdated = status === undefined && recordedBytesOf(claim) >= sizeBytes;
  const pending = status === "NodeResizePending" || status === "NodeResizeInProgress";
  const shared = (claim.spec?.accessModes ?? []).includes("ReadWriteMany");
  const local = alreadyUpdated && shared && claim.metadata.annotations?.[NOT_REQUIRED] === undefined;
  if (local || pending)
    return { kind: "proceed", sizeBytes, markInProgress: !alreadyUpdated, alreadyUpdated, legacy: false };
  return alreadyUpdated ? { kind: "finished", sizeBytes } : { kind: "not-yet" };
}

/** How far the claim lets this node grow the volume now; 0 while that is not the node's turn. */
export function growthOf(claim: PersistentVolumeClaim, capacityBytes: number): number {
  const plan = planExpansion(claim, { wantedBytes: capacityBytes });
  return plan.kind === "not-yet" ? 0 : plan.sizeBytes;
}

/** What the claim says the volume has; 0 while it says nothing. */
export function recordedBytesOf({ status }: PersistentVolumeClaim): number {
  return bytesOf(status?.capacity?.["storage"]);
}

/** Whether somebody asks for another size than the one being tried. */
export function isRetargeted({ spec }: PersistentVolumeClaim, sizeBytes: number): boolean {
  const requested = bytesOf(spec?.resources?.requests?.["storage"]);
  return requested > 0 && requested !== sizeBytes;
}

export function expandedStatus(claim: PersistentVolumeClaim, sizeBytes: number): object {
  const requested = claim.spec?.resources?.requests?.["storage"];
  const storage = requested !== undefined && bytesOf(requested) === sizeBytes ? requested : String(sizeBytes);
  const conditions = withoutResize(claim);
  return { capacity: { storage }, allocatedResourceStatuses: { storage: null }, conditions };
}

export function failedStatus(
  claim: PersistentVolumeClaim,
  { message, infeasible, at }: { readonly message: string; readonly infeasible: boolean; readonly at: Date },
): object {
  const condition = {
    type: "NodeResizeError",
    status: "True",
    lastTransitionTime: at.toISOString().replace(/\.\d+Z$/, "Z"),
    message: `failed to expand pvc with ${message}`,
  };
  const conditions = [...conditionsOf(claim).filter(({ type }) => type !== "NodeResizeError"), condition];
  return {
    conditions,
    ...(infeasible && { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } }),
  };
}

function withoutResize(claim: PersistentVolumeClaim): readonly PersistentVolumeClaimCondition[] {
  return conditionsOf(claim).filter(({ type }) => !RESIZE_CONDITIONS.includes(type));
}

function conditionsOf({ status }: PersistentVolumeClaim): readonly PersistentVolumeClaimCondition[] {
  return Array.isArray(status?.conditions) ? status.conditions : [];
}

/** 0 for what is no amount. */
export function bytesOf(quantity: unknown): number {
  if (typeof quantity !== "string" && typeof quantity !== "number") return 0;
  try {
    return Number(quantityToBytes(parseQuantity(quantity)));
  } catch {
    return 0;
  }
}

import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { isBindCompleted, isClaimedBy } from "../claims.ts";
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from "../names.ts";

/** One write of a bind. */
export type BindStep =
  | { readonly kind: "volume" | "volume-status"; readonly change: object }
  | { readonly kind: "claim" | "claim-status"; readonly change: object };

/**
 * The next write that binds the two, from how far they are: volume, its phase, claim, its phase. The volume comes first:
 * it can name one claim only, so its write is the one that decides, and whoever comes second finds another version.
 * Killed between two writes, the next start finds the volume naming the claim and goes on from there.
 */
export function nextBindStep(volume: PersistentVolume, claim: PersistentVolumeClaim): BindStep | undefined {
  if (volume.spec?.claimRef?.uid !== claim.metadata.uid || !isClaimedBy(volume, claim))
    return { kind: "volume", change: claimVolume(volume, claim) };
  if (volume.status?.phase !== "Bound") {
    return { kind: "volume-status", change: { status: { phase: "Bound", message: null, reason: null } } };
  }
  const named = claim.spec?.volumeName === volume.metadata.name;
  if (!named || !isBindCompleted(claim)) return { kind: "claim", change: nameVolume(volume, { named }) };
  return claim.status?.phase === "Bound"
    ? undefined
    : { kind: "claim-status", change: { status: boundStatus(volume) } };
}

/** Who wrote the first half of a reference may take it back: the annotation says that it was us. */
function claimVolume(volume: PersistentVolume, claim: PersistentVolumeClaim): object {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    namespace,
    name,
    uid,
    resourceVersion,
  };
  const mark = isClaimedBy(volume, claim)
    ? {}
    : { metadata: { annotations: { [BOUND_BY_CONTROLLER]: "yes" } } };
  return { ...mark, spec: { claimRef } };
}

function nameVolume({ metadata }: PersistentVolume, { named }: { readonly named: boolean }): object {
  const mark = named ? {} : { [BOUND_BY_CONTROLLER]: "yes" };
  return {
    metadata: { annotations: { ...mark, [BIND_COMPLETED]: "yes" } },
    spec: { volumeName: metadata.name },
  };
}

/** The size is written once: from then on it belongs to whoever grows the volume. */
function boundStatus({ spec = {} }: PersistentVolume): object {
  const { accessModes = [], capacity = {} } = spec;
  return { phase: "Bound", accessModes, capacity: { storage: capacity["storage"] ?? "0" } };
}

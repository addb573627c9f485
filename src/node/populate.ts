import type { Volume } from "kubernetes-types/core/v1.js";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import { toKey, type ObjectKey } from "../kube/object.ts";
import type { PersistentSpec, VolumeSpec } from "../volumes/spec.ts";
import { translate } from "../volumes/translation/translate.ts";
import { isObject, metadataOf, text } from "../volumes/untrusted.ts";
import type { Seen } from "./objects-watch.ts";
import { bytesOf, growthOf, recordedBytesOf } from "./steps/expansion-plan.ts";
import type { VolumeMode } from "./world.ts";

/**
 * From a pod's volume to what it really is, or why not. The texts of the refusals are upstream's: people and their
 * alerts know them. Pure: it reads what is cached now.
 */
export type Wish =
  | {
      readonly kind: "wanted";
      readonly spec: VolumeSpec;
      readonly mode: VolumeMode;
      /** How far it may grow now, by its PersistentVolume and its claim; 0 where it may not. */
      readonly sizeBytes: number;
      /** What its claim says it has; 0 where it says nothing. */
      readonly recordedBytes: number;
    }
  /** `heals`: an object may change and make it right, so nobody who waits should give up. */
  | {
      readonly kind: "refused";
      readonly message: string;
      readonly heals: boolean;
      /** An object could not be read, so that nothing is known of it. */
      readonly unread?: boolean;
    }
  /** An object was asked for and has not come yet. */
  | { readonly kind: "loading" };

export interface PopulateCaches {
  claim(key: ObjectKey): Seen<PersistentVolumeClaim>;
  volume(name: string): Seen<PersistentVolume>;
}

/** How containers of a pod use its volumes, by outer name. */
export interface VolumeUse {
  readonly mounted: boolean;
  readonly asDevice: boolean;
}

export function volumeUsesOf(pod: Pod): ReadonlyMap<string, VolumeUse> {
  const uses = new Map<string, VolumeUse>();
  const { containers, initContainers, ephemeralContainers } = pod.spec ?? {};
  for (const container of [...list(containers), ...list(initContainers), ...list(ephemeralContainers)]) {
    for (const { name } of list(container.volumeMounts))
      uses.set(name, { mounted: true, asDevice: uses.get(name)?.asDevice ?? false });
    for (const { name } of list(container.volumeDevices))
      uses.set(name, { mounted: uses.get(name)?.mounted ?? false, asDevice: true });
  }
  return uses;
}

export interface ClaimUse {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly name: string;
  readonly readOnly: boolean;
  /** Made for the pod, from a template in it. */
  readonly ephemeral: boolean;
}

export function claimUseOf(pod: Pod, volume: Volume): ClaimUse | undefined {
  const { name: podName, namespace } = metadataOf(pod);
  const { ephemeral, persistentVolumeClaim } = volume;
  const name = ephemeral ? `${text(podName)}-${text(volume.name)}` : text(persistentVolumeClaim?.claimName);
  if (!ephemeral && !persistentVolumeClaim) return undefined;
  return {
    key: toKey({ namespace: text(namespace), name }),
    namespace: text(namespace),
    name,
    readOnly: !ephemeral && persistentVolumeClaim?.readOnly === true,
    ephemeral: Boolean(ephemeral),
  };
}

export function wishOf(pod: Pod, volume: Volume, use: VolumeUse, caches: PopulateCaches): Wish {
  const claim = claimUseOf(pod, volume);
  const found = claim ? followClaim(pod, claim, caches) : inlineSpec(pod, volume);
  if (found.kind !== "found") return found;
  const mode = modeOf(found.spec);
  if (mode === undefined)
    return refuse(`cannot get volumeMode for volume: ${nameOf(found.spec)}`, { heals: false });
  if (use.mounted && mode !== "Filesystem") return wrongMode(volume.name, mode, "volumeMounts");
  if (use.asDevice && mode !== "Block") return wrongMode(volume.name, mode, "volumeDevices");
  return { kind: "wanted", spec: found.spec, mode, ...sizesOf(found) };
}

function wrongMode(outerName: string, mode: VolumeMode, where: string): Wish {
  return refuse(`volume ${outerName} has volumeMode ${mode}, but is specified in ${where}`, { heals: false });
}

type Found =
  | { readonly kind: "found"; readonly spec: VolumeSpec; readonly claim?: PersistentVolumeClaim }
  | Exclude<Wish, { kind: "wanted" }>;

function inlineSpec(pod: Pod, volume: Volume): Found {
  return translated({ kind: "inline", volume }, text(metadataOf(pod).namespace));
}

function translated(spec: VolumeSpec, namespace: string): Found {
  const translation = translate(spec, namespace);
  if (translation.kind === "translated") return { kind: "found", spec: translation.spec };
  return refuse(`failed to translate volume ${nameOf(spec)}: ${translation.message}`, { heals: true });
}

function followClaim(pod: Pod, use: ClaimUse, caches: PopulateCaches): Found {
  const refuseClaim = (why: string, seen?: Seen<object>) => ({
    ...refuse(`error processing PVC ${use.key}: ${why}`),
    unread: seen?.kind === "failed",
  });
  const seen = caches.claim(use.key);
  if (seen.kind === "loading") return seen;
  if (seen.kind !== "present")
    return refuseClaim(
      `failed to fetch PVC from API server: ${absence(seen, "persistentvolumeclaims", use.name)}`,
      seen,
    );
  const claim = seen.object;
  const problem = claimProblem(claim);
  if (problem) return refuseClaim(problem);
  if (use.ephemeral && !isOwnedBy(claim, pod))
    return refuse(`PVC ${use.key} was not created for pod ${toKey(podRef(pod))} (pod is not owner)`, {
      heals: true,
    });
  const name = text(claim.spec?.volumeName);
  const volume = caches.volume(name);
  if (volume.kind === "loading") return volume;
  if (volume.kind !== "present")
    return refuseClaim(
      `failed to fetch PV ${name} from API server: ${absence(volume, "persistentvolumes", name)}`,
      volume,
    );
  const unbound = bindingProblem(volume.object, claim);
  if (unbound) return refuseClaim(unbound);
  const spec: VolumeSpec = {
    kind: "persistent",
    volume: volume.object,
    readOnly: use.readOnly,
    migrated: "none",
  };
  const found = translated(spec, use.namespace);
  return found.kind === "found" ? { ...found, claim } : found;
}

function claimProblem({ metadata, spec, status }: PersistentVolumeClaim): string | undefined {
  if (metadata.deletionTimestamp && !list(metadata.finalizers).includes("kubernetes.io/pvc-protection"))
    return "PVC is being deleted";
  if (status?.phase !== "Bound") return "PVC is not bound";
  return text(spec?.volumeName) ? undefined : "PVC has empty pvc.Spec.VolumeName";
}

function bindingProblem(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const name = text(volume.metadata.name);
  const { claimRef } = volume.spec ?? {};
  if (!claimRef)
    return `found PV object ${name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`;
  const [found, wanted] = [text(claimRef.uid), text(claim.metadata.uid)];
  if (found === wanted && wanted !== "") return undefined;
  return `found PV object ${name} but its pv.Spec.ClaimRef.UID ${found} does not point to claim.UID ${wanted}`;
}

function isOwnedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  const { uid, namespace } = metadataOf(pod);
  const owner = list(claim.metadata.ownerReferences).find(({ controller }) => controller === true);
  return Boolean(uid) && owner?.uid === uid && claim.metadata.namespace === namespace;
}

function absence(
  seen: Exclude<Seen<never>, { kind: "present" | "loading" }>,
  plural: string,
  name: string,
): string {
  return seen.kind === "absent" ? `${plural} "${name}" not found` : seen.error.message;
}

function modeOf(spec: VolumeSpec): VolumeMode | undefined {
  if (spec.kind === "inline") return "Filesystem";
  const mode = spec.volume.spec?.volumeMode;
  if (mode === "Filesystem" || mode === "Block") return mode;
  // A volume written into a pod has no PersistentVolume whose mode the server would have filled in.
  return spec.migrated === "inline" ? "Filesystem" : undefined;
}

/** Only a volume of a claim that the pod may write to grows with its PersistentVolume. */
function sizesOf({ spec, claim }: Extract<Found, { kind: "found" }>) {
  if (spec.kind === "inline" || spec.migrated === "inline" || spec.readOnly || !claim)
    return { sizeBytes: 0, recordedBytes: 0 };
  return {
    sizeBytes: growthOf(claim, bytesOf(capacityOf(spec))),
    recordedBytes: recordedBytesOf(claim),
  };
}

function capacityOf({ volume }: PersistentSpec): unknown {
  return volume.spec?.capacity?.["storage"];
}

function refuse(message: string, { heals = true }: { readonly heals?: boolean } = {}) {
  return { kind: "refused", message, heals } as const;
}

function nameOf(spec: VolumeSpec): string {
  return text(spec.kind === "inline" ? spec.volume.name : spec.volume.metadata.name);
}

export function podRef(pod: Pod): { readonly namespace: string; readonly name: string } {
  const { name, namespace } = metadataOf(pod);
  return { namespace: text(namespace), name: text(name) };
}

/** What is no list counts as empty, and what is no object is left out. */
function list<T>(items: readonly T[] | null | undefined): readonly T[] {
  if (!Array.isArray(items)) return [];
  return (items as readonly T[]).filter((item) => typeof item === "string" || isObject(item));
}

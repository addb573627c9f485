import type { Container, ResourceRequirements } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import { parseQuantity, quantityToBytes } from "../../kube/quantity.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";

/** Newer than the types: resources of the pod as a whole. */
type PodResources = { readonly resources?: ResourceRequirements };

/**
 * What all containers of a pod may take of one resource at most: those that run side by side added up, or one that
 * runs alone before them, whichever is more, plus the overhead. Undefined where nobody sets a limit.
 */
export function podLimit(pod: Pod, resource: string): bigint | undefined {
  const whole = (pod.spec as PodResources | undefined)?.resources?.limits?.[resource];
  if (whole !== undefined) return toBytes(whole);
  const limitOf = ({ resources }: Container) => toBytes(resources?.limits?.[resource]) ?? 0n;
  const sidecars = initContainersOf(pod).filter(isSidecar).map(limitOf);
  const together = sum(sidecars) + sum((pod.spec?.containers ?? []).map(limitOf));
  const alone = initContainersOf(pod)
    .filter((container) => !isSidecar(container))
    .map((container) => limitOf(container) + sum(sidecarsBefore(pod, container).map(limitOf)));
  const most = alone.reduce((a, b) => (b > a ? b : a), together);
  if (most === 0n) return undefined;
  return most + (toBytes(pod.spec?.overhead?.[resource]) ?? 0n);
}

/**
 * How much a volume on the node's own disk may take (section 5): the pod's limit of ephemeral storage, or a smaller one
 * of the emptyDir itself. 0 is no limit; undefined for volumes that have none.
 */
export function desiredSizeLimitBytes(pod: Pod, spec: VolumeSpec): number | undefined {
  if (spec.kind !== "inline") return undefined;
  const { emptyDir, configMap, gitRepo } = spec.volume;
  const onDisk = emptyDir ? (emptyDir.medium ?? "") === "" : Boolean(configMap ?? gitRepo);
  if (!onDisk) return undefined;
  const total = podLimit(pod, "ephemeral-storage") ?? 0n;
  const own = toBytes(emptyDir?.sizeLimit) ?? 0n;
  return Number(own > 0n && (own < total || total === 0n) ? own : total);
}

/** Undefined for what is not there or cannot be read as an amount. */
export function toBytes(quantity: string | number | undefined): bigint | undefined {
  if (quantity === undefined) return undefined;
  try {
    return quantityToBytes(parseQuantity(quantity));
  } catch {
    return undefined;
  }
}

export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...(pod.spec?.containers ?? [])];
}

function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec?.initContainers ?? [];
}

function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === "Always";
}

function sidecarsBefore(pod: Pod, container: Container): readonly Container[] {
  const all = initContainersOf(pod);
  return all.slice(0, all.indexOf(container)).filter(isSidecar);
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

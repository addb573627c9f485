import type { Container, PodSpec, Toleration } from "kubernetes-types/core/v1.js";
import { forbiddenField, invalidValue, type Cause } from "./causes.ts";
import { validateImage } from "./containers.ts";
import { defined, without, type Loose } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { validateGateChange, withGatesOf } from "./pod-gates.ts";
import { sameValue } from "./quantities.ts";

type Spec = Loose<PodSpec>;

const RULE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/**
 * A pod is what it was made as. What may change is what a node can take up while it runs: images, a
 * nearer deadline, more tolerations; and its gates with what they hold back. `nodeName` is set by `/binding` alone.
 */
export function validatePodChange(pod: PodObject, old: PodObject): Cause[] {
  const [spec, oldSpec] = [pod.spec ?? {}, old.spec ?? {}];
  const resized = (["containers", "initContainers"] as const).filter(
    (list) => (spec[list] ?? []).length !== (oldSpec[list] ?? []).length,
  );
  if (resized.length > 0) {
    return resized.map((list) =>
      forbiddenField(`spec.${list}`, "pod updates may not add or remove containers"),
    );
  }
  return [
    ...validateImages("spec.containers", spec.containers),
    ...validateImages("spec.initContainers", spec.initContainers),
    ...validateDeadlineChange(spec.activeDeadlineSeconds, oldSpec.activeDeadlineSeconds),
    ...validateOnlyAdded(spec.tolerations, oldSpec.tolerations),
    ...validateGateChange(spec, oldSpec),
    ...(sameValue(asIfUnchanged(spec, oldSpec), oldSpec) ? [] : [forbiddenField("spec", RULE)]),
  ];
}

function validateImages(field: string, containers: readonly Loose<Container>[] = []): Cause[] {
  return containers.flatMap(({ image }, index) => validateImage(`${field}[${index}].image`, image));
}

/** May be set, and then come nearer, never move away. */
function validateDeadlineChange(seconds: number | undefined, old: number | undefined): Cause[] {
  const field = "spec.activeDeadlineSeconds";
  if (old === undefined) return [];
  if (seconds === undefined)
    return [invalidValue(field, null, "must not update from a positive integer to nil value")];
  return seconds <= old ? [] : [invalidValue(field, seconds, "must be less than or equal to previous value")];
}

function validateOnlyAdded(
  tolerations: readonly Loose<Toleration>[] = [],
  old: readonly Loose<Toleration>[] = [],
): Cause[] {
  const withoutSeconds = (toleration: Loose<Toleration>) => without(toleration, "tolerationSeconds");
  const isKept = (before: Loose<Toleration>) =>
    tolerations.some((after) => sameValue(withoutSeconds(after), withoutSeconds(before)));
  if (old.every(isKept)) return [];
  const rule = "existing toleration can not be modified except its tolerationSeconds";
  return [forbiddenField("spec.tolerations", rule)];
}

/** The wanted spec with every change that is allowed taken back. */
function asIfUnchanged(spec: Spec, old: Spec): Spec {
  const { activeDeadlineSeconds, tolerations, terminationGracePeriodSeconds: oldGrace = 0 } = old;
  const isMadeShort = oldGrace < 0 && spec.terminationGracePeriodSeconds === 1;
  return {
    ...without(withGatesOf(spec, old), "activeDeadlineSeconds", "tolerations"),
    ...defined({ activeDeadlineSeconds, tolerations }),
    ...(isMadeShort ? { terminationGracePeriodSeconds: oldGrace } : {}),
    ...defined({
      containers: withImagesOf(spec.containers, old.containers),
      initContainers: withImagesOf(spec.initContainers, old.initContainers),
    }),
  };
}

function withImagesOf(
  containers: readonly Loose<Container>[] | undefined,
  old: readonly Loose<Container>[] = [],
): readonly Loose<Container>[] | undefined {
  return containers?.map((container, index) => ({ ...container, ...defined({ image: old[index]?.image }) }));
}

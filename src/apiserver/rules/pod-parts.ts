import type { Container, PodSpec } from "kubernetes-types/core/v1.js";
import type { ApiObject } from "../objects.ts";
import type { PodPart } from "../request.ts";
import { forbiddenField, invalidValue, type Cause } from "./causes.ts";
import { defined, without, type Loose } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { validatePodSpec } from "./pod-spec.ts";
import { qosClassOf } from "./qos.ts";
import { sameValue } from "./quantities.ts";

type Spec = Loose<PodSpec>;

/** The pod as it is, with nothing of the wish but the part that the path names. */
export function withPart(part: PodPart, wanted: PodObject, old: PodObject): ApiObject {
  const spec = wanted.spec ?? {};
  const kept = old.spec ?? {};
  if (part === "ephemeralcontainers") {
    const { ephemeralContainers: _, ...rest } = kept;
    const { ephemeralContainers } = spec;
    return withSpec(old, { ...rest, ...(ephemeralContainers === undefined ? {} : { ephemeralContainers }) });
  }
  return withSpec(old, {
    ...kept,
    ...resized("containers", spec, kept),
    ...resized("initContainers", spec, kept),
  });
}

export function validatePart(part: PodPart, pod: PodObject, old: PodObject): Cause[] {
  const causes = validatePodSpec("spec", pod.spec ?? {}, pod.metadata.name ?? "");
  return [...causes, ...(part === "resize" ? validateResize(pod, old) : validateAdded(pod, old))];
}

function withSpec(pod: PodObject, spec: Spec): ApiObject {
  return { ...pod, spec };
}

/** By name; of a container that the wish does not have nothing changes. */
function resized(list: "containers" | "initContainers", wanted: Spec, old: Spec): Spec {
  const containers = old[list];
  if (containers === undefined) return {};
  return {
    [list]: containers.map((container): Loose<Container> => {
      const wish = (wanted[list] ?? []).find(({ name }) => name === container.name);
      if (wish === undefined) return container;
      const { resources, resizePolicy } = wish;
      return {
        ...(without(container, "resources", "resizePolicy") as Loose<Container>),
        ...defined({ resources, resizePolicy: resizePolicy ?? container.resizePolicy }),
      };
    }),
  };
}

/** What runs already stays as it is. */
function validateAdded({ spec = {} }: PodObject, { spec: old = {} }: PodObject): Cause[] {
  const { ephemeralContainers = [] } = spec;
  return (old.ephemeralContainers ?? []).flatMap((before) => {
    const after = ephemeralContainers.find(({ name }) => name === before.name);
    const field = "spec.ephemeralContainers";
    if (after === undefined) {
      return [
        forbiddenField(
          field,
          `existing ephemeral containers ${JSON.stringify(before.name)} may not be removed\n`,
        ),
      ];
    }
    if (sameValue(after, before)) return [];
    return [
      forbiddenField(
        field,
        `existing ephemeral containers ${JSON.stringify(before.name)} may not be changed\n`,
      ),
    ];
  });
}

/** The class that a pod was made with says when it is pushed out; changing it would change the promise. */
function validateResize({ spec = {} }: PodObject, { spec: old = {} }: PodObject): Cause[] {
  if (qosClassOf(spec) === qosClassOf(old)) return [];
  return [invalidValue("spec", spec, "Pod QOS Class may not change as a result of resizing")];
}

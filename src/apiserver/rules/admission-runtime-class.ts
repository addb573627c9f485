import type { RuntimeClass } from "kubernetes-types/node/v1.js";
import { forbidden } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import type { LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { sameValue } from "./quantities.ts";

const CLASSES = "runtimeclasses.node.k8s.io";

/** RuntimeClass: a new pod takes over what its class costs beyond its containers, and where it can run. */
export function useRuntimeClass(deps: AdmissionDeps, pod: PodObject): ApiObject {
  const { spec = {}, metadata } = pod;
  const refuse = (why: string) => forbidden(pods, metadata.name, why);
  const name = spec.runtimeClassName;
  const found =
    name === undefined ? undefined : (deps.getObject(CLASSES, undefined, name) as LooseObject<RuntimeClass>);
  if (name !== undefined && found === undefined)
    throw refuse(`pod rejected: RuntimeClass "${name}" not found`);
  const overhead = found?.overhead === undefined ? undefined : (found.overhead.podFixed ?? {});
  if (overhead === undefined && spec.overhead !== undefined)
    throw refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  if (
    overhead !== undefined &&
    !isEmpty(spec.overhead) &&
    !sameValue({ overhead }, { overhead: spec.overhead })
  )
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  const { nodeSelector = {}, tolerations = [] } = found?.scheduling ?? {};
  for (const [key, value] of Object.entries(nodeSelector)) {
    const wanted = spec.nodeSelector?.[key];
    if (wanted !== undefined && wanted !== value)
      throw refuse(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value ?? ""}; pod.spec.nodeSelector[${key}] = ${wanted}`,
      );
  }
  const added = tolerations.filter(
    (toleration) => !(spec.tolerations ?? []).some((own) => sameValue(own, toleration)),
  );
  return {
    ...pod,
    spec: {
      ...spec,
      ...(overhead === undefined ? {} : { overhead }),
      ...(isEmpty(nodeSelector) ? {} : { nodeSelector: { ...spec.nodeSelector, ...nodeSelector } }),
      ...(added.length === 0 ? {} : { tolerations: [...(spec.tolerations ?? []), ...added] }),
    },
  };
}

function isEmpty(members: object | undefined): boolean {
  return members === undefined || Object.keys(members).length === 0;
}

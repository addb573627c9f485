import type { Toleration } from "kubernetes-types/core/v1.js";
import { forbidden } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { defined, withDefaults, type Loose } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";

/** How long a pod stays on a node that is not ready or not to be reached, unless it says otherwise. */
const TOLERATION_SECONDS = 300;

/** DefaultTolerationSeconds. */
export function addTolerations(pod: PodObject): ApiObject {
  const tolerations = pod.spec?.tolerations ?? [];
  const added = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    .filter((key) => !tolerations.some((toleration) => tolerates(toleration, key)))
    .map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: TOLERATION_SECONDS }));
  return added.length === 0
    ? pod
    : { ...pod, spec: { ...pod.spec, tolerations: [...tolerations, ...added] } };
}

function tolerates({ key = "", effect = "" }: Loose<Toleration>, taint: string): boolean {
  return (key === "" || key === taint) && (effect === "" || effect === "NoExecute");
}

/** The two classes that every cluster has; others are objects of a kind that is not served here. */
const SYSTEM_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
]);

/** Priority: worked out when a pod is created, and kept. */
export function setPriority(pod: PodObject, old?: PodObject): ApiObject {
  const spec = pod.spec ?? {};
  if (old !== undefined) {
    const { priority, preemptionPolicy } = old.spec ?? {};
    return { ...pod, spec: withDefaults(spec, defined({ priority, preemptionPolicy })) };
  }
  const className = spec.priorityClassName ?? "";
  const computed = className === "" ? 0 : SYSTEM_PRIORITIES.get(className);
  if (computed === undefined)
    throw forbidden(pods, pod.metadata.name, `no PriorityClass with name ${className} was found`);
  if (spec.priority !== undefined && spec.priority !== computed) {
    throw forbidden(
      pods,
      pod.metadata.name,
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; ` +
        `priority admission controller computed ${computed} from the given PriorityClass name`,
    );
  }
  return {
    ...pod,
    spec: withDefaults({ ...spec, priority: computed }, { preemptionPolicy: "PreemptLowerPriority" }),
  };
}

import type { Toleration } from "kubernetes-types/core/v1.js";
import type { PriorityClass } from "kubernetes-types/scheduling/v1.js";
import { forbidden } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import { SYSTEM_PRIORITY_CLASSES } from "./scheduling.ts";
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

/** Priority: worked out when a pod is created, and kept. */
export function setPriority(deps: AdmissionDeps, pod: PodObject, old?: PodObject): ApiObject {
  const spec = pod.spec ?? {};
  if (old !== undefined) {
    const { priority, preemptionPolicy } = old.spec ?? {};
    return { ...pod, spec: withDefaults(spec, defined({ priority, preemptionPolicy })) };
  }
  const className = spec.priorityClassName ?? "";
  const priorityClass = className === "" ? defaultClass(deps) : findClass(deps, className);
  if (className !== "" && priorityClass === undefined)
    throw forbidden(pods, pod.metadata.name, `no PriorityClass with name ${className} was found`);
  const { value: computed = 0, preemptionPolicy = "PreemptLowerPriority" } = (priorityClass ??
    {}) as PriorityParts;
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
    spec: withDefaults(
      {
        ...spec,
        ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass.metadata.name ?? "" }),
        priority: computed,
      },
      { preemptionPolicy },
    ),
  };
}

const CLASSES = "priorityclasses.scheduling.k8s.io";

type PriorityParts = Loose<Pick<PriorityClass, "value" | "preemptionPolicy" | "globalDefault">>;

/** Those of the system count from the first request on, before anybody has made objects of them. */
function findClass(deps: AdmissionDeps, name: string): ApiObject | undefined {
  const system = SYSTEM_PRIORITY_CLASSES.find(({ metadata }) => metadata.name === name);
  return deps.getObject(CLASSES, undefined, name) ?? system;
}

/** Of several that claim to be the default, the one with the lowest value is. */
function defaultClass(deps: AdmissionDeps): ApiObject | undefined {
  let best: ApiObject | undefined;
  for (const candidate of deps.listObjects(CLASSES)) {
    const { globalDefault, value = 0 } = candidate as PriorityParts;
    if (globalDefault !== true) continue;
    if (best === undefined || value < ((best as PriorityParts).value ?? 0)) best = candidate;
  }
  return best;
}

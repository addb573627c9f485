import {
  formatLabelSelector,
  fromLabelSelectorObject,
  type LabelSelectorObject,
} from "../../kube/selectors.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { defined } from "./loose.ts";

/** What autoscaling/v1 calls a Scale, of an object that has replicas. */
export function scaleOf(object: ApiObject): ApiObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = selectorText(fieldAt(object, "spec", "selector"));
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: defined({ name, namespace, uid, resourceVersion, creationTimestamp }),
    spec: defined({ replicas: numberAt(object, "spec") || undefined }),
    status: { replicas: numberAt(object, "status"), ...(selector === "" ? {} : { selector }) },
  };
}

export function withReplicas(object: ApiObject, replicas: number): ApiObject {
  return { ...object, spec: { ...(object["spec"] as object), replicas } };
}

function numberAt(object: ApiObject, part: "spec" | "status"): number {
  const value = fieldAt(object, part, "replicas");
  return typeof value === "number" ? value : 0;
}

/** Of a ReplicationController the selector is the labels themselves. */
function selectorText(selector: unknown): string {
  if (typeof selector !== "object" || selector === null) return "";
  const isBare = !("matchLabels" in selector) && !("matchExpressions" in selector);
  const whole = (isBare ? { matchLabels: selector } : selector) as LabelSelectorObject;
  return formatLabelSelector(fromLabelSelectorObject(whole));
}

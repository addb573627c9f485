import type { JsonObject } from "../../kube/patch/json.ts";
import { causeIf, invalidValue, required } from "./causes.ts";
import { closed, objectAt, textAt, type PackageRules } from "./definition.ts";
import { withDefaults } from "./loose.ts";

const SOURCES: ReadonlyMap<string, string> = new Map([
  ["ContainerResource", "containerResource"],
  ["External", "external"],
  ["Object", "object"],
  ["Pods", "pods"],
  ["Resource", "resource"],
]);

export const AUTOSCALING_RULES: PackageRules = {
  HorizontalPodAutoscalerSpec: {
    defaults: (spec) => withDefaults(spec, { minReplicas: 1, metrics: [CPU_AT_80_PERCENT] }),
    required: { maxReplicas: "must be set and greater than 0" },
    validate: (path, { minReplicas = 1, maxReplicas }) => [
      ...causeIf(
        Number(minReplicas) < 1,
        invalidValue(`${path}.minReplicas`, minReplicas, "must be greater than or equal to 1"),
      ),
      ...causeIf(
        maxReplicas !== undefined && Number(maxReplicas) < Number(minReplicas),
        invalidValue(`${path}.maxReplicas`, maxReplicas, "must be greater than or equal to `minReplicas`"),
      ),
    ],
  },
  HorizontalPodAutoscalerBehavior: {
    defaults: (behavior) => ({
      ...behavior,
      scaleUp: withDefaults(objectAt(behavior, "scaleUp"), {
        stabilizationWindowSeconds: 0,
        selectPolicy: "Max",
        policies: [policy("Pods", 4), policy("Percent", 100)],
      }),
      scaleDown: withDefaults(objectAt(behavior, "scaleDown"), {
        selectPolicy: "Max",
        policies: [policy("Percent", 100)],
      }),
    }),
  },
  HPAScalingRules: { values: { selectPolicy: ["Disabled", "Max", "Min"] } },
  HPAScalingPolicy: {
    zeroes: ["type"],
    validate: (path, one) => [
      ...closed(`${path}.type`, textAt(one, "type"), ["Percent", "Pods"]),
      ...["value", "periodSeconds"]
        .filter((name) => Number(one[name] ?? 0) <= 0)
        .map((name) => invalidValue(`${path}.${name}`, one[name] ?? 0, "must be greater than zero")),
    ],
  },
  MetricSpec: {
    required: { type: "must specify a metric source type" },
    values: { type: [...SOURCES.keys()] },
    validate: (path, metric) => {
      const source = SOURCES.get(textAt(metric, "type"));
      if (source === undefined || metric[source] !== undefined) return [];
      return [required(`${path}.${source}`, "must populate information for the given metric source")];
    },
  },
  MetricTarget: {
    required: { type: "must specify a metric target type" },
    values: { type: ["AverageValue", "Utilization", "Value"] },
  },
  MetricIdentifier: { required: { name: "must specify a metric name" } },
  ResourceMetricSource: { required: { name: "must specify a resource name" } },
  ContainerResourceMetricSource: {
    required: { name: "must specify a resource name", container: "must specify a container" },
  },
};

const CPU_AT_80_PERCENT = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

function policy(type: string, value: number): JsonObject {
  return { type, value, periodSeconds: 15 };
}

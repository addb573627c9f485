import type { DaemonSet, Deployment, DeploymentStrategy, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ReplicationController } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  forbiddenField,
  IMMUTABLE,
  invalidValue,
  notNegative,
  notSupported,
  required,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { validateRunningTemplate, validateSelects } from "./pod-template.ts";
import { sameValue } from "./quantities.ts";

/** What keeps a number of equal pods running. StatefulSets, whose pods differ, are in stateful-set.ts. */

export const deploymentRules: RuleParts<LooseObject<Deployment>> = {
  applyDefaults({ spec = {}, ...deployment }) {
    const { template = {}, strategy = {} } = spec;
    return {
      ...deployment,
      spec: {
        ...withDefaults(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 }),
        strategy: strategyDefaults(strategy),
        template: podTemplateDefaults(template),
      },
    };
  },

  validate({ spec = {} }) {
    const { selector, template, strategy = {}, minReadySeconds = 0, progressDeadlineSeconds } = spec;
    return [
      ...notNegative("spec.replicas", spec.replicas),
      ...validateSelects(selector, template, { owner: "deployment" }),
      ...validateRunningTemplate("spec.template", template, { owner: "ReplicaSet" }),
      ...validateStrategy(strategy),
      ...notNegative("spec.minReadySeconds", minReadySeconds),
      ...notNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit),
      ...notNegative("spec.progressDeadlineSeconds", progressDeadlineSeconds),
      ...causeIf(
        progressDeadlineSeconds !== undefined && progressDeadlineSeconds <= minReadySeconds,
        invalidValue(
          "spec.progressDeadlineSeconds",
          progressDeadlineSeconds,
          "must be greater than minReadySeconds",
        ),
      ),
    ];
  },

  validateChange: fixedSelector,
};

export const replicaSetRules: RuleParts<LooseObject<ReplicaSet>> = {
  applyDefaults: ({ spec = {}, ...set }) => ({
    ...set,
    spec: { ...withDefaults(spec, { replicas: 1 }), template: podTemplateDefaults(spec.template ?? {}) },
  }),

  validate: ({ spec = {} }) => [
    ...notNegative("spec.replicas", spec.replicas),
    ...notNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...validateSelects(spec.selector, spec.template, { owner: "deployment" }),
    ...validateRunningTemplate("spec.template", spec.template, { owner: "ReplicaSet" }),
  ],

  validateChange: fixedSelector,
};

export const daemonSetRules: RuleParts<LooseObject<DaemonSet>> = {
  applyDefaults({ spec = {}, ...set }) {
    const { updateStrategy = {}, template = {} } = spec;
    const strategy = withDefaults(updateStrategy, { type: "RollingUpdate" });
    const rollingUpdate = withDefaults(strategy.rollingUpdate ?? {}, { maxUnavailable: 1, maxSurge: 0 });
    return {
      ...set,
      spec: {
        ...withDefaults(spec, { revisionHistoryLimit: 10 }),
        updateStrategy: strategy.type === "RollingUpdate" ? { ...strategy, rollingUpdate } : strategy,
        template: podTemplateDefaults(template),
      },
    };
  },

  validate: ({ spec = {} }) => [
    ...validateSelects(spec.selector, spec.template, { owner: "daemonset" }),
    ...validateRunningTemplate("spec.template", spec.template, { owner: "DaemonSet" }),
    ...notNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...notNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit),
    ...causeIf(
      !["RollingUpdate", "OnDelete"].includes(spec.updateStrategy?.type ?? ""),
      notSupported("spec.updateStrategy.type", spec.updateStrategy?.type ?? "", [
        "RollingUpdate",
        "OnDelete",
      ]),
    ),
  ],

  validateChange: fixedSelector,
};

/** The oldest of them, whose selector is the labels themselves. */
export const replicationControllerRules: RuleParts<LooseObject<ReplicationController>> = {
  applyDefaults({ spec = {}, metadata, ...controller }) {
    const { template } = spec;
    const labels = (template?.metadata?.labels ?? {}) as Readonly<Record<string, string>>;
    const ownLabels = Object.keys(metadata.labels ?? {}).length > 0 ? metadata.labels : labels;
    return {
      ...(controller as LooseObject<ReplicationController>),
      metadata:
        ownLabels === undefined || Object.keys(ownLabels).length === 0
          ? metadata
          : { ...metadata, labels: ownLabels },
      spec: {
        ...withDefaults(spec, {
          replicas: 1,
          ...(Object.keys(labels).length === 0 ? {} : { selector: labels }),
        }),
        ...(template === undefined ? {} : { template: podTemplateDefaults(template) }),
      },
    };
  },

  validate({ spec = {} }) {
    const { selector = {}, template } = spec;
    const labels = (template?.metadata?.labels ?? {}) as Readonly<Record<string, string | undefined>>;
    const selects = Object.entries(selector).every(([key, value]) => labels[key] === value);
    return [
      ...notNegative("spec.minReadySeconds", spec.minReadySeconds),
      ...validateLabels("spec.selector", selector),
      ...(Object.keys(selector).length === 0 ? [required("spec.selector")] : []),
      ...notNegative("spec.replicas", spec.replicas),
      ...(template === undefined ? [required("spec.template")] : []),
      ...causeIf(
        template !== undefined && !selects,
        invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
      ),
      ...(template === undefined
        ? []
        : validateRunningTemplate("spec.template", template, { owner: "ReplicationController" })),
    ];
  },
};

function strategyDefaults(given: Loose<DeploymentStrategy>): Loose<DeploymentStrategy> {
  const strategy = withDefaults(given, { type: "RollingUpdate" });
  if (strategy.type !== "RollingUpdate") return strategy;
  const rollingUpdate = withDefaults(strategy.rollingUpdate ?? {}, {
    maxUnavailable: "25%",
    maxSurge: "25%",
  });
  return { ...strategy, rollingUpdate };
}

function validateStrategy({ type = "", rollingUpdate }: Loose<DeploymentStrategy>): Cause[] {
  const field = "spec.strategy";
  if (type === "Recreate") {
    return causeIf(
      rollingUpdate !== undefined,
      forbiddenField(`${field}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'"),
    );
  }
  if (type !== "RollingUpdate") return [notSupported(`${field}.type`, type, ["Recreate", "RollingUpdate"])];
  const { maxUnavailable, maxSurge } = rollingUpdate ?? {};
  return [
    ...validateShare(`${field}.rollingUpdate.maxUnavailable`, maxUnavailable),
    ...validateShare(`${field}.rollingUpdate.maxSurge`, maxSurge),
    ...causeIf(
      isNone(maxUnavailable) && isNone(maxSurge),
      invalidValue(
        `${field}.rollingUpdate.maxUnavailable`,
        maxUnavailable,
        "may not be 0 when `maxSurge` is 0",
      ),
    ),
  ];
}

/** A number of pods, or a percentage of them. */
export function validateShare(field: string, share: string | number | undefined): Cause[] {
  if (share === undefined) return [];
  if (typeof share === "number") return notNegative(field, share);
  return causeIf(
    !/^[0-9]+%$/.test(share),
    invalidValue(
      field,
      share,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
  );
}

function isNone(share: string | number | undefined): boolean {
  return share === 0 || share === "0%";
}

type Selecting = LooseObject<{ spec?: { selector?: unknown } }>;

function fixedSelector({ spec = {} }: Selecting, { spec: old = {} }: Selecting): Cause[] {
  return causeIf(
    !sameValue(spec.selector, old.selector),
    invalidValue("spec.selector", spec.selector, IMMUTABLE),
  );
}

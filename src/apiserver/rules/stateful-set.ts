import type { StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy } from "kubernetes-types/apps/v1.js";
import {
  causeIf,
  forbiddenField,
  invalidFor,
  invalidValue,
  notNegative,
  oneOf,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { claimSpecDefaults, validateClaimSpec } from "./persistent-volume-claim.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { validateRunningTemplate, validateSelects } from "./pod-template.ts";
import { sameValue } from "./quantities.ts";
import { labelProblems } from "./text-rules.ts";

type Spec = Loose<StatefulSetSpec>;

/** Pods with names and claims of their own. */
export const statefulSetRules: RuleParts<LooseObject<StatefulSet>> = {
  applyDefaults({ spec = {}, ...set }) {
    const { template = {}, volumeClaimTemplates, updateStrategy = {} } = spec;
    return {
      ...set,
      spec: {
        ...withDefaults(spec, { podManagementPolicy: "OrderedReady", replicas: 1, revisionHistoryLimit: 10 }),
        persistentVolumeClaimRetentionPolicy: withDefaults(spec.persistentVolumeClaimRetentionPolicy ?? {}, {
          whenDeleted: "Retain",
          whenScaled: "Retain",
        }),
        updateStrategy: strategyDefaults(updateStrategy),
        template: podTemplateDefaults(template),
        ...(volumeClaimTemplates === undefined
          ? {}
          : { volumeClaimTemplates: volumeClaimTemplates.map(claimTemplateDefaults) }),
      },
    };
  },

  validate({ spec = {} }) {
    const { selector, template, volumeClaimTemplates = [], serviceName = "" } = spec;
    const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {};
    const retention = "spec.persistentVolumeClaimRetentionPolicy";
    return [
      ...causeIf(
        !["OrderedReady", "Parallel"].includes(spec.podManagementPolicy ?? ""),
        invalidValue(
          "spec.podManagementPolicy",
          spec.podManagementPolicy,
          "must be 'OrderedReady' or 'Parallel'",
        ),
      ),
      ...validateStrategy(spec.updateStrategy ?? {}),
      ...oneOf(`${retention}.whenDeleted`, whenDeleted, ["Retain", "Delete"]),
      ...oneOf(`${retention}.whenScaled`, whenScaled, ["Retain", "Delete"]),
      ...volumeClaimTemplates.flatMap(({ spec: claim = {} }, index) =>
        validateClaimSpec(`spec.volumeClaimTemplates[${index}].spec`, claim),
      ),
      ...notNegative("spec.replicas", spec.replicas),
      ...notNegative("spec.minReadySeconds", spec.minReadySeconds),
      ...notNegative("spec.ordinals.start", spec.ordinals?.start),
      ...(serviceName === "" ? [] : invalidFor("spec.serviceName", serviceName, labelProblems(serviceName))),
      ...validateSelects(selector, template, { owner: "statefulset" }),
      ...validateRunningTemplate("spec.template", withClaims(template ?? {}, spec), { owner: "StatefulSet" }),
    ];
  },

  validateChange({ spec = {} }, { spec: old = {} }) {
    const changeable = new Set([
      "replicas",
      "ordinals",
      "template",
      "updateStrategy",
      "revisionHistoryLimit",
      "persistentVolumeClaimRetentionPolicy",
      "minReadySeconds",
    ]);
    const fixed = (one: Spec) =>
      Object.fromEntries(Object.entries(one).filter(([key]) => !changeable.has(key)));
    return causeIf(
      !sameValue(fixed(spec), fixed(old)),
      forbiddenField(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
          "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ),
    );
  },
};

function strategyDefaults(given: Loose<StatefulSetUpdateStrategy>): Loose<StatefulSetUpdateStrategy> {
  const strategy =
    given.type === undefined
      ? withDefaults({ ...given, type: "RollingUpdate" }, { rollingUpdate: {} })
      : given;
  if (strategy.type !== "RollingUpdate" || strategy.rollingUpdate === undefined) return strategy;
  return { ...strategy, rollingUpdate: withDefaults(strategy.rollingUpdate, { partition: 0 }) };
}

function claimTemplateDefaults<T extends NonNullable<Spec["volumeClaimTemplates"]>[number]>(claim: T): T {
  const typed = { kind: "PersistentVolumeClaim", apiVersion: "v1", status: { phase: "Pending" } };
  return { ...typed, ...claim, spec: claimSpecDefaults(claim.spec ?? {}) };
}

function validateStrategy({ type = "", rollingUpdate }: Loose<StatefulSetUpdateStrategy>): Cause[] {
  const field = "spec.updateStrategy";
  if (type === "RollingUpdate")
    return notNegative(`${field}.rollingUpdate.partition`, rollingUpdate?.partition);
  if (type !== "OnDelete") return [invalidValue(field, { type }, "must be 'RollingUpdate' or 'OnDelete'")];
  return causeIf(
    rollingUpdate !== undefined,
    invalidValue(`${field}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"),
  );
}

/** The volumes that claims will become count as volumes of the pod; names are the set's to give. */
function withClaims(
  template: NonNullable<Spec["template"]>,
  { volumeClaimTemplates = [] }: Spec,
): NonNullable<Spec["template"]> {
  const names = new Set(volumeClaimTemplates.map(({ metadata }) => metadata?.name));
  const { hostname: _hostname, subdomain: _subdomain, volumes = [], ...rest } = template.spec ?? {};
  return {
    ...template,
    spec: {
      ...rest,
      volumes: [
        ...volumeClaimTemplates.map(({ metadata = {} }) => {
          const { name = "" } = metadata;
          return { name, persistentVolumeClaim: { claimName: name } };
        }),
        ...volumes.filter(({ name }) => !names.has(name)),
      ],
    },
  };
}

import type { CronJob, Job, JobSpec } from "kubernetes-types/batch/v1.js";
import {
  causeIf,
  forbiddenField,
  IMMUTABLE,
  invalidValue,
  notNegative,
  notSupported,
  oneOf,
  required,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { validatePodTemplate, validateSelects } from "./pod-template.ts";
import { sameValue } from "./quantities.ts";

type JobObject = LooseObject<Job>;
type Spec = Loose<JobSpec>;

/** As many as an int32 holds: with a limit for each index there is none for all together. */
const BACKOFF_UNLIMITED = 2_147_483_647;
const UID = "batch.kubernetes.io/controller-uid";
const NAME = "batch.kubernetes.io/job-name";
/** Pods of a CronJob's job are named after it, and eleven characters are for the moment. */
const CRON_NAME_MAX = 52;

export const jobRules: RuleParts<JobObject> = {
  applyDefaults({ spec: given = {}, metadata, ...job }) {
    const labels = given.template?.metadata?.labels as Readonly<Record<string, string>> | undefined;
    const hasLabels = Object.keys(metadata.labels ?? {}).length > 0;
    return {
      ...(job as JobObject),
      metadata: labels === undefined || hasLabels ? metadata : { ...metadata, labels },
      spec: jobSpecDefaults(given),
    };
  },

  prepareCreate: (job) => (job.spec?.manualSelector === true ? job : withSelector(job)),

  validate({ spec = {}, metadata }) {
    return [
      ...validateSpec(spec),
      ...validateSelects(spec.selector, spec.template, { owner: "job" }),
      ...validateOwnLabels(spec, metadata.uid ?? ""),
    ];
  },

  validateChange({ spec = {} }, { spec: old = {} }) {
    const fixed = [
      "selector",
      "completionMode",
      "podFailurePolicy",
      "backoffLimitPerIndex",
      "managedBy",
    ] as const;
    const isIndexed = spec.completionMode === "Indexed";
    return [
      ...fixed
        .filter((field) => !sameValue(spec[field], old[field]))
        .map((field) => invalidValue(`spec.${field}`, spec[field], IMMUTABLE)),
      ...causeIf(
        !isIndexed && spec.completions !== old.completions,
        invalidValue("spec.completions", spec.completions, IMMUTABLE),
      ),
      // The place of pods that are not there yet may still change.
      ...causeIf(
        old.suspend !== true && !sameValue(spec.template, old.template),
        invalidValue("spec.template", spec.template, IMMUTABLE),
      ),
    ];
  },
};

export const cronJobRules: RuleParts<LooseObject<CronJob>> = {
  applyDefaults({ spec = {}, ...job }) {
    const { jobTemplate = {} } = spec;
    return {
      ...job,
      spec: {
        ...withDefaults(spec, {
          concurrencyPolicy: "Allow",
          suspend: false,
          successfulJobsHistoryLimit: 3,
          failedJobsHistoryLimit: 1,
        }),
        // A template has no defaults of a job, only those of its pod.
        jobTemplate: {
          ...jobTemplate,
          spec: { ...jobTemplate.spec, template: podTemplateDefaults(jobTemplate.spec?.template ?? {}) },
        },
      },
    };
  },

  validate({ spec = {}, metadata: { name = "" } }) {
    const { schedule = "", concurrencyPolicy, jobTemplate = {} } = spec;
    return [
      ...causeIf(
        name.length > CRON_NAME_MAX,
        invalidValue("metadata.name", name, `must be no more than ${CRON_NAME_MAX} characters`),
      ),
      ...(schedule === "" ? [required("spec.schedule")] : validateSchedule(schedule)),
      ...oneOf("spec.concurrencyPolicy", concurrencyPolicy, ["Allow", "Forbid", "Replace"]),
      ...notNegative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds),
      ...notNegative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit),
      ...notNegative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit),
      ...validateSpec(jobTemplate.spec ?? {}, "spec.jobTemplate.spec"),
      ...causeIf(
        jobTemplate.spec?.manualSelector === true,
        notSupported("spec.jobTemplate.spec.manualSelector", true, ["nil", "false"]),
      ),
    ];
  },
};

function jobSpecDefaults(spec: Spec): Spec {
  const isBare = spec.completions === undefined && spec.parallelism === undefined;
  return {
    ...withDefaults(spec, {
      ...(isBare ? { completions: 1 } : {}),
      parallelism: 1,
      backoffLimit: spec.backoffLimitPerIndex === undefined ? 6 : BACKOFF_UNLIMITED,
      completionMode: "NonIndexed",
      suspend: false,
      podReplacementPolicy: spec.podFailurePolicy === undefined ? "TerminatingOrFailed" : "Failed",
      manualSelector: false,
    }),
    template: podTemplateDefaults(spec.template ?? {}),
  };
}

/** The pods of a job are those with its uid, whatever else runs under the same labels. */
function withSelector(job: JobObject): JobObject {
  const { uid = "", name = "" } = job.metadata;
  const { template = {}, selector = {} } = job.spec ?? {};
  const labels = template.metadata?.labels ?? {};
  const marks = { "controller-uid": uid, [UID]: uid, "job-name": name, [NAME]: name };
  return {
    ...job,
    spec: {
      ...job.spec,
      selector: { ...selector, matchLabels: { [UID]: uid, ...selector.matchLabels } },
      template: { ...template, metadata: { ...template.metadata, labels: { ...marks, ...labels } } },
    },
  };
}

function validateOwnLabels(spec: Spec, uid: string): Cause[] {
  if (spec.manualSelector === true) return [];
  const labels = (spec.template?.metadata?.labels ?? {}) as Readonly<Record<string, string | undefined>>;
  const field = "spec.template.metadata.labels";
  const value = labels[UID];
  if (value === undefined) return [required(field, `must be '${uid}'`)];
  return causeIf(value !== uid, invalidValue(field, labels, `must be '${uid}'`));
}

function validateSpec(spec: Spec, field = "spec"): Cause[] {
  const { restartPolicy } = spec.template?.spec ?? {};
  const policies = ["OnFailure", "Never"];
  return [
    ...notNegative(`${field}.parallelism`, spec.parallelism),
    ...notNegative(`${field}.completions`, spec.completions),
    ...notNegative(`${field}.activeDeadlineSeconds`, spec.activeDeadlineSeconds),
    ...notNegative(`${field}.backoffLimit`, spec.backoffLimit),
    ...notNegative(`${field}.ttlSecondsAfterFinished`, spec.ttlSecondsAfterFinished),
    ...notNegative(`${field}.backoffLimitPerIndex`, spec.backoffLimitPerIndex),
    ...oneOf(`${field}.completionMode`, spec.completionMode, ["NonIndexed", "Indexed"]),
    ...causeIf(
      spec.completionMode === "Indexed" && spec.completions === undefined,
      required(`${field}.completions`, "when completion mode is Indexed"),
    ),
    ...causeIf(
      spec.backoffLimitPerIndex !== undefined && spec.completionMode !== "Indexed",
      forbiddenField(`${field}.backoffLimitPerIndex`, "requires indexed completion mode"),
    ),
    ...validatePodTemplate(`${field}.template`, spec.template),
    ...causeIf(
      !policies.includes(restartPolicy ?? ""),
      restartPolicy === "Always" || restartPolicy === undefined
        ? required(`${field}.template.spec.restartPolicy`, `valid values: "OnFailure", "Never"`)
        : notSupported(`${field}.template.spec.restartPolicy`, restartPolicy, policies),
    ),
  ];
}

/** Five fields, or one of the names for them; what the fields say is for the controller to read. */
function validateSchedule(schedule: string): Cause[] {
  const field = "spec.schedule";
  if (/TZ=/.test(schedule)) {
    return [
      invalidValue(field, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ];
  }
  if (/^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every\s+\S+)$/.test(schedule)) return [];
  const count = schedule.trim().split(/\s+/).length;
  return causeIf(
    count !== 5,
    invalidValue(
      field,
      schedule,
      `expected exactly 5 fields, found ${count}: [${schedule.trim().split(/\s+/).join(" ")}]`,
    ),
  );
}

import type { ApiObject } from "../objects.ts";
import { ageOf, ageText } from "./age.ts";
import { conditionStatus, flagAt, listAt, numberAt, textAt } from "./fields.ts";
import {
  ageColumn,
  column,
  createPrinter,
  isDeleting,
  nameColumn,
  wideColumn,
  type Column,
  type PrintContext,
} from "./printer.ts";
import { containerColumns, labelsText, selectorText } from "./selectors.ts";

/** What runs pods. */

const template = containerColumns("spec", "template", "spec");

function count(name: string, description: string, ...path: readonly string[]): Column {
  return column(name, description, (object) => numberAt(object, ...path) ?? 0, { type: "integer" });
}

function ready(object: ApiObject): string {
  return `${numberAt(object, "status", "readyReplicas") ?? 0}/${numberAt(object, "spec", "replicas") ?? 0}`;
}

const desired = count("Desired", "How many pods there should be", "spec", "replicas");
const current = count("Current", "How many pods there are", "status", "replicas");
const isReady = count("Ready", "How many of them are ready", "status", "readyReplicas");

const selector = (nothing = "<none>") =>
  wideColumn("Selector", "The labels by which it finds its pods", (object) =>
    selectorText(object, ["spec", "selector"], nothing),
  );

export const deploymentPrinter = createPrinter([
  nameColumn,
  column("Ready", "How many pods are ready, of how many", ready),
  column(
    "Up-to-date",
    "How many are of the latest template",
    (object) => numberAt(object, "status", "updatedReplicas") ?? 0,
  ),
  column(
    "Available",
    "How many have been ready long enough",
    (object) => numberAt(object, "status", "availableReplicas") ?? 0,
  ),
  ageColumn,
  ...template,
  selector(""),
]);

export const replicaSetPrinter = createPrinter([
  nameColumn,
  desired,
  current,
  isReady,
  ageColumn,
  ...template,
  selector(),
]);

export const replicationControllerPrinter = createPrinter([
  nameColumn,
  desired,
  current,
  isReady,
  ageColumn,
  ...template,
  wideColumn("Selector", "The labels by which it finds its pods", (object) =>
    labelsText(object, "spec", "selector"),
  ),
]);

export const statefulSetPrinter = createPrinter([
  nameColumn,
  column("Ready", "How many pods are ready, of how many", ready),
  ageColumn,
  ...template,
]);

export const daemonSetPrinter = createPrinter([
  nameColumn,
  count("Desired", "On how many nodes it should run", "status", "desiredNumberScheduled"),
  count("Current", "On how many it runs", "status", "currentNumberScheduled"),
  count("Ready", "On how many it is ready", "status", "numberReady"),
  count("Up-to-date", "On how many it is of the latest template", "status", "updatedNumberScheduled"),
  count("Available", "On how many it has been ready long enough", "status", "numberAvailable"),
  column("Node Selector", "The labels of nodes it runs on", (object) =>
    labelsText(object, "spec", "template", "spec", "nodeSelector"),
  ),
  ageColumn,
  ...template,
  selector(),
]);

export const controllerRevisionPrinter = createPrinter([
  nameColumn,
  column("Controller", "Whose template it keeps", controllerText),
  column("Revision", "Which state of it", (object) => numberAt(object, "revision") ?? 0),
  ageColumn,
]);

export const jobPrinter = createPrinter([
  nameColumn,
  column("Status", "How far it is", jobStatus),
  column("Completions", "How many pods have succeeded, of how many", completions),
  column("Duration", "How long it took, or has taken so far", jobDuration),
  ageColumn,
  ...template,
  selector(),
]);

export const cronJobPrinter = createPrinter([
  nameColumn,
  column("Schedule", "When jobs are started", (object) => textAt(object, "spec", "schedule")),
  column("Timezone", "In whose time", (object) => textAt(object, "spec", "timeZone") || "<none>"),
  column(
    "Suspend",
    "Whether no more are started",
    (object) => {
      const suspend = flagAt(object, "spec", "suspend");
      return suspend === undefined ? "<unset>" : suspend ? "True" : "False";
    },
    { type: "boolean" },
  ),
  column("Active", "How many run", (object) => listAt(object, "status", "active").length, {
    type: "integer",
  }),
  column("Last Schedule", "How long ago one was started", (object, { nowMs }) => {
    const last = textAt(object, "status", "lastScheduleTime");
    return last === "" ? "<none>" : ageOf(last, nowMs);
  }),
  ageColumn,
  ...containerColumns("spec", "jobTemplate", "spec", "template", "spec"),
  wideColumn("Selector", "The labels by which jobs find their pods", (object) =>
    selectorText(object, ["spec", "jobTemplate", "spec", "selector"]),
  ),
]);

export const podTemplatePrinter = createPrinter([
  nameColumn,
  ...containerColumns("template", "spec").map((one) => ({ ...one, priority: 0 as const })),
  column("Pod Labels", "The labels of its pods", (object) =>
    labelsText(object, "template", "metadata", "labels"),
  ),
]);

function controllerText(object: ApiObject): string {
  const owner = (object.metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
  if (owner === undefined) return "<none>";
  const group = owner.apiVersion.includes("/") ? owner.apiVersion.split("/")[0] : "";
  return `${owner.kind.toLowerCase()}${group === "" ? "" : `.${group}`}/${owner.name}`;
}

function jobStatus(job: ApiObject): string {
  const has = (type: string) => conditionStatus(job, type) === "True";
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (isDeleting(job)) return "Terminating";
  return ["Suspended", "FailureTarget", "SuccessCriteriaMet"].find(has) ?? "Running";
}

function completions(job: ApiObject): string {
  const succeeded = numberAt(job, "status", "succeeded") ?? 0;
  const wanted = numberAt(job, "spec", "completions");
  if (wanted !== undefined) return `${succeeded}/${wanted}`;
  const parallelism = numberAt(job, "spec", "parallelism") ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: ApiObject, { nowMs }: PrintContext): string {
  const start = textAt(job, "status", "startTime");
  if (start === "") return "";
  const end = textAt(job, "status", "completionTime");
  return ageText((end === "" ? nowMs : Date.parse(end)) - Date.parse(start));
}

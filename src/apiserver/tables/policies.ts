import type { ApiObject } from "../objects.ts";
import { fieldAt } from "../objects.ts";
import { isJsonObject } from "../../kube/patch/json.ts";
import { ageText } from "./age.ts";
import { conditionStatus, flagAt, has, listAt, numberAt, quantityAt, textAt } from "./fields.ts";
import { ageColumn, column, createPrinter, isDeleting, nameColumn, type Column } from "./printer.ts";

/** What says who may have what, and who comes first. */

export const resourceQuotaPrinter = createPrinter([
  nameColumn,
  column("Request", "What is used of what may be requested", (quota) =>
    usage(quota, (name) => !name.startsWith("limits.")),
  ),
  column("Limit", "What is used of what limits may add up to", (quota) =>
    usage(quota, (name) => name.startsWith("limits.")),
  ),
  ageColumn,
]);

export const podDisruptionBudgetPrinter = createPrinter([
  nameColumn,
  column("Min Available", "How many pods must stay", (budget) => share(budget, "minAvailable")),
  column("Max Unavailable", "How many may be gone", (budget) => share(budget, "maxUnavailable")),
  column(
    "Allowed Disruptions",
    "How many may go now",
    (budget) => numberAt(budget, "status", "disruptionsAllowed") ?? 0,
    {
      type: "integer",
    },
  ),
  ageColumn,
]);

export const priorityClassPrinter = createPrinter([
  nameColumn,
  column("Value", "Higher goes first", (item) => numberAt(item, "value") ?? 0, { type: "integer" }),
  column(
    "Global-Default",
    "Whether pods without a class get it",
    (item) => flagAt(item, "globalDefault") ?? false,
    {
      type: "boolean",
    },
  ),
  ageColumn,
  column("PreemptionPolicy", "Whether its pods push others off a node", (item) =>
    textAt(item, "preemptionPolicy"),
  ),
]);

export const runtimeClassPrinter = createPrinter([
  nameColumn,
  column("Handler", "What runs the containers", (item) => textAt(item, "handler")),
  ageColumn,
]);

export const horizontalPodAutoscalerPrinter = createPrinter([
  nameColumn,
  column(
    "Reference",
    "What it scales",
    (item) =>
      `${textAt(item, "spec", "scaleTargetRef", "kind")}/${textAt(item, "spec", "scaleTargetRef", "name")}`,
  ),
  column("Targets", "What it measures, and where it should be", metricsText),
  column("MinPods", "How few", (item) => String(numberAt(item, "spec", "minReplicas") ?? "<unset>")),
  column("MaxPods", "How many", (item) => numberAt(item, "spec", "maxReplicas") ?? 0),
  column("Replicas", "How many there are", (item) => numberAt(item, "status", "currentReplicas") ?? 0),
  ageColumn,
]);

export const certificateSigningRequestPrinter = createPrinter([
  nameColumn,
  ageColumn,
  column("SignerName", "Who is asked", (item) => textAt(item, "spec", "signerName") || "<none>"),
  column("Requestor", "Who asks", (item) => textAt(item, "spec", "username")),
  column("RequestedDuration", "For how long", (item) => {
    const seconds = numberAt(item, "spec", "expirationSeconds");
    return seconds === undefined ? "<none>" : ageText(seconds * 1_000);
  }),
  column("Condition", "What became of it", csrState),
]);

function webhookPrinter() {
  const webhooks = column("Webhooks", "How many it calls", (item) => listAt(item, "webhooks").length, {
    type: "integer",
  });
  return createPrinter([nameColumn, webhooks, ageColumn]);
}

export const webhookConfigurationPrinter = webhookPrinter();

function policyPrinter(name: string, field: string) {
  return createPrinter([
    nameColumn,
    column(name, "How many it has", (item) => listAt(item, "spec", field).length, { type: "integer" }),
    column("ParamKind", "What its parameters are kept in", (item) =>
      has(item, "spec", "paramKind")
        ? `${textAt(item, "spec", "paramKind", "apiVersion")}/${textAt(item, "spec", "paramKind", "kind")}`
        : "<unset>",
    ),
    ageColumn,
  ]);
}

export const validatingPolicyPrinter = policyPrinter("Validations", "validations");
export const mutatingPolicyPrinter = policyPrinter("Mutations", "mutations");

export const policyBindingPrinter = createPrinter([
  nameColumn,
  column("PolicyName", "Which policy it puts to work", (item) => textAt(item, "spec", "policyName")),
  column("ParamRef", "With which parameters", (item) => {
    const name = textAt(item, "spec", "paramRef", "name");
    if (name === "") return "<unset>";
    return `${textAt(item, "spec", "paramRef", "namespace") || "*"}/${name}`;
  }),
  ageColumn,
]);

export const flowSchemaPrinter = createPrinter([
  nameColumn,
  column("PriorityLevel", "Where its requests go", (item) =>
    textAt(item, "spec", "priorityLevelConfiguration", "name"),
  ),
  column(
    "MatchingPrecedence",
    "Lower is asked first",
    (item) => numberAt(item, "spec", "matchingPrecedence") ?? 0,
  ),
  column(
    "DistinguisherMethod",
    "What is one flow",
    (item) => textAt(item, "spec", "distinguisherMethod", "type") || "<none>",
  ),
  ageColumn,
  column("MissingPL", "Whether that level is missing", (item) => conditionStatus(item, "Dangling") ?? "?"),
]);

export const priorityLevelPrinter = createPrinter([
  nameColumn,
  column("Type", "Whether it has limits", (item) => textAt(item, "spec", "type")),
  limited("NominalConcurrencyShares", "Its part of the server", "nominalConcurrencyShares"),
  limited("Queues", "How many there are", "limitResponse", "queuing", "queues"),
  limited("HandSize", "How many one flow may use", "limitResponse", "queuing", "handSize"),
  limited("QueueLengthLimit", "How many wait in one", "limitResponse", "queuing", "queueLengthLimit"),
  ageColumn,
]);

export const ageOnlyPrinter = createPrinter([nameColumn, ageColumn]);

export const resourceClaimPrinter = createPrinter([
  nameColumn,
  column("State", "Whether it has its devices", (claim) => {
    const isAllocated = has(claim, "status", "allocation");
    return [
      ...(isDeleting(claim) ? ["deleted"] : []),
      ...(isAllocated ? ["allocated"] : isDeleting(claim) ? [] : ["pending"]),
      ...(isAllocated && listAt(claim, "status", "reservedFor").length > 0 ? ["reserved"] : []),
    ].join(",");
  }),
  ageColumn,
]);

export const resourceSlicePrinter = createPrinter([
  nameColumn,
  column("Node", "Where the devices are", (slice) => textAt(slice, "spec", "nodeName")),
  column("Driver", "Whose they are", (slice) => textAt(slice, "spec", "driver")),
  column("Pool", "The pool they belong to", (slice) => textAt(slice, "spec", "pool", "name")),
  ageColumn,
]);

function usage(quota: ApiObject, isShown: (name: string) => boolean): string {
  const hard = fieldAt(quota, "status", "hard");
  if (!isJsonObject(hard)) return "";
  return Object.keys(hard)
    .filter(isShown)
    .sort()
    .map((name) => `${name}: ${quantityAt(quota, "status", "used", name)}/${quantityAt(hard, name)}`)
    .join(", ");
}

function share(budget: ApiObject, field: string): string {
  return has(budget, "spec", field) ? quantityAt(budget, "spec", field) : "N/A";
}

function limited(name: string, description: string, ...path: readonly string[]): Column {
  return column(name, description, (item) => numberAt(item, "spec", "limited", ...path) ?? "<none>");
}

function csrState(request: ApiObject): string {
  const types = listAt(request, "status", "conditions").map((condition) => textAt(condition, "type"));
  const decided = types.includes("Denied") ? "Denied" : types.includes("Approved") ? "Approved" : "Pending";
  return [
    decided,
    ...(types.includes("Failed") ? ["Failed"] : []),
    ...(textAt(request, "status", "certificate") === "" ? [] : ["Issued"]),
  ].join(",");
}

/** Of each metric: where it is, and where it should be. */
function metricsText(item: ApiObject): string {
  const specs = listAt(item, "spec", "metrics");
  const now = listAt(item, "status", "currentMetrics");
  const texts = specs.map((spec, index) => {
    const type = textAt(spec, "type");
    const source = `${type.slice(0, 1).toLowerCase()}${type.slice(1)}`;
    const target = fieldAt(spec, source, "target");
    const current = fieldAt(now[index], source, "current");
    const name =
      type === "Resource" || type === "ContainerResource" ? `${textAt(spec, source, "name")}: ` : "";
    const amount = (object: unknown, field: string) =>
      has(object, field)
        ? `${quantityAt(object, field)}${field === "averageUtilization" ? "%" : ""}`
        : undefined;
    const field =
      ["averageValue", "averageUtilization", "value"].find((one) => has(target, one)) ?? "averageUtilization";
    const suffix = field === "averageValue" && (type === "External" || type === "Object") ? " (avg)" : "";
    return `${name}${amount(current, field) ?? "<unknown>"}/${amount(target, field) ?? "<auto>"}${suffix}`;
  });
  if (texts.length === 0) return "<none>";
  return texts.length > 2
    ? `${texts.slice(0, 2).join(", ")} + ${texts.length - 2} more...`
    : texts.join(", ");
}

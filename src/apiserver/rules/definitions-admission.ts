import { isJsonObject } from "../../kube/patch/json.ts";
import { causeIf, invalidValue, required } from "./causes.ts";
import { expressionCauses, mutatedOperationCauses } from "../policies/expression-rules.ts";
import { isEmpty, type DefinitionRules, type PackageRules } from "./definition.ts";
import { withDefaults } from "./loose.ts";

const FAILURE_POLICY = ["Fail", "Ignore"];
const MATCH_POLICY = ["Equivalent", "Exact"];
const EVERYTHING = { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} };
const NO_SIDE_EFFECTS = ["None", "NoneOnDryRun"];

const webhook: DefinitionRules = {
  defaults: (hook) => withDefaults(hook, { ...EVERYTHING, failurePolicy: "Fail", timeoutSeconds: 10 }),
  required: {
    sideEffects: "must specify one of None, NoneOnDryRun",
    admissionReviewVersions: "must specify one of v1, v1beta1",
  },
  values: { failurePolicy: FAILURE_POLICY, matchPolicy: MATCH_POLICY, sideEffects: NO_SIDE_EFFECTS },
  validate: (path, { timeoutSeconds = 10 }) =>
    causeIf(
      Number(timeoutSeconds) < 1 || Number(timeoutSeconds) > 30,
      invalidValue(
        `${path}.timeoutSeconds`,
        timeoutSeconds,
        "the timeout value must be between 1 and 30 seconds",
      ),
    ),
};

const admissionRule: DefinitionRules = {
  defaults: (rule) => withDefaults(rule, { scope: "*" }),
  required: { operations: "", apiGroups: "", apiVersions: "", resources: "" },
  values: { scope: ["*", "Cluster", "Namespaced"] },
};

const policySpec: DefinitionRules = {
  defaults: (spec) => withDefaults(spec, { failurePolicy: "Fail" }),
  required: { matchConstraints: "" },
  values: { failurePolicy: FAILURE_POLICY },
  validate: (path, { matchConstraints }) =>
    causeIf(
      isJsonObject(matchConstraints) && isEmpty(matchConstraints["resourceRules"]),
      required(`${path}.matchConstraints.resourceRules`),
    ),
};

export const ADMISSION_RULES: PackageRules = {
  ValidatingWebhook: webhook,
  MutatingWebhook: {
    ...webhook,
    defaults: (hook) => withDefaults(webhook.defaults?.(hook) ?? hook, { reinvocationPolicy: "Never" }),
    values: { ...webhook.values, reinvocationPolicy: ["IfNeeded", "Never"] },
  },
  WebhookClientConfig: {
    validate: (path, { url, service }) =>
      causeIf(
        (url === undefined) === (service === undefined),
        required(path, "exactly one of url or service is required"),
      ),
  },
  ServiceReference: { defaults: (service) => withDefaults(service, { port: 443 }) },
  RuleWithOperations: admissionRule,
  NamedRuleWithOperations: admissionRule,
  MatchResources: {
    defaults: (resources) => withDefaults(resources, EVERYTHING),
    values: { matchPolicy: MATCH_POLICY },
  },
  ValidatingAdmissionPolicySpec: {
    ...policySpec,
    validate: (path, spec) => [
      ...(policySpec.validate?.(path, spec) ?? []),
      ...expressionCauses(path, spec),
      ...(isEmpty(spec["validations"]) && isEmpty(spec["auditAnnotations"])
        ? ["validations", "auditAnnotations"].map((name) =>
            required(`${path}.${name}`, "validations or auditAnnotations must contain at least one item"),
          )
        : []),
    ],
  },
  MutatingAdmissionPolicySpec: {
    ...policySpec,
    required: {
      ...policySpec.required,
      mutations: "mutations must contain at least one item",
      reinvocationPolicy: "",
    },
    values: { ...policySpec.values, reinvocationPolicy: ["IfNeeded", "Never"] },
    validate: (path, spec) => [
      ...(policySpec.validate?.(path, spec) ?? []),
      ...mutatedOperationCauses(path, spec),
      ...expressionCauses(path, spec),
    ],
  },
  Mutation: {
    values: { patchType: ["ApplyConfiguration", "JSONPatch"] },
    validate: (path, mutation) =>
      [
        ["JSONPatch", "jsonPatch"],
        ["ApplyConfiguration", "applyConfiguration"],
      ].flatMap(([type = "", name = ""]) =>
        causeIf(
          mutation["patchType"] === type && mutation[name] === undefined,
          required(`${path}.${name}`, `must be specified when patchType is ${type}`),
        ),
      ),
  },
  JSONPatch: { required: { expression: "" } },
  ApplyConfiguration: { required: { expression: "" } },
  ParamKind: { required: { apiVersion: "", kind: "" } },
  ParamRef: {
    required: { parameterNotFoundAction: "" },
    values: { parameterNotFoundAction: ["Allow", "Deny"] },
    validate: (path, { name = "", selector }) =>
      causeIf(
        name === "" && selector === undefined,
        required(path, "one of name or selector must be specified"),
      ),
  },
  ValidatingAdmissionPolicyBindingSpec: {
    required: { validationActions: "at least one validation action is required" },
  },
  MutatingAdmissionPolicyBindingSpec: { required: { policyName: "" } },
};

import { causeIf, invalidValue, required } from "./causes.ts";
import { closed, isEmpty, objectAt, textAt, type PackageRules } from "./definition.ts";
import { withDefaults } from "./loose.ts";

export const FLOW_RULES: PackageRules = {
  FlowSchemaSpec: { defaults: (spec) => withDefaults(spec, { matchingPrecedence: 1_000 }) },
  PriorityLevelConfigurationReference: { required: { name: "must reference a priority level" } },
  FlowDistinguisherMethod: {
    zeroes: ["type"],
    validate: (path, method) => closed(`${path}.type`, textAt(method, "type"), ["ByNamespace", "ByUser"]),
  },
  PolicyRulesWithSubjects: {
    required: { subjects: "subjects must contain at least one value" },
    validate: (path, { resourceRules, nonResourceRules }) =>
      causeIf(
        isEmpty(resourceRules) && isEmpty(nonResourceRules),
        required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"),
      ),
  },
  Subject: {
    zeroes: ["kind"],
    validate: (path, subject) => {
      const kind = textAt(subject, "kind");
      const member = `${kind.slice(0, 1).toLowerCase()}${kind.slice(1)}`;
      const causes = closed(`${path}.kind`, kind, ["Group", "ServiceAccount", "User"]);
      if (causes.length > 0 || subject[member] !== undefined) return causes;
      return [required(`${path}.${member}`, `${member} is required when subject kind is '${kind}'`)];
    },
  },
  ResourcePolicyRule: {
    required: {
      verbs: "verbs must contain at least one value",
      apiGroups: "resource rules must supply at least one api group",
      resources: "resource rules must supply at least one resource",
    },
    validate: (path, { clusterScope = false, namespaces }) =>
      causeIf(
        clusterScope === false && isEmpty(namespaces),
        required(
          `${path}.namespaces`,
          "resource rules that are not cluster scoped must supply at least one namespace",
        ),
      ),
  },
  NonResourcePolicyRule: {
    required: {
      verbs: "verbs must contain at least one value",
      nonResourceURLs: "nonResourceURLs must contain at least one value",
    },
  },
  PriorityLevelConfiguration: {
    validate: (_, object) => {
      const { type } = objectAt(object, "spec");
      const isExempt = objectAt(object, "metadata")["name"] === "exempt";
      return causeIf(
        type !== undefined && isExempt !== (type === "Exempt"),
        invalidValue("spec.type", type, "must be 'Exempt' if and only if `name` is 'exempt'"),
      );
    },
  },
  PriorityLevelConfigurationSpec: {
    values: { type: ["Exempt", "Limited"] },
    validate: (path, { type, limited }) =>
      causeIf(
        type === "Limited" && limited === undefined,
        required(`${path}.limited`, "must not be empty when type is Limited"),
      ),
  },
  ExemptPriorityLevelConfiguration: {
    defaults: (exempt) => withDefaults(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 }),
  },
  LimitedPriorityLevelConfiguration: {
    defaults: (limited) => withDefaults(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 }),
  },
  LimitResponse: {
    values: { type: ["Queue", "Reject"] },
    validate: (path, { type, queuing }) =>
      causeIf(
        type === "Queue" && queuing === undefined,
        required(`${path}.queuing`, "must not be empty if limited.limitResponse.type is Limited"),
      ),
  },
  QueuingConfiguration: {
    defaults: (queuing) => withDefaults(queuing, { queues: 64, handSize: 8, queueLengthLimit: 50 }),
  },
};

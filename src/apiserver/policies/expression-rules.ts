import type { JsonObject } from "../../kube/patch/json.ts";
import { causeIf, invalidValue, notSupported, required, type Cause } from "../rules/causes.ts";
import { compilePolicy } from "./compile.ts";
import type { PolicySpec } from "./policy.ts";

/** What is wrong with the expressions of a policy, each under its path: a policy that is stored can be evaluated. */
export function expressionCauses(path: string, spec: JsonObject): Cause[] {
  const given = spec as PolicySpec;
  const causes: Cause[] = [];
  compilePolicy({ metadata: {}, spec: given }, ({ field, expression, why }) => {
    causes.push(invalidValue(`${path}.${field}`, expression, why));
  });
  return [...causes, ...nameCauses(path, given), ...messageCauses(path, given)];
}

const RESERVED =
  /^(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)$/;

function nameCauses(path: string, { variables = [], matchConditions = [] }: PolicySpec): Cause[] {
  return [
    ...variables.flatMap(({ name = "", expression = "" }, index) => [
      ...causeIf(name.trim() === "", required(`${path}.variables[${index}].name`, "name is not specified")),
      ...causeIf(
        name.trim() !== "" && (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) || RESERVED.test(name)),
        invalidValue(`${path}.variables[${index}].name`, name, "must be a valid CEL identifier"),
      ),
      ...causeIf(
        expression.trim() === "",
        required(`${path}.variables[${index}].expression`, "expression is not specified"),
      ),
    ]),
    ...matchConditions.flatMap(({ name = "" }, index) =>
      causeIf(matchConditions.findIndex((other) => other.name === name) < index, {
        reason: "FieldValueDuplicate",
        field: `${path}.matchConditions[${index}].name`,
        message: `Duplicate value: ${JSON.stringify(name)}`,
      }),
    ),
  ];
}

const REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];

function messageCauses(path: string, { validations = [] }: PolicySpec): Cause[] {
  return validations.flatMap(({ message = "", reason }, index) => [
    ...causeIf(
      message !== "" && message.trim() === "",
      invalidValue(`${path}.validations[${index}].message`, message, "must be non-empty if specified"),
    ),
    ...causeIf(
      /[\n\r]/.test(message.trim()),
      invalidValue(`${path}.validations[${index}].message`, message, "must not contain line breaks"),
    ),
    ...causeIf(
      reason !== undefined && !REASONS.includes(reason),
      notSupported(`${path}.validations[${index}].reason`, reason, REASONS),
    ),
  ]);
}

const MUTATED_OPERATIONS = ["*", "CONNECT", "CREATE", "UPDATE"];

/** A deletion brings no object that could be changed. */
export function mutatedOperationCauses(path: string, { matchConstraints }: PolicySpec): Cause[] {
  const operations = (matchConstraints?.resourceRules ?? []).flatMap((rule) => rule.operations ?? []);
  return operations.flatMap((operation) =>
    causeIf(
      !MUTATED_OPERATIONS.includes(operation),
      notSupported(`${path}.matchConstraints.resourceRules.operations`, operation, MUTATED_OPERATIONS),
    ),
  );
}

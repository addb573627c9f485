import type { ConfigMapKeySelector, EnvFromSource, EnvVar } from "kubernetes-types/core/v1.js";
import { causeIf, invalidFor, invalidValue, required, type Cause } from "./causes.ts";
import { ENV_FIELDS, validateFieldRef, validateResourceFieldRef } from "./downward-fields.ts";
import type { Loose } from "./loose.ts";
import { configKeyProblems, envNameProblems, subdomainProblems } from "./text-rules.ts";

export function validateEnv(field: string, variables: readonly Loose<EnvVar>[] = []): Cause[] {
  return variables.flatMap((variable, index) => {
    const { name = "" } = variable;
    const path = `${field}[${index}]`;
    return [
      ...causeIf(name === "", required(`${path}.name`)),
      ...invalidFor(`${path}.name`, name, envNameProblems(name)),
      ...validateValueFrom(`${path}.valueFrom`, variable),
    ];
  });
}

const ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
const ONLY_ONE = "may not have more than one field specified at a time";

function validateValueFrom(field: string, { value = "", valueFrom: source }: Loose<EnvVar>): Cause[] {
  if (source === undefined) return [];
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = source;
  const count = Object.keys(source).length;
  const tooMany = value === "" ? ONLY_ONE : "may not be specified when `value` is not empty";
  return [
    ...(fieldRef === undefined ? [] : validateFieldRef(`${field}.fieldRef`, fieldRef, ENV_FIELDS)),
    ...(resourceFieldRef === undefined
      ? []
      : validateResourceFieldRef(`${field}.resourceFieldRef`, resourceFieldRef, { isFile: false })),
    ...validateKeyRef(`${field}.configMapKeyRef`, configMapKeyRef),
    ...validateKeyRef(`${field}.secretKeyRef`, secretKeyRef),
    ...causeIf(count === 0, invalidValue(field, "", ONE_OF)),
    ...causeIf(count > 1 || (count === 1 && value !== ""), invalidValue(field, "", tooMany)),
  ];
}

function validateKeyRef(field: string, ref: Loose<ConfigMapKeySelector> | undefined): Cause[] {
  if (ref === undefined) return [];
  const { name = "", key = "" } = ref;
  return [
    ...invalidFor(`${field}.name`, name, subdomainProblems(name)),
    ...(key === "" ? [required(`${field}.key`)] : invalidFor(`${field}.key`, key, configKeyProblems(key))),
  ];
}

/** What is wrong with the number of sources is said of the whole list, as in the real server. */
export function validateEnvFrom(field: string, sources: readonly Loose<EnvFromSource>[] = []): Cause[] {
  return sources.flatMap(({ prefix = "", configMapRef, secretRef }, index) => {
    const path = `${field}[${index}]`;
    const count = [configMapRef, secretRef].filter((ref) => ref !== undefined).length;
    return [
      ...invalidFor(`${path}.prefix`, prefix, envNameProblems(prefix)),
      ...validateRef(`${path}.configMapRef.name`, configMapRef),
      ...validateRef(`${path}.secretRef.name`, secretRef),
      ...causeIf(count === 0, invalidValue(field, "", "must specify one of: `configMapRef` or `secretRef`")),
      ...causeIf(count > 1, invalidValue(field, "", ONLY_ONE)),
    ];
  });
}

function validateRef(field: string, ref: { readonly name?: string } | undefined): Cause[] {
  if (ref === undefined) return [];
  const { name = "" } = ref;
  return name === "" ? [required(field)] : invalidFor(field, name, subdomainProblems(name));
}

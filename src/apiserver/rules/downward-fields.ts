import type { ObjectFieldSelector, ResourceFieldSelector } from "kubernetes-types/core/v1.js";
import { causeIf, invalidFor, invalidValue, notSupported, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { qualifiedNameProblems } from "./text-rules.ts";

/** Fields of its own pod that a container can be told: those that files can hold, and those that variables can. */
export const FILE_FIELDS: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];
export const ENV_FIELDS: readonly string[] = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];

/** What the real server knows of, whether or not it can be told. */
const KNOWN_FIELDS = new Set([
  ...FILE_FIELDS,
  ...ENV_FIELDS,
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
]);

const RESOURCES = ["limits", "requests"].flatMap((list) =>
  ["cpu", "ephemeral-storage", "memory"].map((name) => `${list}.${name}`),
);

export function validateFieldRef(
  field: string,
  { apiVersion = "", fieldPath = "" }: Loose<ObjectFieldSelector>,
  supported: readonly string[],
): Cause[] {
  if (apiVersion === "") return [required(`${field}.apiVersion`)];
  if (fieldPath === "") return [required(`${field}.fieldPath`)];
  const [, path = fieldPath, key] = /^(.+)\['(.+)'\]$/.exec(fieldPath) ?? [];
  if (key !== undefined && (path === "metadata.labels" || path === "metadata.annotations")) {
    const name = path === "metadata.labels" ? key : key.toLowerCase();
    return invalidFor(field, name, qualifiedNameProblems(name));
  }
  if (!KNOWN_FIELDS.has(fieldPath)) {
    const why = `error converting fieldPath: field label not supported: ${fieldPath}`;
    return [invalidValue(`${field}.fieldPath`, fieldPath, why)];
  }
  return causeIf(!supported.includes(fieldPath), notSupported(`${field}.fieldPath`, fieldPath, supported));
}

/** A file has to say which container it is about; a variable is about its own. */
export function validateResourceFieldRef(
  field: string,
  { containerName = "", resource = "" }: Loose<ResourceFieldSelector>,
  { isFile }: { isFile: boolean },
): Cause[] {
  if (isFile && containerName === "") return [required(`${field}.containerName`)];
  if (resource === "") return [required(`${field}.resource`)];
  const isKnown = RESOURCES.includes(resource) || /^(limits|requests)\.hugepages-/.test(resource);
  return causeIf(!isKnown, notSupported(`${field}.resource`, resource, RESOURCES));
}

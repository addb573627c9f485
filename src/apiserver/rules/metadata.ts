import type { ObjectMeta, OwnerReference } from "kubernetes-types/meta/v1.js";
import type { Kind } from "../kinds.ts";
import {
  forbiddenField,
  IMMUTABLE,
  invalidFor,
  invalidValue,
  required,
  tooLong,
  type Cause,
} from "./causes.ts";
import type { Loose } from "./loose.ts";
import {
  label1035Problems,
  labelProblems,
  labelValueProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "./text-rules.ts";

/** All annotations of an object together, keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1_024;

const STANDARD_FINALIZERS: readonly string[] = ["kubernetes", "orphan", "foregroundDeletion"];

const NAME_RULES: Readonly<Record<Kind["nameRule"], (name: string) => string[]>> = {
  subdomain: subdomainProblems,
  label: labelProblems,
  "label-1035": label1035Problems,
  "path-segment": pathSegmentProblems,
};

export function validateMetadata(kind: Pick<Kind, "nameRule" | "namespaced">, metadata: ObjectMeta): Cause[] {
  const problems = NAME_RULES[kind.nameRule];
  const { name = "", generateName = "" } = metadata;
  return [
    ...(generateName === ""
      ? []
      : invalidFor("metadata.generateName", generateName, problems(asPrefix(generateName)))),
    ...(name === ""
      ? [required("metadata.name", "name or generateName is required")]
      : invalidFor("metadata.name", name, problems(name))),
    ...validateNamespace(kind.namespaced, metadata.namespace),
    ...validateMaps(metadata),
  ];
}

/** Names and uids of stored objects are right already; what is checked is what a client may change. */
export function validateMetadataUpdate(metadata: ObjectMeta, old: ObjectMeta): Cause[] {
  const fixed = (["name", "namespace", "uid"] as const).filter((field) => metadata[field] !== old[field]);
  return [
    ...newFinalizersWhileDeleting(metadata, old),
    ...fixed.map((field) => invalidValue(`metadata.${field}`, metadata[field], IMMUTABLE)),
    ...validateMaps(metadata),
  ];
}

export function validateLabels(
  field: string,
  labels: Readonly<Record<string, string | undefined>> = {},
): Cause[] {
  return Object.entries(labels).flatMap(([key, value = ""]) => [
    ...invalidFor(field, key, qualifiedNameProblems(key)),
    ...invalidFor(field, value, labelValueProblems(value)),
  ]);
}

/** `name-` begins a name even where a name may not end so. */
function asPrefix(generateName: string): string {
  return generateName.length > 1 && generateName.endsWith("-")
    ? `${generateName.slice(0, -1)}a`
    : generateName;
}

function validateNamespace(namespaced: boolean, namespace = ""): Cause[] {
  const field = "metadata.namespace";
  if (!namespaced) return namespace === "" ? [] : [forbiddenField(field, "not allowed on this type")];
  return namespace === "" ? [required(field)] : invalidFor(field, namespace, labelProblems(namespace));
}

function validateMaps({ labels, annotations, ownerReferences, finalizers }: ObjectMeta): Cause[] {
  return [
    ...validateLabels("metadata.labels", labels),
    ...validateAnnotations("metadata.annotations", annotations),
    ...validateOwners(ownerReferences),
    ...validateFinalizers(finalizers),
  ];
}

export function validateAnnotations(
  field: string,
  annotations: Readonly<Record<string, string | undefined>> = {},
): Cause[] {
  const causes = Object.keys(annotations).flatMap((key) =>
    invalidFor(field, key, qualifiedNameProblems(key.toLowerCase())),
  );
  let bytes = 0;
  for (const [key, value = ""] of Object.entries(annotations))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes > ANNOTATION_BYTES_MAX ? [...causes, tooLong(field, ANNOTATION_BYTES_MAX)] : causes;
}

function validateOwners(owners: readonly Loose<OwnerReference>[] = []): Cause[] {
  const field = "metadata.ownerReferences";
  const controllers = owners.filter(({ controller }) => controller === true);
  const [first, second] = controllers.map(({ kind = "", name = "" }) => `${kind}/${name}`);
  const tooMany =
    second === undefined
      ? []
      : [
          invalidValue(
            field,
            owners,
            `Only one reference can have Controller set to true. Found "true" in references for ${first ?? ""} and ${second}`,
          ),
        ];
  return [...owners.flatMap((owner) => validateOwner(field, owner)), ...tooMany];
}

/** Without an index: that is how the real server spells these fields. */
function validateOwner(field: string, owner: Loose<OwnerReference>): Cause[] {
  const { apiVersion = "", kind = "", name = "", uid = "" } = owner;
  const isEvent = kind === "Event" && (apiVersion === "v1" || apiVersion.startsWith("events.k8s.io/"));
  return [
    ...(apiVersion === "" ? [invalidValue(`${field}.apiVersion`, "", "version must not be empty")] : []),
    ...(kind === "" ? [invalidValue(`${field}.kind`, "", "kind must not be empty")] : []),
    ...(name === "" ? [invalidValue(`${field}.name`, "", "name must not be empty")] : []),
    ...(uid === "" ? [invalidValue(`${field}.uid`, "", "uid must not be empty")] : []),
    ...(isEvent
      ? [invalidValue(field, owner, `${apiVersion}, Kind=Event is disallowed from being an owner`)]
      : []),
  ];
}

function validateFinalizers(finalizers: readonly string[] = []): Cause[] {
  const field = "metadata.finalizers";
  const contradict = finalizers.includes("orphan") && finalizers.includes("foregroundDeletion");
  return [
    ...finalizers.flatMap((finalizer) => invalidFor(field, finalizer, qualifiedNameProblems(finalizer))),
    ...(contradict
      ? [invalidValue(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")]
      : []),
    ...finalizers.flatMap((finalizer, index) => finalizerNameCauses(`${field}[${index}]`, finalizer)),
  ];
}

/** Whoever adds a finalizer says by its domain who will take it away. */
export function finalizerNameCauses(field: string, finalizer: string): Cause[] {
  if (finalizer.includes("/") || STANDARD_FINALIZERS.includes(finalizer)) return [];
  return [
    invalidValue(field, finalizer, "name is neither a standard finalizer name nor is it fully qualified"),
  ];
}

function newFinalizersWhileDeleting({ finalizers = [] }: ObjectMeta, old: ObjectMeta): Cause[] {
  if (old.deletionTimestamp === undefined) return [];
  const added = finalizers.filter((finalizer) => !(old.finalizers ?? []).includes(finalizer));
  if (added.length === 0) return [];
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  return [
    forbiddenField(
      "metadata.finalizers",
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
    ),
  ];
}

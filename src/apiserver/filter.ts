import { fieldsOf, matchesFields, parseFieldSelector } from "../kube/field-selectors.ts";
import { matchesLabels, parseLabelSelector } from "../kube/selectors.ts";
import { badRequest } from "./errors.ts";
import type { Kind } from "./kinds.ts";
import { fieldAt, parseStored } from "./objects.ts";
import type { StoredObject } from "./store/store.ts";

/** The selectors of a request. */
export interface Filter {
  /** False: everything matches, and nobody needs to look inside objects. */
  readonly isSelective: boolean;
  matches(object: StoredObject): boolean;
}

export function parseFilter(kind: Kind, query: URLSearchParams): Filter {
  const labelText = query.get("labelSelector") ?? "";
  const fieldText = query.get("fieldSelector") ?? "";
  const labels = parseLabelSelector(labelText);
  const fields = parseFieldSelector(fieldText);
  for (const path of fieldsOf(fields)) checkPath(kind, path);
  return {
    isSelective: labelText.trim() !== "" || fieldText.trim() !== "",
    matches: (object) =>
      (fields.length === 0 || matchesFields(fields, (path) => textOf(kind, object, path))) &&
      (labelText.trim() === "" || matchesLabels(labels, labelsOf(object))),
  };
}

/**
 * Labels stay with their object: they are asked for again by every list and every watch, and are a small part of it.
 * Objects without any share one.
 */
function labelsOf(object: StoredObject): Labels {
  let found = labelled.get(object);
  if (found === undefined) labelled.set(object, (found = parseStored(object).metadata.labels ?? NO_LABELS));
  return found;
}

type Labels = Readonly<Record<string, string>>;

const NO_LABELS: Labels = {};
const labelled = new WeakMap<StoredObject, Labels>();

/** Where a selectable field lies in the object, by the path a selector names it with. */
type SelectablePaths = Readonly<Record<string, readonly string[]>>;

const SELECTABLE: Readonly<Record<string, SelectablePaths>> = {
  Pod: {
    ...direct("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    ...direct("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
    "spec.host": ["spec", "nodeName"],
  },
  Node: direct("spec.unschedulable"),
  Namespace: direct("status.phase"),
  Secret: direct("type"),
  Service: direct("spec.clusterIP", "spec.type"),
  ReplicationController: direct("status.replicas"),
  ReplicaSet: direct("status.replicas"),
  Job: { "status.successful": ["status", "succeeded"] },
  CertificateSigningRequest: direct("spec.signerName"),
  ResourceSlice: direct("spec.nodeName", "spec.driver"),
  Event: {
    ...direct("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"),
    ...direct("involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"),
    ...direct("reason", "reportingComponent", "type"),
    source: ["source", "component"],
  },
};

/** Events of events.k8s.io are kept as those of core/v1, and found by the names their own group has for fields. */
const RENAMED: SelectablePaths = {
  ...direct("reason", "type"),
  ...Object.fromEntries(
    ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((field) => [
      `regarding.${field}`,
      ["involvedObject", field],
    ]),
  ),
  reportingController: ["reportingComponent"],
};

function selectable(kind: Kind): SelectablePaths | undefined {
  return kind.storedAs === undefined ? SELECTABLE[kind.kind] : RENAMED;
}

/** Booleans are always there for a selector: absent is "false". */
const BOOLEANS = ["spec.hostNetwork", "spec.unschedulable"];

const NUMBERS = ["status.replicas", "status.successful"];

function checkPath(kind: Kind, path: string): void {
  if (path === "metadata.name" || (path === "metadata.namespace" && kind.namespaced)) return;
  const paths = selectable(kind);
  if (paths === undefined) {
    throw badRequest(`"${path}" is not a known field selector: only "metadata.name", "metadata.namespace"`);
  }
  if (!Object.hasOwn(paths, path)) throw badRequest(`field label not supported: ${path}`);
}

function textOf(kind: Kind, object: StoredObject, path: string): string {
  // The key answers the two commonest without looking inside the object.
  if (path === "metadata.name") return object.key.name;
  if (path === "metadata.namespace") return object.key.namespace;
  let texts = selected.get(object);
  if (texts === undefined) selected.set(object, (texts = {}));
  const where = selectable(kind)?.[path] ?? [];
  return (texts[where.join(".")] ??= fieldText(object, path, where));
}

/** What selectors asked for, by where it lies: every kubelet asks the same of every pod. */
const selected = new WeakMap<StoredObject, Record<string, string>>();

/** An event of events.k8s.io names no source; for a selector the controller that reports it is one. */
const INSTEAD: SelectablePaths = { source: ["reportingComponent"] };

function fieldText(object: StoredObject, path: string, where: readonly string[]): string {
  const stored = parseStored(object);
  const value = fieldAt(stored, ...where) ?? fieldAt(stored, ...(INSTEAD[path] ?? where));
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "number") return String(value);
  if (NUMBERS.includes(path)) return "0";
  return BOOLEANS.includes(path) ? "false" : "";
}

function direct(...paths: readonly string[]): SelectablePaths {
  return Object.fromEntries(paths.map((path) => [path, path.split(".")]));
}

import { isJsonObject } from "../kube/patch/json.ts";
import type { Kind } from "./kinds.ts";
import { fieldAt, type ApiObject } from "./objects.ts";

/**
 * The defaults other parts of a cluster look at (spec/apiserver.md, section 13.1), for fields that are
 * always there. Defaults below lists (containers, volumes) come with the field table.
 */
export function applyDefaults(kind: Kind, object: ApiObject): ApiObject {
  const defaults = DEFAULTS[kind.kind] ?? [];
  const completed = defaults.reduce((result, [path, value]) => withDefault(result, path, value), object);
  if (kind.kind === "Secret") return foldStringData(completed);
  return kind.kind === "Namespace" ? labelNamespace(completed) : completed;
}

type Default = readonly [path: readonly string[], value: unknown];

const DEFAULTS: Readonly<Record<string, readonly Default[]>> = {
  Namespace: [
    [["spec", "finalizers"], ["kubernetes"]],
    [["status", "phase"], "Active"],
  ],
  Pod: [
    [["spec", "restartPolicy"], "Always"],
    [["spec", "dnsPolicy"], "ClusterFirst"],
    [["spec", "terminationGracePeriodSeconds"], 30],
    [["spec", "schedulerName"], "default-scheduler"],
    [["spec", "securityContext"], {}],
    [["spec", "enableServiceLinks"], true],
    [["status", "phase"], "Pending"],
  ],
  PersistentVolume: [
    [["spec", "persistentVolumeReclaimPolicy"], "Retain"],
    [["spec", "volumeMode"], "Filesystem"],
    [["status", "phase"], "Pending"],
  ],
  PersistentVolumeClaim: [
    [["spec", "volumeMode"], "Filesystem"],
    [["status", "phase"], "Pending"],
  ],
  Secret: [[["type"], "Opaque"]],
  StorageClass: [
    [["reclaimPolicy"], "Delete"],
    [["volumeBindingMode"], "Immediate"],
  ],
  CSIDriver: [
    [["spec", "attachRequired"], true],
    [["spec", "podInfoOnMount"], false],
    [["spec", "volumeLifecycleModes"], ["Persistent"]],
    [["spec", "storageCapacity"], false],
    [["spec", "fsGroupPolicy"], "ReadWriteOnceWithFSType"],
    [["spec", "requiresRepublish"], false],
    [["spec", "seLinuxMount"], false],
  ],
  VolumeAttachment: [[["status", "attached"], false]],
};

/** Leaves a parent that is there but not an object alone: validation, not defaulting, complains about it. */
function withDefault(object: ApiObject, [first = "", second]: readonly string[], value: unknown): ApiObject {
  const parent = fieldAt(object, first);
  if (second === undefined) return parent === undefined ? { ...object, [first]: value } : object;
  if (parent !== undefined && !isJsonObject(parent)) return object;
  return fieldAt(parent, second) === undefined
    ? { ...object, [first]: { ...parent, [second]: value } }
    : object;
}

function labelNamespace(object: ApiObject): ApiObject {
  const { metadata } = object;
  const labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name ?? "" };
  return { ...object, metadata: { ...metadata, labels } };
}

/** `stringData` is for writing only: it overwrites `data` and is never stored or returned. */
function foldStringData(object: ApiObject): ApiObject {
  const { stringData, ...rest } = object;
  if (!isJsonObject(stringData)) return object;
  const encoded = Object.fromEntries(
    Object.entries(stringData).map(([key, text]) => [
      key,
      typeof text === "string" ? Buffer.from(text).toString("base64") : text,
    ]),
  );
  const data = fieldAt(object, "data");
  return { ...rest, metadata: object.metadata, data: { ...(isJsonObject(data) ? data : {}), ...encoded } };
}

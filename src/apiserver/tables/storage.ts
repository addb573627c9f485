import type { ApiObject } from "../objects.ts";
import { flagAt, has, listAt, textAt, textsAt } from "./fields.ts";
import {
  ageColumn,
  column,
  createPrinter,
  nameColumn,
  nameOf,
  type Column,
  type PrintContext,
} from "./printer.ts";

/** The kinds of storage.k8s.io. CSIStorageCapacity has no columns of its own. */

export const storageClassPrinter = createPrinter([
  { ...nameColumn, cell: classNameText },
  column("Provisioner", "Who makes volumes of this class", (item) => textAt(item, "provisioner")),
  column(
    "ReclaimPolicy",
    "What becomes of its volumes when their claims are gone",
    (item) => textAt(item, "reclaimPolicy") || "Delete",
  ),
  column(
    "VolumeBindingMode",
    "Whether volumes are made at once or where the first pod runs",
    (item) => textAt(item, "volumeBindingMode") || "Immediate",
  ),
  column(
    "AllowVolumeExpansion",
    "Whether claims may ask for more later",
    (item) => flagAt(item, "allowVolumeExpansion") ?? false,
  ),
  ageColumn,
]);

export const volumeAttachmentPrinter = createPrinter([
  nameColumn,
  // That this one has the format of a name is an oddity of the real server which clients can see.
  column("Attacher", "The driver that has to attach it", (item) => textAt(item, "spec", "attacher"), {
    format: "name",
  }),
  column("PV", "The volume, unless it is written into the pod", (item) =>
    textAt(item, "spec", "source", "persistentVolumeName"),
  ),
  column("Node", "Where it has to be attached", (item) => textAt(item, "spec", "nodeName")),
  column("Attached", "Whether it is", (item) => flagAt(item, "status", "attached") ?? false, {
    type: "boolean",
  }),
  ageColumn,
]);

export const csiNodePrinter = createPrinter([
  nameColumn,
  column("Drivers", "How many drivers are on the node", (item) => listAt(item, "spec", "drivers").length, {
    type: "integer",
  }),
  ageColumn,
]);

export const csiDriverPrinter = createPrinter([
  nameColumn,
  driverFlag(
    "AttachRequired",
    "Whether volumes are attached before they are mounted",
    "attachRequired",
    true,
  ),
  driverFlag("PodInfoOnMount", "Whether it is told about the pod", "podInfoOnMount", false),
  driverFlag("StorageCapacity", "Whether it reports how much is left", "storageCapacity", false),
  column("TokenRequests", "Audiences of the tokens it is given", tokenRequestsText),
  driverFlag(
    "RequiresRepublish",
    "Whether mounts are refreshed from time to time",
    "requiresRepublish",
    false,
  ),
  column(
    "Modes",
    "The kinds of volume it has",
    (item) => textsAt(item, "spec", "volumeLifecycleModes").join(",") || "<none>",
  ),
  ageColumn,
]);

export const volumeAttributesClassPrinter = createPrinter([
  nameColumn,
  column("DriverName", "The driver that knows these attributes", (item) => textAt(item, "driverName")),
  ageColumn,
]);

const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/**
 * Several classes may claim to be the default. The youngest is, and of two made in the same second the first by
 * name: the one that claims are really given.
 */
export function effectiveDefaultClass(classes: Iterable<ApiObject>): string | undefined {
  let best: ApiObject | undefined;
  for (const candidate of classes) {
    const claims = DEFAULT_ANNOTATIONS.some(
      (key) => textAt(candidate, "metadata", "annotations", key) === "true",
    );
    if (claims && (best === undefined || isPreferred(candidate, best))) best = candidate;
  }
  return best === undefined ? undefined : nameOf(best);
}

function isPreferred(candidate: ApiObject, best: ApiObject): boolean {
  const [candidateMs, bestMs] = [candidate, best].map((item) =>
    Date.parse(textAt(item, "metadata", "creationTimestamp")),
  );
  if (candidateMs !== bestMs) return (candidateMs ?? 0) > (bestMs ?? 0);
  return nameOf(candidate) < nameOf(best);
}

function classNameText(item: ApiObject, { defaultStorageClass }: PrintContext): string {
  const name = nameOf(item);
  return name !== "" && name === defaultStorageClass() ? `${name} (default)` : name;
}

function driverFlag(name: string, description: string, field: string, absent: boolean): Column {
  return column(name, description, (item) => flagAt(item, "spec", field) ?? absent, { type: "boolean" });
}

function tokenRequestsText(item: ApiObject): string {
  if (!has(item, "spec", "tokenRequests")) return "<unset>";
  return listAt(item, "spec", "tokenRequests")
    .map((request) => textAt(request, "audience"))
    .join(",");
}

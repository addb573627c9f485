import { csiDrivers } from "../kube/api/csi-driver.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { events } from "../kube/api/event.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { pods } from "../kube/api/pod.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { Client, ListOptions } from "../kube/client/client.ts";
import { createPages } from "../kube/client/pages.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import { resourceName, type KubeObject, type Resource } from "../kube/object.ts";
import { isObject } from "../volumes/untrusted.ts";
import {
  BASE_KINDS,
  NO_OBJECTS,
  OBJECT_KINDS,
  OPTIONAL_KINDS,
  type ClusterObjects,
  type ObjectKind,
  type Unread,
} from "../views/objects.ts";

const v1 = (group: string, kind: string, plural: string, namespaced = true): Resource => ({
  group,
  version: "v1",
  kind,
  plural,
  namespaced,
});

const SNAPSHOTS = "snapshot.storage.k8s.io";

/** What is read of a cluster, by the name that views have for it. */
export const READ_RESOURCES: Readonly<Record<ObjectKind, Resource>> = {
  pods,
  claims: persistentVolumeClaims,
  volumes: persistentVolumes,
  attachments: volumeAttachments,
  nodes,
  csiNodes,
  csiDrivers,
  storageClasses: v1("storage.k8s.io", "StorageClass", "storageclasses", false),
  events,
  statefulSets: v1("apps", "StatefulSet", "statefulsets"),
  deployments: v1("apps", "Deployment", "deployments"),
  replicaSets: v1("apps", "ReplicaSet", "replicasets"),
  resourceQuotas: v1("", "ResourceQuota", "resourcequotas"),
  snapshots: v1(SNAPSHOTS, "VolumeSnapshot", "volumesnapshots"),
  snapshotClasses: v1(SNAPSHOTS, "VolumeSnapshotClass", "volumesnapshotclasses", false),
  snapshotContents: v1(SNAPSHOTS, "VolumeSnapshotContent", "volumesnapshotcontents", false),
};

/** Objects a page: 500 pods are 2 MB, and no server minds. */
const PAGE = 500;

/** Of one kind; a cluster at the limits of Kubernetes has 150,000 pods. Past it the rest is not looked at. */
const OBJECTS_MAX = 200_000;

/** Warnings of the last hour, which is what servers keep; the newest pages are enough to explain with. */
const EVENTS_MAX = 10_000;

/** Events that only say that all went well explain nothing, and are most of them. */
export function selectorOf(kind: ObjectKind): string | undefined {
  return kind === "events" ? "type=Warning" : undefined;
}

type Reader = Pick<Client, "list">;

export interface ReadOptions {
  /** Read by itself where the right for all namespaces is missing. */
  readonly namespace: string;
  /** What the question needs; without it what every volume's way to its pod is made of. */
  readonly kinds?: readonly ObjectKind[] | undefined;
  readonly signal?: AbortSignal;
}

/**
 * What the question looks at. A right that is missing costs only what it would have shown: it is named, and the
 * rest is read. Anything else that goes wrong ends it, since half an answer would look like a whole one.
 */
export async function readObjects(client: Reader, options: ReadOptions): Promise<ClusterObjects> {
  const kinds = options.kinds ?? BASE_KINDS;
  const answers = await Promise.all(kinds.map((kind) => readKind(client, kind, options)));
  const unread = answers.flatMap(({ unread: item }) => item ?? []);
  if (unread.length === kinds.length && unread.every(({ readNamespace }) => readNamespace === undefined)) {
    throw nothingReadable(unread);
  }
  const lists = kinds.map((kind, index) => [kind, answers[index]?.items ?? []] as const);
  return {
    ...NO_OBJECTS,
    ...(Object.fromEntries(lists) as Partial<ClusterObjects>),
    notAsked: OBJECT_KINDS.filter((kind) => !kinds.includes(kind)),
    notServed: kinds.filter((_, index) => answers[index]?.served === false),
    unread,
  };
}

interface KindAnswer {
  readonly items: readonly KubeObject[];
  readonly unread?: Unread;
  /** False for an optional kind that the server does not have. */
  readonly served?: boolean;
}

const OPTIONAL: ReadonlySet<ObjectKind> = new Set(OPTIONAL_KINDS);

async function readKind(client: Reader, kind: ObjectKind, options: ReadOptions): Promise<KindAnswer> {
  const resource = READ_RESOURCES[kind];
  try {
    return { items: await listAll(client, kind, { signal: options.signal }) };
  } catch (error) {
    // A server that does not have the kind at all, an old or a small one, has no such objects either.
    if (!isKubeError(error, "Forbidden", "NotFound")) throw error;
    if (error.code === "NotFound" && OPTIONAL.has(kind)) return { items: [], served: false };
    const why = error.code === "Forbidden" ? "not permitted" : "the server has no such kind";
    const unread: Unread = { kind, right: `list ${resourceName(resource)}`, why };
    return resource.namespaced ? readNamespace(client, unread, options) : { items: [], unread };
  }
}

/** Whoever may look at one namespace only is still answered about that one. */
async function readNamespace(
  client: Reader,
  unread: Unread,
  { namespace, signal }: ReadOptions,
): Promise<KindAnswer> {
  try {
    const items = await listAll(client, unread.kind, { namespace, signal });
    const why = `${unread.why} in all namespaces; only ${namespace} was read`;
    return { items, unread: { ...unread, why, readNamespace: namespace } };
  } catch (error) {
    if (!isKubeError(error, "Forbidden", "NotFound")) throw error;
    return { items: [], unread };
  }
}

async function listAll(
  client: Reader,
  kind: ObjectKind,
  options: ListOptions,
): Promise<readonly KubeObject[]> {
  const [resource, max] = [READ_RESOURCES[kind], kind === "events" ? EVENTS_MAX : OBJECTS_MAX];
  const items: KubeObject[] = [];
  const follow = createPages(resource);
  let next: string | undefined;
  do {
    const page = await client.list(resource, {
      fieldSelector: selectorOf(kind),
      ...options,
      limit: PAGE,
      continue: next,
    });
    for (const item of page.items) items.push(slim(item));
    next = follow(page.metadata.continue);
  } while (next !== undefined && items.length < max);
  return items;
}

/** Who wrote which field is a third of most objects, and nobody here asks. The object is ours: it was just parsed. */
function slim(item: KubeObject): KubeObject {
  const metadata: unknown = isObject(item) ? item.metadata : undefined;
  if (isObject(metadata) && "managedFields" in metadata) metadata.managedFields = undefined;
  return item;
}

function nothingReadable(unread: readonly Unread[]): KubeError {
  const [first] = unread;
  return new KubeError(
    "Forbidden",
    `reading the cluster: nothing of it may be read, not even ${first?.right ?? "pods"}: ${first?.why ?? ""}; ask for the ClusterRole view and for list on nodes, persistentvolumes and storage.k8s.io`,
  );
}

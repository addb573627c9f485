import type { KubeEvent } from "../kube/api/event.ts";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { KubeObject } from "../kube/object.ts";
import { claimKeysOf, isPodTerminated } from "../volumes/resolve.ts";
import { isObject } from "../volumes/untrusted.ts";
import { createDisks, type Disks } from "./disks.ts";
import { createdAt, field, idOf, nameOf, objectsAt, textAt, timeAt } from "./fields.ts";
import { OBJECT_KINDS, type ClusterObjects, type MooringWait, type ObjectKind } from "./objects.ts";
import type { CommandContext } from "./reasons/words.ts";

/** ClusterObjects with the ways to find one: built once, so that ten thousand rows cost ten thousand lookups. */
export interface Cluster {
  readonly objects: ClusterObjects;
  readonly nowMs: number;
  /** How whoever asks reaches it. */
  readonly context: CommandContext;
  /** False where the kind, or that namespace of it, was not or could not be read: then absence means nothing. */
  knows(kind: ObjectKind, namespace?: string): boolean;
  find<K extends ObjectKind>(kind: K, id: string): ClusterObjects[K][number] | undefined;
  /** Pods that use the claim and are not over. */
  podsOfClaim(id: string): readonly Pod[];
  /** `namespace/name` of the claims that are bound to it, or say so. */
  claimsOf(persistentVolume: string): readonly string[];
  attachmentsOf(persistentVolume: string): readonly VolumeAttachment[];
  /** PersistentVolumes of a disk, by driver and handle: one, unless somebody made another for it. */
  volumesOfDisk(driver: string, handle: string): readonly PersistentVolume[];
  /** Nodes whose `volumesAttached` has it, by its unique name. */
  nodesListing(uniqueName: string): readonly Node[];
  /** By the disk, whatever it is called; made when somebody asks. */
  disks(): Disks;
  attachmentsOn(node: string): readonly VolumeAttachment[];
  podsOn(node: string): readonly Pod[];
  /** Newest first; not those of an earlier object of the same name, as pods of a StatefulSet have it. */
  eventsOf(kind: string, id: string): readonly KubeEvent[];
  /** Of Mooring's waits, those about any of these: unique names, PersistentVolumes, pods by `namespace/name`. */
  waitsAbout(...names: readonly string[]): readonly MooringWait[];
}

export function createCluster(given: ClusterObjects, nowMs: number, context: CommandContext = {}): Cluster {
  const objects = sound(given);
  const unread = new Map(objects.unread.map((item) => [item.kind, item]));
  const notAsked = new Set(objects.notAsked);
  const byId = new Map(
    OBJECT_KINDS.map((kind) => [kind, new Map(objects[kind].map((item) => [idOf(item), item]))]),
  );
  const live = once(() => objects.pods.filter((pod) => !isPodTerminated(pod)));
  const podsOfClaim = once(() => grouped(live(), claimKeysOf));
  const podsOn = once(() => grouped(live(), (pod) => [textAt(pod, "spec", "nodeName")]));
  const ofVolume = grouped(objects.attachments, (item) => [volumeOf(item)]);
  const volumes = byId.get("volumes") as ReadonlyMap<string, PersistentVolume> | undefined;
  const disks = once(() => createDisks(objects.attachments, (name) => volumes?.get(name)));
  const ofDisk = once(() =>
    grouped(objects.volumes, (item) => [
      `${textAt(item, "spec", "csi", "driver")}^${textAt(item, "spec", "csi", "volumeHandle")}`,
    ]),
  );
  const listing = once(() =>
    grouped(objects.nodes, (item) =>
      objectsAt(item, "status", "volumesAttached").map((volume) => textAt(volume, "name")),
    ),
  );
  const claimsOf = once(() => grouped(objects.claims, (item) => [textAt(item, "spec", "volumeName")]));
  const onNode = once(() => grouped(objects.attachments, (item) => [textAt(item, "spec", "nodeName")]));
  const newestFirst = [...objects.events].sort((a, b) => (eventTime(b) ?? 0) - (eventTime(a) ?? 0));
  const events = grouped(newestFirst, (event) => [eventKey(event)]);
  const waits = grouped(objects.waits, ({ volume, persistentVolume, pod }) => [
    volume,
    persistentVolume,
    pod,
  ]);
  const find = <K extends ObjectKind>(kind: K, id: string) => byId.get(kind)?.get(id);
  return {
    objects,
    nowMs,
    context,
    knows: (kind, namespace) => {
      if (notAsked.has(kind)) return false;
      const missing = unread.get(kind);
      return missing === undefined || (namespace !== undefined && missing.readNamespace === namespace);
    },
    find,
    podsOfClaim: (id) => podsOfClaim().get(id) ?? [],
    claimsOf: (name) => (name === "" ? [] : (claimsOf().get(name) ?? []).map(idOf)),
    attachmentsOf: (name) => (name === "" ? [] : (ofVolume.get(name) ?? [])),
    volumesOfDisk: (driver, handle) => (handle === "" ? [] : (ofDisk().get(`${driver}^${handle}`) ?? [])),
    nodesListing: (name) => (name === "" ? [] : (listing().get(name) ?? [])),
    disks,
    attachmentsOn: (name) => onNode().get(name) ?? [],
    podsOn: (name) => podsOn().get(name) ?? [],
    eventsOf: (kind, id) => {
      const of = NAMED_AGAIN[kind];
      const object = of && find(of, id);
      return (events.get(`${kind} ${id}`) ?? []).filter((event) => !object || isOf(event, object));
    },
    waitsAbout: (...names) => [
      ...new Set(names.flatMap((name) => (name === "" ? [] : (waits.get(name) ?? [])))),
    ],
  };
}

export function volumeOf(attachment: VolumeAttachment): string {
  return textAt(attachment, "spec", "source", "persistentVolumeName");
}

/** When it was last seen; aggregated events have a series, old ones only a creation time. */
export function eventTime(event: KubeEvent): number | undefined {
  return (
    timeAt(event, "series", "lastObservedTime") ??
    timeAt(event, "lastTimestamp") ??
    timeAt(event, "eventTime") ??
    timeAt(event, "metadata", "creationTimestamp")
  );
}

/** Kinds of which another object may have had the name, and whose events are read. */
const NAMED_AGAIN: Readonly<Partial<Record<string, ObjectKind>>> = {
  Pod: "pods",
  PersistentVolumeClaim: "claims",
  PersistentVolume: "volumes",
  StatefulSet: "statefulSets",
  ReplicaSet: "replicaSets",
};

/** An event that does not say of which object it is belongs to the one that was there by then. */
function isOf(event: KubeEvent, object: KubeObject): boolean {
  const [of, uid] = [textAt(event, "involvedObject", "uid"), textAt(object, "metadata", "uid")];
  if (of !== "" && uid !== "") return of === uid;
  const createdMs = createdAt(object) ?? -Infinity;
  return (eventTime(event) ?? createdMs) >= createdMs;
}

const CLUSTER_SCOPED = new Set([
  "Node",
  "PersistentVolume",
  "VolumeAttachment",
  "StorageClass",
  "CSIDriver",
  "VolumeSnapshotContent",
]);

/** Cluster-scoped objects have their events in `default`, and `involvedObject` without a namespace. */
function eventKey(event: KubeEvent): string {
  const kind = textAt(event, "involvedObject", "kind");
  const [namespace, name] = ["namespace", "name"].map((key) => textAt(event, "involvedObject", key));
  return `${kind} ${namespace && !CLUSTER_SCOPED.has(kind) ? `${namespace}/` : ""}${name}`;
}

/** What is no object with a name is left out: one bad item never hides the others. */
function sound(given: ClusterObjects): ClusterObjects {
  const kept = OBJECT_KINDS.map((kind) => [kind, listOf(given[kind]).filter(isNamed)] as const);
  const found: ClusterObjects = { ...given, ...Object.fromEntries(kept) };
  return {
    ...found,
    notAsked: listOf(given.notAsked),
    notServed: listOf(given.notServed),
    unread: listOf(given.unread),
    waits: withPodNames(listOf(given.waits), found.pods),
    nodePages: listOf(given.nodePages),
    notes: listOf(given.notes),
  };
}

/** A node forgets the name of a pod whose containers have stopped; while the pod is there, its uid still leads to it. */
function withPodNames(waits: readonly MooringWait[], pods: readonly Pod[]): readonly MooringWait[] {
  const isNameless = ({ pod, podUid = "" }: MooringWait) => pod === "" && podUid !== "";
  if (!waits.some(isNameless)) return waits;
  const byUid = new Map(pods.map((pod) => [textAt(pod, "metadata", "uid"), idOf(pod)]));
  return waits.map((wait) =>
    isNameless(wait) ? { ...wait, pod: byUid.get(wait.podUid ?? "") ?? "" } : wait,
  );
}

function listOf<T>(list: readonly T[]): readonly T[] {
  return Array.isArray(list) ? (list as readonly T[]) : [];
}

function isNamed(item: KubeObject): boolean {
  return isObject(item) && isObject(field(item, "metadata")) && nameOf(item) !== "";
}

/** Made when somebody asks: a list of volumes that are well needs few of the ways to look. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function grouped<T>(items: readonly T[], keysOf: (item: T) => readonly string[]): Map<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const keys = keysOf(item);
    for (const key of keys.length > 1 ? new Set(keys) : keys) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [item]);
      else group.push(item);
    }
  }
  return groups;
}

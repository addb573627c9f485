import type { Volume } from "kubernetes-types/core/v1.js";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { mayMultiAttach } from "../volumes/access.ts";
import { csiVolumeName } from "../volumes/names.ts";
import { claimKeysOf, resolveVolume, type Resolution } from "../volumes/resolve.ts";
import { csiSourceOf, type VolumeSpec } from "../volumes/spec.ts";
import type { Cluster } from "./cluster.ts";
import { field, nameOf, objectsAt, textAt } from "./fields.ts";

/** One volume of one pod, followed as far as the objects allow; every check looks at this. */
export interface VolumeView {
  readonly cluster: Cluster;
  readonly pod: Pod | undefined;
  /** The name of the volume in the pod. */
  readonly volumeName: string;
  /** `namespace/name`; empty for a volume without a claim. */
  readonly claimId: string;
  readonly claim: PersistentVolumeClaim | undefined;
  /** Empty while the claim has none. */
  readonly pvName: string;
  readonly pv: PersistentVolume | undefined;
  readonly resolution: Resolution | undefined;
  /** Empty for a volume that no CSI driver serves, or that is not known yet. */
  readonly driver: string;
  /** As `volumesAttached` and `volumesInUse` name it; empty where it is not known. */
  readonly uniqueName: string;
  /** True for volumes of one node only; unsure counts as that. */
  readonly exclusive: boolean;
  /** A VolumeAttachment has to exist before it can be mounted. */
  readonly needsAttach: boolean;
  readonly nodeName: string;
  readonly node: Node | undefined;
  /** On this node; that of a controller. */
  readonly attachment: VolumeAttachment | undefined;
  /** On this node, made by somebody else. */
  readonly foreign: readonly VolumeAttachment[];
  /** On other nodes, by whichever PersistentVolume and name. */
  readonly otherAttachments: readonly VolumeAttachment[];
}

/** Every volume of a pod. */
export function volumeViewsOf(cluster: Cluster, pod: Pod): readonly VolumeView[] {
  return objectsAt(pod, "spec", "volumes").map((volume) => viewOf(cluster, pod, volume as Volume));
}

/** What a node makes for itself: no claim and no driver, and most of what pods have. */
const LOCAL_SOURCES = ["projected", "configMap", "secret", "emptyDir", "downwardAPI", "hostPath"];

/** Only those that lists are about; the others need not be followed. */
export function remoteViewsOf(cluster: Cluster, pod: Pod): readonly VolumeView[] {
  return objectsAt(pod, "spec", "volumes")
    .filter((volume) => !LOCAL_SOURCES.some((source) => Object.hasOwn(volume, source)))
    .map((volume) => viewOf(cluster, pod, volume as Volume))
    .filter(({ claimId, driver }) => claimId !== "" || driver !== "");
}

function viewOf(cluster: Cluster, pod: Pod, volume: Volume): VolumeView {
  const claimId =
    claimKeysOf({ metadata: pod.metadata, spec: { volumes: [volume] } } as unknown as Pod)[0] ?? "";
  const resolution = resolveVolume(pod, volume, {
    claim: (key) => cluster.find("claims", key),
    volume: (name) => cluster.find("volumes", name),
  });
  return follow(cluster, { pod, volumeName: textAt(volume, "name"), claimId, resolution });
}

/** A claim that no pod uses. */
export function claimView(cluster: Cluster, claim: PersistentVolumeClaim, claimId: string): VolumeView {
  const pv = cluster.find("volumes", textAt(claim, "spec", "volumeName"));
  return follow(cluster, { pod: undefined, volumeName: "", claimId, resolution: resolvedTo(pv) });
}

/** A PersistentVolume that no claim has. */
export function persistentVolumeView(cluster: Cluster, pv: PersistentVolume): VolumeView {
  const view = follow(cluster, { pod: undefined, volumeName: "", claimId: "", resolution: resolvedTo(pv) });
  return { ...view, pv, pvName: nameOf(pv) };
}

/** A VolumeAttachment by itself: its volume and its node, whoever wants it there. */
export function attachmentView(cluster: Cluster, attachment: VolumeAttachment): VolumeView {
  const pvName = textAt(attachment, "spec", "source", "persistentVolumeName");
  const pv = cluster.find("volumes", pvName);
  const view = follow(cluster, { pod: undefined, volumeName: "", claimId: "", resolution: resolvedTo(pv) });
  const nodeName = textAt(attachment, "spec", "nodeName");
  const driver = textAt(attachment, "spec", "attacher");
  return { ...view, pv, pvName, driver, nodeName, node: cluster.find("nodes", nodeName), attachment };
}

/** A pod without volumes, or a node by itself. */
export function bareView(
  cluster: Cluster,
  at: { readonly pod?: Pod; readonly nodeName?: string },
): VolumeView {
  const view = follow(cluster, { pod: at.pod, volumeName: "", claimId: "", resolution: undefined });
  const nodeName = at.nodeName ?? view.nodeName;
  return { ...view, nodeName, node: cluster.find("nodes", nodeName) };
}

function resolvedTo(pv: PersistentVolume | undefined): Resolution | undefined {
  if (pv === undefined) return undefined;
  return {
    kind: "resolved",
    spec: { kind: "persistent", volume: pv, readOnly: false, migrated: "none" },
  };
}

interface Followed {
  readonly pod: Pod | undefined;
  readonly volumeName: string;
  readonly claimId: string;
  readonly resolution: Resolution | undefined;
}

function follow(cluster: Cluster, start: Followed): VolumeView {
  const claim = cluster.find("claims", start.claimId);
  const pvName = textAt(claim, "spec", "volumeName");
  const spec = start.resolution?.kind === "resolved" ? start.resolution.spec : undefined;
  const source = spec && csiSourceOf(spec);
  const nodeName = textAt(start.pod, "spec", "nodeName");
  const uniqueName = source === undefined ? "" : csiVolumeName(source);
  const attachments = attachmentsOf(cluster, { pvName: attachedName(spec) || pvName, uniqueName });
  const here = attachments.filter((item) => textAt(item, "spec", "nodeName") === nodeName && nodeName !== "");
  const { pod, volumeName, claimId, resolution } = start;
  return {
    cluster,
    pod,
    volumeName,
    claimId,
    resolution,
    claim,
    pvName,
    pv: cluster.find("volumes", pvName),
    driver: source?.driver ?? inlineDriver(spec),
    uniqueName,
    exclusive: spec !== undefined && !mayMultiAttach(spec),
    needsAttach: source !== undefined && attachRequired(cluster, source.driver),
    nodeName,
    node: cluster.find("nodes", nodeName),
    attachment: here.find((item) => !cluster.disks().isForeign(item)),
    foreign: here.filter((item) => cluster.disks().isForeign(item)),
    otherAttachments: attachments.filter((item) => textAt(item, "spec", "nodeName") !== nodeName),
  };
}

/** Those that name the PersistentVolume, and those that have the same disk. */
function attachmentsOf(
  cluster: Cluster,
  { pvName, uniqueName }: { readonly pvName: string; readonly uniqueName: string },
): readonly VolumeAttachment[] {
  const [named, same] = [cluster.attachmentsOf(pvName), cluster.disks().attachmentsOf(uniqueName)];
  return same.length === 0 ? named : [...new Set([...named, ...same])];
}

/** Ephemeral CSI volumes are written into the pod: mounted, never attached. */
function inlineDriver(spec: VolumeSpec | undefined): string {
  return spec?.kind === "inline" ? textAt(spec.volume, "csi", "driver") : "";
}

function attachedName(spec: VolumeSpec | undefined): string {
  return spec?.kind === "persistent" ? nameOf(spec.volume) : "";
}

/** A driver without a CSIDriver object is attached, as Kubernetes does. */
function attachRequired(cluster: Cluster, driver: string): boolean {
  return field(cluster.find("csiDrivers", driver), "spec", "attachRequired") !== false;
}

/** Has every link, and nothing on another node matters to it. */
export function isAttachedHere({ attachment }: VolumeView): boolean {
  return field(attachment, "status", "attached") === true;
}

export function nodeLists(node: Node | undefined, uniqueName: string): boolean {
  return node !== undefined && attachedNames(node).has(uniqueName);
}

/** By node: each of a hundred volumes of a node asks for its hundred names. Goes with the object. */
const namesOfNode = new WeakMap<Node, ReadonlySet<string>>();

function attachedNames(node: Node): ReadonlySet<string> {
  const known = namesOfNode.get(node);
  if (known !== undefined) return known;
  const names = new Set(objectsAt(node, "status", "volumesAttached").map((item) => textAt(item, "name")));
  namesOfNode.set(node, names);
  return names;
}

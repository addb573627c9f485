import { configMaps } from "../kube/api/config-map.ts";
import { secrets } from "../kube/api/secret.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { ObjectRef, Resource } from "../kube/object.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { csiSourceOf, type VolumeSpec } from "../volumes/spec.ts";
import { text } from "../volumes/untrusted.ts";
import type { Blocker } from "./errors.ts";

/** An object that a volume of a pod is made of. */
export interface ObjectUse {
  readonly resource: Resource;
  readonly ref: ObjectRef;
}

/** Objects whose content or state a set-up reads: each is followed while the pod wants the volume. Pure. */
export function objectsOf(
  spec: VolumeSpec,
  { podNamespace, nodeName }: { readonly podNamespace: string; readonly nodeName: string },
): readonly ObjectUse[] {
  return spec.kind === "inline"
    ? inlineObjects(spec.volume, podNamespace)
    : persistentObjects(spec, nodeName);
}

type InlineVolume = Extract<VolumeSpec, { kind: "inline" }>["volume"];

function inlineObjects(volume: InlineVolume, namespace: string): readonly ObjectUse[] {
  const found: ObjectUse[] = [];
  const add = (resource: Resource, name: unknown) => {
    if (text(name)) found.push({ resource, ref: { namespace, name: text(name) } });
  };
  add(secrets, volume.secret?.secretName);
  add(configMaps, volume.configMap?.name);
  add(secrets, volume.csi?.nodePublishSecretRef?.name);
  for (const source of volume.projected?.sources ?? []) {
    add(secrets, source.secret?.name);
    add(configMaps, source.configMap?.name);
  }
  return found;
}

function persistentObjects(spec: VolumeSpec, nodeName: string): readonly ObjectUse[] {
  const csi = csiSourceOf(spec);
  if (!csi) return [];
  const attachment = { resource: volumeAttachments, ref: { name: volumeAttachmentName(csi, nodeName) } };
  const refs = [csi.nodeStageSecretRef, csi.nodePublishSecretRef, csi.nodeExpandSecretRef];
  const named = refs.flatMap((ref) => {
    const { name, namespace } = { name: text(ref?.name), namespace: text(ref?.namespace) };
    return name ? [{ resource: secrets, ref: { namespace, name } }] : [];
  });
  return [attachment, ...named];
}

/** How failures name what they wait for, as one text. */
export function blockerKey(blocker: Blocker): string {
  if (blocker.kind === "node") return "node";
  const namespace = "namespace" in blocker ? `${blocker.namespace}/` : "";
  return `${blocker.kind} ${namespace}${blocker.name}`;
}

const BLOCKER_KINDS: Readonly<Record<string, string>> = {
  secrets: "secret",
  configmaps: "config-map",
  persistentvolumeclaims: "claim",
  persistentvolumes: "persistent-volume",
  volumeattachments: "attachment",
};

/** The same text for an object that changed. */
export function blockerKeyOf(resource: Resource, { namespace, name }: ObjectRef): string {
  return `${BLOCKER_KINDS[resource.plural] ?? resource.plural} ${namespace ? `${namespace}/` : ""}${name}`;
}

import { isObject, text } from "../../volumes/untrusted.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { sha256 } from "../paths.ts";

/**
 * What a spec says about its CSI volume, checked: objects come as anybody wrote them. A PersistentVolume may be shared by
 * pods and nodes; an inline volume lives and dies with its pod, so its handle is made of the pod and the name.
 */
export type CsiVolume = PersistentCsiVolume | EphemeralCsiVolume;

interface CommonCsiVolume {
  readonly driver: string;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** For this pod: of its claim source, or of the inline volume. */
  readonly readOnly: boolean;
  readonly publishSecret: SecretRef | undefined;
}

export interface PersistentCsiVolume extends CommonCsiVolume {
  readonly kind: "persistent";
  readonly handle: string;
  readonly block: boolean;
  /** As listed; CSI is told the first one only (FIX 39). */
  readonly accessModes: readonly string[];
  readonly mountOptions: readonly string[];
  readonly stageSecret: SecretRef | undefined;
  readonly expandSecret: SecretRef | undefined;
  readonly migrated: boolean;
}

export interface EphemeralCsiVolume extends CommonCsiVolume {
  readonly kind: "ephemeral";
}

export interface SecretRef {
  /** "" for that of the pod. */
  readonly namespace: string;
  readonly name: string;
}

/** Undefined for what is no CSI volume, or names no driver or no volume. */
export function csiVolumeOf(spec: VolumeSpec): CsiVolume | undefined {
  return spec.kind === "inline" ? ephemeralOf(spec) : persistentOf(spec);
}

function ephemeralOf({ volume }: VolumeSpec & { kind: "inline" }): EphemeralCsiVolume | undefined {
  const { csi } = volume;
  if (!isObject(csi) || !text(csi.driver)) return undefined;
  return {
    kind: "ephemeral",
    driver: csi.driver,
    fsType: text(csi.fsType),
    attributes: textMap(csi.volumeAttributes),
    readOnly: csi.readOnly === true,
    publishSecret: secretRef({ name: csi.nodePublishSecretRef?.name }),
  };
}

function persistentOf(spec: VolumeSpec & { kind: "persistent" }): PersistentCsiVolume | undefined {
  const declared = spec.volume.spec;
  const csi = declared?.csi;
  if (!isObject(csi) || !text(csi.driver) || !text(csi.volumeHandle)) return undefined;
  return {
    kind: "persistent",
    driver: csi.driver,
    handle: csi.volumeHandle,
    block: declared?.volumeMode === "Block",
    fsType: text(csi.fsType),
    attributes: textMap(csi.volumeAttributes),
    readOnly: spec.readOnly,
    accessModes: texts(declared?.accessModes),
    mountOptions: texts(declared?.mountOptions),
    stageSecret: secretRef(csi.nodeStageSecretRef),
    publishSecret: secretRef(csi.nodePublishSecretRef),
    expandSecret: secretRef(csi.nodeExpandSecretRef),
    migrated: spec.migrated !== "none",
  };
}

/** The handle the driver knows the volume by. */
export function handleOf(
  volume: CsiVolume,
  pod: { readonly podUid: string; readonly specName: string },
): string {
  return volume.kind === "persistent" ? volume.handle : ephemeralHandle(pod.podUid, pod.specName);
}

export function ephemeralHandle(podUid: string, name: string): string {
  return `csi-${sha256(`${podUid}${name}`)}`;
}

function secretRef(
  ref: { name?: string | undefined; namespace?: string } | undefined,
): SecretRef | undefined {
  const name = text(ref?.name);
  return name === "" ? undefined : { namespace: text(ref?.namespace), name };
}

/** Only the texts of what should be a list of them. */
function texts(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];
}

/** A copy with only the texts of what should be a map of them: what is added later never reaches the cache (FIX 20). */
export function textMap(map: unknown): Readonly<Record<string, string>> {
  if (!isObject(map)) return {};
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

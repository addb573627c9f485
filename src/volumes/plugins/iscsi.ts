import type { ISCSIPersistentVolumeSource, ISCSIVolumeSource } from "kubernetes-types/core/v1.js";
import type { AttachablePlugin } from "../plugin.ts";
import type { VolumeSpec } from "../spec.ts";
import { createNodeConnectedPlugin } from "./node-connected.ts";

type IscsiSource = ISCSIVolumeSource | ISCSIPersistentVolumeSource;

export function createIscsiPlugin(): AttachablePlugin {
  return createNodeConnectedPlugin({ name: "kubernetes.io/iscsi", sourceOf, volumeNameOf });
}

function sourceOf(spec: VolumeSpec): IscsiSource | undefined {
  return spec.kind === "inline" ? spec.volume.iscsi : spec.volume.spec?.iscsi;
}

/** `<portal>:<iqn>:<lun>`. A LUN that is left out is 0, as it is to every client in Go, the kubelet among them. */
function volumeNameOf({ targetPortal, iqn, lun }: Partial<IscsiSource>): string | undefined {
  return targetPortal && iqn ? `${targetPortal}:${iqn}:${lun ?? 0}` : undefined;
}

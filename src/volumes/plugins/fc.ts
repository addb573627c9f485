import type { FCVolumeSource } from "kubernetes-types/core/v1.js";
import type { AttachablePlugin } from "../plugin.ts";
import type { VolumeSpec } from "../spec.ts";
import { createNodeConnectedPlugin } from "./node-connected.ts";

export function createFcPlugin(): AttachablePlugin {
  return createNodeConnectedPlugin({ name: "kubernetes.io/fc", sourceOf, volumeNameOf });
}

function sourceOf(spec: VolumeSpec): FCVolumeSource | undefined {
  return spec.kind === "inline" ? spec.volume.fc : spec.volume.spec?.fc;
}

/** `[wwn wwn]:lun` by target, else `[wwid wwid]`; a target without its LUN names no disk. */
function volumeNameOf({ targetWWNs, lun, wwids }: FCVolumeSource): string | undefined {
  // A LUN may be 0, and null in JSON that was written by hand.
  if (targetWWNs?.length && typeof lun === "number") return `[${targetWWNs.join(" ")}]:${lun}`;
  return wwids?.length ? `[${wwids.join(" ")}]` : undefined;
}

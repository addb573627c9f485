import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import { isObject, text } from "../volumes/untrusted.ts";
import { toAccessMode, type AccessMode } from "./access-modes.ts";
import type { DriverCapabilities } from "./driver.ts";

/** How a volume is to be used, in the words of CSI. */
export interface VolumeCapability {
  readonly accessMode: AccessMode;
  readonly access:
    | { readonly kind: "block" }
    | { readonly kind: "mount"; readonly fsType: string; readonly mountFlags: readonly string[] };
}

export function toVolumeCapability(
  spec: PersistentVolumeSpec,
  driver: DriverCapabilities,
  defaultFsType: string,
): VolumeCapability {
  const accessMode = toAccessMode(texts(spec.accessModes), driver);
  if (spec.volumeMode === "Block") return { accessMode, access: { kind: "block" } };
  const fsType = text(spec.csi?.fsType) || defaultFsType;
  return { accessMode, access: { kind: "mount", fsType, mountFlags: texts(spec.mountOptions) } };
}

/** Only the texts of what should be a list of them. */
function texts(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];
}

/** Only the texts of what should be a map of them. */
export function textMap(map: unknown): Readonly<Record<string, string>> {
  if (!isObject(map)) return {};
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

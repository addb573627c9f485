import type { Container, Volume, VolumeDevice, VolumeMount } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  forbiddenField,
  invalidValue,
  notFoundValue,
  oneOf,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import { validateDescending, validateNoBacksteps } from "./local-paths.ts";
import type { Loose } from "./loose.ts";

type PodContainer = Loose<Container>;
type Mount = Loose<VolumeMount>;

/** Where a container finds the pod's volumes: as directories and as devices, each in a place of its own. */
export function validateMountsAndDevices(
  field: string,
  container: PodContainer,
  volumes: readonly Loose<Volume>[],
): Cause[] {
  return [
    ...validateMounts(`${field}.volumeMounts`, container, volumes),
    ...validateDevices(`${field}.volumeDevices`, container, volumes),
  ];
}

function validateMounts(field: string, container: PodContainer, volumes: readonly Loose<Volume>[]): Cause[] {
  const { volumeMounts: mounts = [], volumeDevices: devices = [] } = container;
  const paths = mounts.map(({ mountPath = "" }) => mountPath);
  return mounts.flatMap((mount, index) => {
    const { name = "", mountPath = "" } = mount;
    const path = `${field}[${index}]`;
    const isDevice = devices.some((one) => one.name === name);
    const isDevicePath = devices.some(({ devicePath = "" }) => devicePath === mountPath);
    return [
      ...validateVolumeName(`${path}.name`, name, volumes),
      ...requiredText(`${path}.mountPath`, mountPath),
      ...causeIf(
        paths.indexOf(mountPath) < index,
        invalidValue(`${path}.mountPath`, mountPath, "must be unique"),
      ),
      ...causeIf(isDevice, invalidValue(`${path}.name`, name, "must not already exist in volumeDevices")),
      ...causeIf(
        isDevicePath,
        invalidValue(`${path}.mountPath`, mountPath, "must not already exist as a path in volumeDevices"),
      ),
      ...validateSubPaths(field, path, mount),
      ...validatePropagation(`${field}.mountPropagation`, mount, container),
      ...validateRecursiveReadOnly(`${field}.recursiveReadOnly`, mount),
    ];
  });
}

/** A few fields go without the index of their mount: that is how the real server spells them. */
function validateSubPaths(list: string, field: string, { subPath = "", subPathExpr = "" }: Mount): Cause[] {
  const both = "subPathExpr and subPath are mutually exclusive";
  return [
    ...validateDescending(`${list}.subPath`, subPath),
    ...causeIf(subPath !== "" && subPathExpr !== "", invalidValue(`${field}.subPathExpr`, subPathExpr, both)),
    ...validateDescending(`${list}.subPathExpr`, subPathExpr),
  ];
}

function validatePropagation(
  field: string,
  { mountPropagation }: Mount,
  { securityContext }: PodContainer,
): Cause[] {
  const isPrivileged = securityContext?.privileged === true;
  return [
    ...oneOf(field, mountPropagation, ["Bidirectional", "HostToContainer", "None"]),
    ...causeIf(
      mountPropagation === "Bidirectional" && !isPrivileged,
      forbiddenField(field, "Bidirectional mount propagation is available only to privileged containers"),
    ),
  ];
}

function validateRecursiveReadOnly(field: string, mount: Mount): Cause[] {
  const { recursiveReadOnly: mode, readOnly = false, mountPropagation = "None" } = mount;
  if (mode === undefined || mode === "Disabled") return [];
  if (mode !== "Enabled" && mode !== "IfPossible") return oneOf(field, mode, RECURSIVE_MODES);
  return [
    ...causeIf(!readOnly, forbiddenField(field, "may only be specified when readOnly is true")),
    ...causeIf(
      mountPropagation !== "None",
      forbiddenField(field, "may only be specified when mountPropagation is None or not specified"),
    ),
  ];
}

const RECURSIVE_MODES = ["Disabled", "Enabled", "IfPossible"];

/** Only what can be a block device at all may be handed in as one. */
function validateDevices(
  field: string,
  { volumeMounts: mounts = [], volumeDevices: devices = [] }: PodContainer,
  volumes: readonly Loose<Volume>[],
): Cause[] {
  const names = devices.map(({ name = "" }) => name);
  return devices.flatMap((device, index) => {
    const { name = "", devicePath = "" } = device;
    const path = `${field}[${index}]`;
    const volume = volumes.find((one) => one.name === name);
    const isBlock = volume?.persistentVolumeClaim !== undefined || volume?.ephemeral !== undefined;
    const isRepeated = name !== "" && names.indexOf(name) < index;
    return [
      ...validateVolumeName(`${path}.name`, name, volumes),
      ...causeIf(isRepeated, invalidValue(`${path}.name`, name, "must be unique")),
      ...causeIf(volume !== undefined && !isBlock, invalidValue(`${path}.name`, name, NO_BLOCK_SOURCE)),
      ...validateDevicePath(`${path}.devicePath`, devicePath, devices.slice(0, index)),
      ...causeIf(
        mounts.some((mount) => mount.name === name),
        invalidValue(`${path}.name`, name, "must not already exist in volumeMounts"),
      ),
      ...causeIf(
        mounts.some(({ mountPath = "" }) => mountPath === devicePath),
        invalidValue(`${path}.devicePath`, devicePath, "must not already exist as a path in volumeMounts"),
      ),
    ];
  });
}

const NO_BLOCK_SOURCE =
  "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";

function validateDevicePath(field: string, path: string, earlier: readonly Loose<VolumeDevice>[]): Cause[] {
  const climbs = validateNoBacksteps(field, path).length > 0;
  return [
    ...requiredText(field, path),
    ...causeIf(
      earlier.some(({ devicePath = "" }) => devicePath === path),
      invalidValue(field, path, "must be unique"),
    ),
    ...causeIf(climbs, invalidValue(field, path, "can not contain backsteps ('..')")),
  ];
}

/** An empty name is missing, and names no volume either. */
function validateVolumeName(field: string, name: string, volumes: readonly Loose<Volume>[]): Cause[] {
  const isThere = volumes.some((volume) => volume.name === name && name !== "");
  return [...causeIf(name === "", required(field)), ...causeIf(!isThere, notFoundValue(field, name))];
}

import type {
  Container,
  ContainerPort,
  Volume,
  VolumeDevice,
  VolumeMount,
} from "kubernetes-types/core/v1.js";
import {
  duplicate,
  invalidFor,
  invalidValue,
  notFoundValue,
  oneOf,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateDescending } from "./pod-volumes.ts";
import { compareAmounts, notNegativeAmount, own } from "./quantities.ts";
import { labelProblems, qualifiedNameProblems } from "./text-rules.ts";

type PodContainer = Loose<Container>;

/** `taken` are names of containers in other lists of the pod. */
export function validateContainers(
  field: string,
  containers: readonly PodContainer[],
  { volumes, taken = [] }: { volumes: readonly Loose<Volume>[]; taken?: readonly string[] },
): Cause[] {
  const names = containers.map(({ name = "" }) => name);
  return containers.flatMap((container, index) => {
    const { name = "" } = container;
    const isTaken = names.indexOf(name) < index || taken.includes(name);
    return [
      ...validateContainer(`${field}[${index}]`, container, volumes),
      ...(name !== "" && isTaken ? [duplicate(`${field}[${index}].name`, name)] : []),
    ];
  });
}

function validateContainer(
  field: string,
  container: PodContainer,
  volumes: readonly Loose<Volume>[],
): Cause[] {
  const { name = "", ports = [], env = [], volumeMounts = [], volumeDevices = [] } = container;
  return [
    ...(name === "" ? [required(`${field}.name`)] : invalidFor(`${field}.name`, name, labelProblems(name))),
    ...validateImage(`${field}.image`, container.image),
    ...oneOf(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, [
      "FallbackToLogsOnError",
      "File",
    ]),
    ...validatePorts(`${field}.ports`, ports),
    ...env.flatMap((variable, index) => requiredText(`${field}.env[${index}].name`, variable.name)),
    ...validateMounts(`${field}.volumeMounts`, volumeMounts, { volumes, volumeDevices }),
    ...validateDevices(`${field}.volumeDevices`, volumeDevices, volumes),
    ...oneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, ["Always", "IfNotPresent", "Never"]),
    ...validateResources(`${field}.resources`, container.resources),
  ];
}

export function validateImage(field: string, image = ""): Cause[] {
  if (image === "") return [required(field)];
  if (image.trim() === image) return [];
  return [invalidValue(field, image, "must not have leading or trailing whitespace")];
}

function validatePorts(field: string, ports: readonly Loose<ContainerPort>[]): Cause[] {
  const names = ports.map(({ name }) => name);
  return ports.flatMap(({ name, containerPort = 0, hostPort = 0, protocol }, index) => {
    const path = `${field}[${index}]`;
    const isRepeated = name !== undefined && names.indexOf(name) < index;
    return [
      ...(isRepeated ? [duplicate(`${path}.name`, name)] : []),
      ...(containerPort === 0
        ? [required(`${path}.containerPort`)]
        : portCauses(`${path}.containerPort`, containerPort)),
      ...(hostPort === 0 ? [] : portCauses(`${path}.hostPort`, hostPort)),
      ...oneOf(`${path}.protocol`, protocol, ["SCTP", "TCP", "UDP"]),
    ];
  });
}

function portCauses(field: string, port: number): Cause[] {
  return port >= 1 && port <= 65_535
    ? []
    : [invalidValue(field, port, "must be between 1 and 65535, inclusive")];
}

function validateMounts(
  field: string,
  mounts: readonly Loose<VolumeMount>[],
  pod: { volumes: readonly Loose<Volume>[]; volumeDevices: readonly Loose<VolumeDevice>[] },
): Cause[] {
  const paths = mounts.map(({ mountPath }) => mountPath);
  return mounts.flatMap(({ name = "", mountPath = "", subPath = "", subPathExpr = "" }, index) => {
    const path = `${field}[${index}]`;
    const device = pod.volumeDevices.find((one) => one.name === name || one.devicePath === mountPath);
    return [
      ...validateVolumeName(`${path}.name`, name, pod.volumes),
      ...(mountPath === "" ? [required(`${path}.mountPath`)] : []),
      ...(paths.indexOf(mountPath) < index && mountPath !== ""
        ? [invalidValue(`${path}.mountPath`, mountPath, "must be unique")]
        : []),
      ...(device?.name === name && name !== ""
        ? [invalidValue(`${path}.name`, name, "must not already exist in volumeDevices")]
        : []),
      ...(device?.devicePath === mountPath && mountPath !== ""
        ? [invalidValue(`${path}.mountPath`, mountPath, "must not already exist as a path in volumeDevices")]
        : []),
      ...(subPath === "" ? [] : validateDescending(`${path}.subPath`, subPath)),
      ...(subPathExpr === "" ? [] : validateDescending(`${path}.subPathExpr`, subPathExpr)),
      ...(subPath !== "" && subPathExpr !== ""
        ? [invalidValue(`${path}.subPathExpr`, subPathExpr, "subPathExpr and subPath are mutually exclusive")]
        : []),
    ];
  });
}

function validateVolumeName(field: string, name: string, volumes: readonly Loose<Volume>[]): Cause[] {
  if (name === "") return [required(field)];
  return volumes.some((volume) => volume.name === name) ? [] : [notFoundValue(field, name)];
}

/** Only what can be a block device at all may be handed in as one. */
function validateDevices(
  field: string,
  devices: readonly Loose<VolumeDevice>[],
  volumes: readonly Loose<Volume>[],
): Cause[] {
  const [names, paths] = [devices.map(({ name }) => name), devices.map(({ devicePath }) => devicePath)];
  return devices.flatMap(({ name = "", devicePath = "" }, index) => {
    const path = `${field}[${index}]`;
    const volume = volumes.find((one) => one.name === name);
    const isBlock = volume?.persistentVolumeClaim !== undefined || volume?.ephemeral !== undefined;
    return [
      ...validateVolumeName(`${path}.name`, name, volumes),
      ...(names.indexOf(name) < index && name !== ""
        ? [invalidValue(`${path}.name`, name, "must be unique")]
        : []),
      ...(volume === undefined || isBlock
        ? []
        : [
            invalidValue(
              `${path}.name`,
              name,
              "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ),
          ]),
      ...(devicePath === ""
        ? [required(`${path}.devicePath`)]
        : validateDevicePath(`${path}.devicePath`, devicePath)),
      ...(paths.indexOf(devicePath) < index && devicePath !== ""
        ? [invalidValue(`${path}.devicePath`, devicePath, "must be unique")]
        : []),
    ];
  });
}

function validateDevicePath(field: string, path: string): Cause[] {
  const climbs = path.split("/").includes("..");
  return climbs ? [invalidValue(field, path, "can not contain backsteps ('..')")] : [];
}

function validateResources(
  field: string,
  { limits = {}, requests = {} }: PodContainer["resources"] = {},
): Cause[] {
  return [
    ...Object.entries(limits).flatMap(([name, amount]) => resourceCauses(`${field}.limits`, name, amount)),
    ...Object.entries(requests).flatMap(([name, amount]) => [
      ...resourceCauses(`${field}.requests`, name, amount),
      ...limitCauses(`${field}.requests`, amount, { name, limit: own(limits, name) }),
    ]),
  ];
}

function limitCauses(
  field: string,
  amount: string | undefined,
  { name, limit }: { name: string; limit: string | undefined },
): Cause[] {
  if (limit === undefined || compareAmounts(amount, limit) <= 0) return [];
  return [invalidValue(field, amount, `must be less than or equal to ${name} limit of ${limit}`)];
}

function resourceCauses(field: string, name: string, amount: string | undefined): Cause[] {
  return [
    ...invalidFor(`${field}[${name}]`, name, qualifiedNameProblems(name)),
    ...notNegativeAmount(`${field}[${name}]`, amount),
  ];
}

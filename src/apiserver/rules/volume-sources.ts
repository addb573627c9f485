import { isJsonObject } from "../../kube/patch/json.ts";
import { forbiddenField, invalidValue, oneOf, required, type Cause } from "./causes.ts";
import { driverNameCauses } from "./text-rules.ts";

/**
 * What PersistentVolumes and volumes of pods have in common: of many possible sources exactly one is
 * given. Sources that live on in old manifests are checked for the fields without which they name nothing.
 */

/** A source as it is in the object, or undefined. */
export type Sources = Readonly<Record<string, unknown>>;

/** In the order in which the real server looks at them: of two, the later is the one too many. */
export function validateSources(
  field: string,
  object: Sources,
  order: readonly string[],
  validate: (field: string, name: string, source: Sources) => Cause[],
): Cause[] {
  const given = order.filter((name) => isJsonObject(object[name]));
  if (given.length === 0) return [required(field, "must specify a volume type")];
  return given.flatMap((name, index) => {
    const source = object[name];
    if (index > 0) return [forbiddenField(`${field}.${name}`, "may not specify more than 1 volume type")];
    return isJsonObject(source) ? validate(`${field}.${name}`, name, source) : [];
  });
}

const REQUIRED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  hostPath: ["path"],
  local: ["path"],
  gcePersistentDisk: ["pdName"],
  awsElasticBlockStore: ["volumeID"],
  gitRepo: ["repository"],
  nfs: ["server", "path"],
  iscsi: ["targetPortal", "iqn"],
  glusterfs: ["endpoints", "path"],
  rbd: ["monitors", "image"],
  quobyte: ["registry", "volume"],
  cinder: ["volumeID"],
  cephfs: ["monitors"],
  flexVolume: ["driver"],
  azureFile: ["secretName", "shareName"],
  azureDisk: ["diskName", "diskURI"],
  vsphereVolume: ["volumePath"],
  photonPersistentDisk: ["pdID"],
  portworxVolume: ["volumeID"],
  scaleIO: ["gateway", "system", "volumeName"],
  persistentVolumeClaim: ["claimName"],
  secret: ["secretName"],
  configMap: ["name"],
};

const HOST_PATH_TYPES: readonly string[] = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

/** What holds for a source wherever it stands. */
export function validateSource(field: string, name: string, source: Sources): Cause[] {
  return [
    ...(name === "csi" ? driverNameCauses(`${field}.driver`, textAt(source, "driver")) : []),
    ...(REQUIRED_FIELDS[name] ?? [])
      .filter((member) => isEmpty(source[member]))
      .map((member) => required(`${field}.${member}`)),
    ...(name === "hostPath" || name === "local" ? validatePath(field, textAt(source, "path")) : []),
    ...(name === "hostPath" ? oneOf(`${field}.type`, textAt(source, "type"), HOST_PATH_TYPES) : []),
    ...(name === "nfs" ? validateAbsolute(`${field}.path`, textAt(source, "path")) : []),
  ];
}

export function textAt(source: Sources, member: string): string | undefined {
  const value = source[member];
  return typeof value === "string" ? value : undefined;
}

function validatePath(field: string, path = ""): Cause[] {
  const climbs = path.split("/").includes("..");
  return climbs ? [invalidValue(`${field}.path`, path, "must not contain '..'")] : [];
}

function validateAbsolute(field: string, path = ""): Cause[] {
  return path === "" || path.startsWith("/") ? [] : [invalidValue(field, path, "must be an absolute path")];
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)
  );
}

import type { DownwardAPIVolumeFile, KeyToPath, VolumeProjection } from "kubernetes-types/core/v1.js";
import { causeIf, forbiddenField, invalidValue, required, requiredText, type Cause } from "./causes.ts";
import { tokenLifetimeCauses } from "./csi-driver.ts";
import { FILE_FIELDS, validateFieldRef, validateResourceFieldRef } from "./downward-fields.ts";
import { validateUnreserved } from "./local-paths.ts";
import type { Loose } from "./loose.ts";

/** Files that are made of API objects: whole volumes of one kind, and volumes that mix several. */

type Items = readonly Loose<KeyToPath>[];
type DownwardFiles = readonly Loose<DownwardAPIVolumeFile>[];

/** Permission bits go up to 0777. */
const FILE_MODE_MAX = 0o777;

export function validateMode(field: string, mode: number | undefined): Cause[] {
  if (mode === undefined || (mode >= 0 && mode <= FILE_MODE_MAX)) return [];
  return [invalidValue(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}

/** Keys of a Secret or ConfigMap that become files. */
export function validateItems(field: string, items: Items = []): Cause[] {
  return items.flatMap(({ key, path = "", mode }, index) => [
    ...requiredText(`${field}[${index}].key`, key),
    ...requiredText(`${field}[${index}].path`, path),
    ...validateUnreserved(`${field}[${index}].path`, path),
    ...validateMode(`${field}[${index}].mode`, mode),
  ]);
}

/** Fields of the pod that become files. The real server names the volume, not the file in it. */
export function validateDownwardFiles(field: string, files: DownwardFiles = []): Cause[] {
  return files.flatMap(({ path = "", mode, fieldRef, resourceFieldRef }) => [
    ...requiredText(`${field}.path`, path),
    ...validateUnreserved(`${field}.path`, path),
    ...(fieldRef === undefined ? [] : validateFieldRef(`${field}.fieldRef`, fieldRef, FILE_FIELDS)),
    ...(fieldRef !== undefined || resourceFieldRef === undefined
      ? []
      : validateResourceFieldRef(`${field}.resourceFieldRef`, resourceFieldRef, { isFile: true })),
    ...causeIf(
      fieldRef !== undefined && resourceFieldRef !== undefined,
      invalidValue(field, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"),
    ),
    ...causeIf(
      fieldRef === undefined && resourceFieldRef === undefined,
      required(field, "one of fieldRef and resourceFieldRef is required"),
    ),
    ...validateMode(`${field}.mode`, mode),
  ]);
}

export function validateProjections(
  field: string,
  sources: readonly Loose<VolumeProjection>[] = [],
): Cause[] {
  const taken = new Set<string>();
  return sources.flatMap((projection, index) => {
    const path = `${field}.sources[${index}]`;
    const isMixed = Object.keys(projection).length > 1;
    return [
      ...validateProjection(field, path, projection),
      ...validatePaths(field, projection, taken),
      ...causeIf(isMixed, forbiddenField(path, "may not specify more than 1 volume type")),
    ];
  });
}

function validateProjection(volume: string, field: string, projection: Loose<VolumeProjection>): Cause[] {
  const { serviceAccountToken: token, secret, configMap, downwardAPI } = projection;
  const tokenPath = token?.path ?? "";
  return [
    ...(secret === undefined ? [] : requiredText(`${field}.secret.name`, secret.name)),
    ...validateItems(`${field}.secret.items`, secret?.items),
    ...(configMap === undefined ? [] : requiredText(`${field}.configMap.name`, configMap.name)),
    ...validateItems(`${field}.configMap.items`, configMap?.items),
    ...validateDownwardFiles(`${field}.downwardAPI`, downwardAPI?.items),
    ...tokenLifetimeCauses(`${field}.serviceAccountToken.expirationSeconds`, token?.expirationSeconds),
    ...causeIf(token !== undefined && tokenPath === "", required(`${volume}.path`)),
    ...validateUnreserved(`${volume}.path`, tokenPath),
  ];
}

/** Two sources must not write one file. */
function validatePaths(field: string, projection: Loose<VolumeProjection>, taken: Set<string>): Cause[] {
  const { secret, configMap, downwardAPI } = projection;
  const files = [
    ...(secret?.items ?? []).map(({ path }) => ({ path, shown: secret?.name ?? "" })),
    ...(configMap?.items ?? []).map(({ path }) => ({ path, shown: configMap?.name ?? "" })),
    ...(downwardAPI?.items ?? []).map(({ path = "" }) => ({ path, shown: path })),
  ];
  return files.flatMap(({ path = "", shown }) => {
    const isTaken = path !== "" && taken.has(path);
    taken.add(path);
    return causeIf(isTaken, invalidValue(field, shown, "conflicting duplicate paths"));
  });
}

import { invalidValue, type Cause } from "./causes.ts";

/** Below the place it is relative to: never above it, nor anywhere else. */
export function validateDescending(field: string, path: string): Cause[] {
  return [
    ...(path.startsWith("/") ? [invalidValue(field, path, "must be a relative path")] : []),
    ...validateNoBacksteps(field, path),
  ];
}

/** The same for a file that a node agent writes, which keeps its own files under names that begin with `..`. */
export function validateUnreserved(field: string, path: string): Cause[] {
  const isReserved = path.startsWith("..") && !path.startsWith("../");
  return [
    ...validateDescending(field, path),
    ...(isReserved ? [invalidValue(field, path, "must not start with '..'")] : []),
  ];
}

export function validateNoBacksteps(field: string, path: string): Cause[] {
  return path.split("/").includes("..") ? [invalidValue(field, path, "must not contain '..'")] : [];
}

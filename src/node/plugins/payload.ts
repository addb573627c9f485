import { posix } from "node:path";
import type { KeyToPath } from "kubernetes-types/core/v1.js";
import { VolumeError, type Blocker } from "../errors.ts";

/** Files of a content volume by their path in it. */
export type Payload = ReadonlyMap<string, PayloadFile>;

export interface PayloadFile {
  readonly bytes: Uint8Array;
  /** Permission bits, before the group of the pod is given its share. */
  readonly mode: number;
  /** Root where undefined. */
  readonly uid?: number | undefined;
}

const PATH_CHARS_MAX = 4_096;
const NAME_CHARS_MAX = 255;

/**
 * The payload with clean paths; throws for the first that could lie outside the volume or over the writer's own names.
 * Keys and item paths come from whoever may write a pod or a configMap.
 */
export function validatePayload(payload: Payload): Payload {
  return new Map([...payload].map(([path, file]) => [cleanPath(path), file]));
}

function cleanPath(path: string): string {
  const refuse = (why: string) =>
    new VolumeError("final", `path ${JSON.stringify(path.slice(0, 255))}: ${why}`);
  if (path === "") throw refuse("must not be empty");
  if (path.includes("\0")) throw refuse("must not contain a NUL");
  if (path.startsWith("/")) throw refuse("must be relative");
  if (path.length > PATH_CHARS_MAX) throw refuse(`must have at most ${PATH_CHARS_MAX} characters`);
  const names = path.split("/");
  if (names.includes("..")) throw refuse("must not contain '..'");
  if (names.some((name) => Buffer.byteLength(name) > NAME_CHARS_MAX))
    throw refuse(`each part must have at most ${NAME_CHARS_MAX} characters`);
  const clean = posix.normalize(path).replace(/\/$/, "");
  if (clean === ".") throw refuse("must name a file");
  if (clean.startsWith("..")) throw refuse("must not start with '..', which is kept for versions");
  return clean;
}

export interface KeyedData {
  /** By key. */
  readonly data: ReadonlyMap<string, Uint8Array>;
  readonly items: readonly KeyToPath[] | undefined;
  readonly defaultMode: number;
  readonly optional: boolean;
  /** `configmap references non-existent config key`: in front of the key that is missing. */
  readonly missingKey: string;
  /** The object the keys are of: once it changes, a missing one may be there. */
  readonly of: Blocker;
}

/** Every key a file, or only the items that were asked for. */
export function keyedPayload({ data, items, defaultMode, optional, missingKey, of }: KeyedData): Payload {
  if (!items?.length) return new Map([...data].map(([key, bytes]) => [key, { bytes, mode: defaultMode }]));
  const files = new Map<string, PayloadFile>();
  for (const { key, path, mode } of items) {
    const bytes = data.get(key);
    if (bytes !== undefined) files.set(path, { bytes, mode: mode ?? defaultMode });
    else if (!optional) throw new VolumeError("transient", `${missingKey}: ${key}`, { blockedBy: [of] });
  }
  return files;
}

/** API servers fill it in; a volume without one is no volume we may guess about. */
export function requiredMode(defaultMode: number | undefined, kind: string): number {
  if (defaultMode === undefined)
    throw new VolumeError("final", `no defaultMode used, not even the default value for it (${kind} volume)`);
  return defaultMode;
}

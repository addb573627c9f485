import { join } from "node:path";
import type { HostFiles } from "../host.ts";

/**
 * `vol_data.json`: which volume of which driver a directory belongs to, for whoever finds it after a restart. The
 * kubelet reads and writes the same file, so either can take over from the other: one object of texts, keys sorted,
 * a newline at the end. Unknown keys are ignored.
 */
export interface VolumeRecord {
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly specVolID?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly attachmentID?: string | undefined;
  readonly volumeLifecycleMode?: "Persistent" | "Ephemeral" | undefined;
  readonly seLinuxMountContext?: string | undefined;
}

export type RecordLookup =
  | { readonly kind: "found"; readonly record: VolumeRecord }
  | { readonly kind: "missing" }
  /** Not what a record looks like: written by somebody who does not write atomically, and cut short. */
  | { readonly kind: "corrupt"; readonly path: string };

const FILE = "vol_data.json";

/** Above this it is no record of ours; handles take at most 128 bytes by the protocol, 4 KiB with drivers that do not care. */
const CHARS_MAX = 65_536;

/** Atomic and synced (FIX 13). The directory is there already. */
export async function writeRecord(files: HostFiles, directory: string, record: VolumeRecord): Promise<void> {
  const text = renderRecord(record);
  // A republish every minute would otherwise cost three syncs for the same bytes.
  if ((await files.read(join(directory, FILE))) === text) return;
  await files.writeDurable(join(directory, FILE), text, 0o600);
}

export async function readRecord(files: HostFiles, directory: string): Promise<RecordLookup> {
  const path = join(directory, FILE);
  const text = await files.read(path);
  if (text === undefined) return { kind: "missing" };
  const record = parseRecord(text);
  return record === undefined ? { kind: "corrupt", path } : { kind: "found", record };
}

export async function removeRecord(files: HostFiles, directory: string): Promise<void> {
  await files.removeFile(join(directory, FILE));
}

export function renderRecord(record: VolumeRecord): string {
  const known = Object.entries(record).filter(([, value]) => value !== undefined);
  const sorted = known.sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted))}\n`;
}

export function parseRecord(text: string): VolumeRecord | undefined {
  if (text.length > CHARS_MAX) return undefined;
  let fields: Readonly<Record<string, unknown>>;
  try {
    fields = Object(JSON.parse(text)) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
  const value = (name: keyof VolumeRecord) => {
    const found = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return typeof found === "string" && found !== "" ? found : undefined;
  };
  const [driverName, volumeHandle] = [value("driverName"), value("volumeHandle")];
  if (driverName === undefined || volumeHandle === undefined) return undefined;
  return {
    driverName,
    volumeHandle,
    specVolID: value("specVolID"),
    nodeName: value("nodeName"),
    attachmentID: value("attachmentID"),
    // Records from before there were two modes say nothing, and meant the only one.
    volumeLifecycleMode: value("volumeLifecycleMode") === "Ephemeral" ? "Ephemeral" : "Persistent",
    seLinuxMountContext: value("seLinuxMountContext"),
  };
}

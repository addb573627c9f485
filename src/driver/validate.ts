import type { CapacityRange, VolumeCapability } from "../csi/gen/csi_pb.ts";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { invalid } from "./errors.ts";

/** Input is checked here, before anything looks at the disk: required fields, then existence, then state. */

/** A VolumeCapability as records keep it and compare it. */
export interface Capability {
  readonly accessType: "mount" | "block";
  readonly mode: number;
  readonly fsType: string;
  readonly mountFlags: readonly string[];
}

const NAME_BYTES_MAX = 128;
const MAP_BYTES_MAX = 4_096;
/** Control characters except tab, line feed and carriage return. */
// eslint-disable-next-line no-control-regex -- these are the very characters that names may not hold
const BANNED_IN_NAMES = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

export const SINGLE_NODE_MODES: ReadonlySet<number> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
]);
const READER_MODES: ReadonlySet<number> = new Set([
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.MULTI_NODE_READER_ONLY,
]);

export const isReaderOnly = ({ mode }: Capability) => READER_MODES.has(mode);

export function checkPresent(value: string, field: string): void {
  if (value === "") throw invalid(`${field} is missing`);
}

export function checkName(name: string, field = "name"): void {
  checkPresent(name, field);
  if (Buffer.byteLength(name) > NAME_BYTES_MAX)
    throw invalid(`${field} is longer than ${NAME_BYTES_MAX} bytes`);
  if (BANNED_IN_NAMES.test(name)) throw invalid(`${field} holds a control character`);
}

export function checkMap(map: Readonly<Record<string, string>>, field: string): void {
  const bytes = Object.entries(map).reduce(
    (sum, [k, v]) => sum + Buffer.byteLength(k) + Buffer.byteLength(v),
    0,
  );
  if (bytes > MAP_BYTES_MAX) throw invalid(`${field} is larger than ${MAP_BYTES_MAX} bytes`);
}

export function toCapability(
  capability: VolumeCapability | undefined,
  field = "volume_capability",
): Capability {
  if (capability === undefined) throw invalid(`${field} is missing`);
  const mode: number = capability.accessMode?.mode ?? 0;
  if (mode === 0) throw invalid(`${field}: the access mode is missing or UNKNOWN`);
  if (!(mode in Mode)) {
    throw invalid(`${field}: access mode ${mode} is not known to this driver`);
  }
  const { accessType } = capability;
  if (accessType.case === "block") return { accessType: "block", mode, fsType: "", mountFlags: [] };
  if (accessType.case !== "mount") throw invalid(`${field}: neither block nor mount is given`);
  const { fsType, mountFlags } = accessType.value;
  if (!["", "ext4", "xfs"].includes(fsType)) {
    throw invalid(`${field}: fs_type must be ext4, xfs or empty`);
  }
  checkMountFlags(mountFlags);
  return { accessType: "mount", mode, fsType, mountFlags: [...mountFlags].sort() };
}

/** Flags that mount something else, elsewhere, or change who sees it. */
const FLAGS_DENIED =
  /^(?:r?bind|move|remount|r?(?:shared|slave|private|unbindable)|(?:loop|offset|sizelimit|logdev|rtdev|journal_(?:dev|path)|sb|helper|uhelper|x-.*|user|users|owner|group|context|fscontext|defcontext|rootcontext)(?:=.*)?)$/;
const FLAG_SHAPE = /^[A-Za-z0-9_.:/+@%=-]+$/;

/** Flags may be sensitive: the message counts, it does not quote. */
function checkMountFlags(flags: readonly string[]): void {
  const bytes = flags.reduce((sum, flag) => sum + Buffer.byteLength(flag), 0);
  if (bytes > MAP_BYTES_MAX) throw invalid(`mount_flags are larger than ${MAP_BYTES_MAX} bytes`);
  flags.forEach((flag, index) => {
    if (!FLAG_SHAPE.test(flag) || FLAGS_DENIED.test(flag)) {
      throw invalid(`mount flag ${index + 1} of ${flags.length} is not allowed`);
    }
  });
}

export function sameCapability(a: Capability, b: Capability): boolean {
  return (
    a.accessType === b.accessType &&
    a.mode === b.mode &&
    a.fsType === b.fsType &&
    a.mountFlags.join() === b.mountFlags.join()
  );
}

/** All of a request in one: a volume is of one access type and one filesystem. */
export function combine(capabilities: readonly VolumeCapability[]): {
  readonly accessType: "mount" | "block";
  readonly fsType: string;
} {
  if (capabilities.length === 0) throw invalid("volume_capabilities is missing");
  const all = capabilities.map((capability) => toCapability(capability, "volume_capabilities"));
  const types = new Set(all.map(({ accessType }) => accessType));
  if (types.size > 1) throw invalid("volume_capabilities: block and mount cannot be one volume");
  const fsTypes = new Set(all.map(({ fsType }) => fsType).filter((type) => type !== ""));
  if (fsTypes.size > 1) throw invalid("volume_capabilities name two filesystem types");
  return { accessType: all[0]?.accessType ?? "mount", fsType: [...fsTypes][0] ?? "" };
}

export interface Range {
  /** 0 for unset. */
  readonly requiredBytes: bigint;
  readonly limitBytes: bigint;
}

export function toRange(range: CapacityRange | undefined): Range {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (requiredBytes < 0n || limitBytes < 0n) throw invalid("capacity_range: a size is negative");
  if (limitBytes > 0n && requiredBytes > limitBytes) {
    throw invalid(`capacity_range: required ${requiredBytes} is above limit ${limitBytes}`);
  }
  return { requiredBytes, limitBytes };
}

export function inRange(sizeBytes: bigint, { requiredBytes, limitBytes }: Range): boolean {
  return sizeBytes >= requiredBytes && (limitBytes === 0n || sizeBytes <= limitBytes);
}

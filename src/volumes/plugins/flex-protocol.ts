import type { FlexPersistentVolumeSource, FlexVolumeSource } from "kubernetes-types/core/v1.js";
import { scrubText } from "../../base/redact.ts";
import { specName, type VolumeSpec } from "../spec.ts";

/**
 * What is said between us and a FlexVolume driver: a program that gets a verb and its arguments and answers with one
 * JSON object on stdout. Pure; `flex-driver.ts` runs the program.
 *
 * Upstream also runs `getvolumename`, and then uses the name of the spec whatever the driver answered. So that verb is
 * left out: a process a volume and look, for nothing.
 */
export type FlexVerb = "init" | "attach" | "isattached" | "detach";

export type FlexErrorCode =
  /** The program cannot be run: it is gone, or others may write to it. */
  | "BadDriver"
  /** It ran and said, or its exit code says, that it could not do it. */
  | "DriverFailed"
  /** What it printed is no answer. */
  | "BadAnswer"
  /** It was stopped; it may have done it all the same. */
  | "DeadlineExceeded"
  /** A name that a driver must not be given. */
  | "BadInput";

export class FlexError extends Error {
  override readonly name = "FlexError";
  readonly code: FlexErrorCode;

  constructor(code: FlexErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.code = code;
  }
}

export type FlexAnswer =
  | {
      readonly kind: "success";
      /** Of `attach`: where the node finds it. */
      readonly device: string;
      /** Of `isattached`. */
      readonly attached: boolean;
      /** Of `init`: whether volumes have to be attached at all. */
      readonly canAttach: boolean;
    }
  | { readonly kind: "not-supported" }
  | { readonly kind: "failure"; readonly reason: string }
  /** No JSON object, or a field of a wrong type. */
  | { readonly kind: "unreadable"; readonly reason: string };

/**
 * Field names count whatever their case, as in Go. A capability that is not mentioned is there; `attached` is not, because
 * drivers in Go leave out what is false.
 */
export function parseFlexAnswer(output: string): FlexAnswer {
  const fields = fieldsOf(parseJson(output));
  if (!fields) return unreadable(`it printed ${quote(output)}, which is no JSON object`);
  const { status, message = "", device = "", attached = false, capabilities = {} } = fields;
  if (status === "Not supported") return { kind: "not-supported" };
  if (status !== "Success") return { kind: "failure", reason: `status ${quote(status)}, ${quote(message)}` };
  const canAttach = fieldsOf(capabilities)?.["attach"] ?? true;
  if (typeof device !== "string") return unreadable(`its device is no text but ${quote(device)}`);
  if (typeof attached !== "boolean") return unreadable(`its attached is no boolean but ${quote(attached)}`);
  if (typeof canAttach !== "boolean")
    return unreadable(`its attach capability is no boolean but ${quote(canAttach)}`);
  return { kind: "success", device, attached, canAttach };
}

/** Text of a driver, fit for an event: scrubbed, on one line, at most 1,000 characters. */
export function quote(said: unknown): string {
  // Enough for what follows to be cut; a megabyte is not scrubbed for a line of text.
  const text = (
    typeof said === "string" ? said : said === undefined ? "nothing" : JSON.stringify(said)
  ).slice(0, 16_384);
  const line = scrubText(text).replaceAll(/\s+/g, " ").trim();
  return JSON.stringify(line.length > 1_000 ? `${line.slice(0, 1_000)}...` : line);
}

export type FlexSource = FlexVolumeSource | FlexPersistentVolumeSource;

export function flexSourceOf(spec: VolumeSpec): FlexSource | undefined {
  return spec.kind === "inline" ? spec.volume.flexVolume : spec.volume.spec?.flexVolume;
}

/**
 * The volume as a driver gets it: its own options and ours. Secrets are for the node, which mounts; attaching never
 * sees them. An option cannot pose as one of ours: the API server refuses such names, and ours are written last.
 */
export function flexOptionsJson(spec: VolumeSpec, source: FlexSource): string {
  const readOnly = spec.kind === "inline" ? source.readOnly : spec.readOnly;
  const options: Record<string, string> = {
    ...source.options,
    "kubernetes.io/fsType": source.fsType ?? "",
    "kubernetes.io/pvOrVolumeName": specName(spec),
    "kubernetes.io/readwrite": readOnly ? "ro" : "rw",
  };
  // In one order whatever the spec's: drivers in shell compare texts.
  return JSON.stringify(Object.fromEntries(Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/**
 * `acme~disk` is the driver `acme/disk`, whose program is `acme~disk/disk`. Upstream also takes a name without or
 * with several vendors; the name of such a volume cannot be read back after a restart, so it would stay attached.
 * Nobody may pose as a built-in plugin.
 */
export function parseDriverDirectory(directory: string): { driver: string; program: string } | undefined {
  const [vendor, program, ...rest] = directory.split("~");
  if (!vendor || !program || rest.length > 0 || vendor === "kubernetes.io") return undefined;
  return { driver: `${vendor}/${program}`, program };
}

/**
 * What a driver may be given as the name of a volume or a node: names of API objects. A detach takes its volume from
 * a node's status, which that node writes; drivers are mostly shell scripts, run as root on the control plane.
 */
export function isObjectName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name);
}

function unreadable(reason: string): FlexAnswer {
  return { kind: "unreadable", reason };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Without what is null, which in Go is the same as missing. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== null && field !== undefined)
      .map(([name, field]) => [name.toLowerCase(), field as unknown]),
  );
}

import type { VolumeCapability } from "./capability.ts";
import type { SecretValues } from "./secrets.ts";

/**
 * A CSI driver as this room needs it: `csi-driver.ts` puts one on a socket, a simulation brings its own.
 *
 * Callers may rely on: every call ends within `timeoutMs`, with a DriverError if need be; every call may be repeated.
 * Callers may not rely on: a failed call having done nothing.
 */
export interface ControllerDriver {
  /** False while the driver asks for patience. */
  probe(options: CallOptions): Promise<boolean>;
  /** Empty when the driver does not say. */
  pluginName(options: CallOptions): Promise<string>;
  capabilities(options: CallOptions): Promise<DriverCapabilities>;
  /** Answers the publish context. */
  publish(request: PublishRequest, options: CallOptions): Promise<Readonly<Record<string, string>>>;
  unpublish(request: UnpublishRequest, options: CallOptions): Promise<void>;
  listVolumes(request: ListRequest, options: CallOptions): Promise<VolumePage>;
}

export interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether the volume is an in-tree one, for the metrics of drivers that know such. */
  readonly migrated?: boolean;
}

/** What decides how a driver is served. */
export interface DriverCapabilities {
  /** It has a controller service that publishes; without, attaching is only a word in a status. */
  readonly publishes: boolean;
  readonly publishReadonly: boolean;
  readonly singleNodeMultiWriter: boolean;
  /** It lists volumes together with the nodes they are published on. */
  readonly listsPublishedNodes: boolean;
}

/** A driver, once it has introduced itself. */
export interface DriverFacts {
  readonly name: string;
  readonly capabilities: DriverCapabilities;
}

export interface PublishRequest {
  readonly volumeId: string;
  readonly nodeId: string;
  readonly readonly: boolean;
  readonly capability: VolumeCapability;
  readonly volumeContext: Readonly<Record<string, string>>;
  readonly secrets: SecretValues | undefined;
}

export interface UnpublishRequest {
  readonly volumeId: string;
  readonly nodeId: string;
  readonly secrets: SecretValues | undefined;
}

export interface ListRequest {
  /** 0 for as many as the driver likes. */
  readonly maxEntries: number;
  readonly startingToken: string;
}

export interface VolumePage {
  readonly entries: readonly { readonly volumeId: string; readonly publishedNodeIds: readonly string[] }[];
  /** Empty on the last page. */
  readonly nextToken: string;
}

/** The codes of gRPC by their number, as Go spells them: status texts and metric labels are read by tools. */
const CODE_NAMES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;

export const GRPC_DEADLINE_EXCEEDED = 4;
export const GRPC_UNAVAILABLE = 14;

/** A driver that said no, or nothing. `grpcCode` is absent where what failed was not gRPC. */
export class DriverError extends Error {
  override readonly name = "DriverError";
  readonly grpcCode: number | undefined;

  constructor(grpcCode: number | undefined, text: string, options?: ErrorOptions) {
    super(grpcCode === undefined ? text : `rpc error: code = ${codeName(grpcCode)} desc = ${text}`, options);
    this.grpcCode = grpcCode;
  }
}

/** Go's name of a code; a code it does not know is `Code(99)`. */
export function codeName(code: number): string {
  return CODE_NAMES[code] ?? `Code(${code})`;
}

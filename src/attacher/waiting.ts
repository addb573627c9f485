import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { AttacherError, type AttacherErrorCode, type WaitingObject } from "./errors.ts";
import type { Operation, Step } from "./plan.ts";
import { volumeNameOf } from "./source.ts";

/**
 * Why an attachment is not yet as it should be, said once by whoever decides. `/debug/attachments`, metrics and
 * `mooring why` all show this value; nobody works it out again.
 */
export interface WaitingFor {
  readonly operation: Operation;
  readonly reason: WaitingReason;
  /** What has to change for it to go on. */
  readonly object: WaitingObject;
  /** When this wait began, in the clock's `now()`. */
  readonly sinceMs: number;
  /** When it is tried again even if nothing happens. */
  readonly untilMs?: number;
  /** One sentence for people, without secrets. */
  readonly message: string;
}

/** The closed set; docs/reference/waiting-attacher.md explains each. */
export const WAITING_REASONS = [
  /** Refused before anything was sent; a change of the object named brings it back at once. */
  "bad-source",
  "volume-missing",
  "volume-deleting",
  "volume-replaced",
  "being-detached",
  "bad-access-modes",
  "node-unknown",
  "secret-unavailable",
  "held-by-other-node",
  /** Wanted, and no worker has it yet. */
  "worker",
  /** In work: a request to the API server, or a call to the driver, has not been answered yet. */
  "api-request",
  "driver-attaching",
  "driver-detaching",
  /** The last attempt failed; the message says how. */
  "backoff",
] as const;

export type WaitingReason = (typeof WAITING_REASONS)[number];

export type Wait = Omit<WaitingFor, "sinceMs" | "operation">;

export function waitForWorker({ spec }: VolumeAttachment, operation: Operation): Wait {
  return {
    reason: "worker",
    object: { kind: "CSIDriver", name: spec.attacher },
    message: `the ${operation} waits for a worker: others of the driver or of node ${spec.nodeName} are before it`,
  };
}

/** What is under way; undefined for a step that waits for nobody. */
export function waitForStep(attachment: VolumeAttachment, step: Step): Wait | undefined {
  const { metadata, spec } = attachment;
  const driver = { kind: "CSIDriver", name: spec.attacher } as const;
  switch (step.kind) {
    case "nothing":
    case "refuse":
      return undefined;
    case "publish":
      return {
        reason: "driver-attaching",
        object: driver,
        message: `driver ${spec.attacher} was asked to publish ${step.request.volumeId} on ${step.request.nodeId}`,
      };
    case "unpublish":
    case "withdraw":
      return {
        reason: "driver-detaching",
        object: driver,
        message: `driver ${spec.attacher} was asked to unpublish ${step.request.volumeId} from ${step.request.nodeId}`,
      };
    case "fetch-secret":
      return apiRequest({ kind: "Secret", ...step.ref }, "a secret is being read");
    case "check-twins":
      return apiRequest(
        { kind: "VolumeAttachment", name: step.names[0] ?? "" },
        "another attachment of the volume on the node is being read",
      );
    case "hold-volume":
      return apiRequest({ kind: "PersistentVolume", name: step.name }, "our finalizer is being added");
    case "hold":
    case "release":
    case "report":
      return apiRequest({ kind: "VolumeAttachment", name: metadata.name ?? "" }, "it is being written");
  }
}

function apiRequest(object: WaitingObject, what: string): Wait {
  return { reason: "api-request", object, message: `${what}; the API server has not answered yet` };
}

const REASONS: Readonly<Record<AttacherErrorCode, WaitingReason>> = {
  BadSource: "bad-source",
  VolumeMissing: "volume-missing",
  VolumeDeleting: "volume-deleting",
  VolumeReplaced: "volume-replaced",
  BeingDetached: "being-detached",
  BadAccessModes: "bad-access-modes",
  NodeUnknown: "node-unknown",
  SecretUnavailable: "secret-unavailable",
  HeldElsewhere: "held-by-other-node",
  ContextRefused: "backoff",
  DriverUnusable: "backoff",
};

/** A pass that failed; `error` is fit to be shown. */
export function waitAfterFailure(attachment: VolumeAttachment, error: Error, untilMs: number): Wait {
  const code = error instanceof AttacherError ? error.code : undefined;
  const reason = code === undefined ? "backoff" : REASONS[code];
  const subject = error instanceof AttacherError ? error.subject : undefined;
  return { reason, object: subject ?? objectOf(reason, attachment), untilMs, message: error.message };
}

function objectOf(reason: WaitingReason, attachment: VolumeAttachment): WaitingObject {
  const volume = volumeNameOf(attachment);
  if (reason === "node-unknown") return { kind: "CSINode", name: attachment.spec.nodeName };
  if (reason === "backoff") return { kind: "CSIDriver", name: attachment.spec.attacher };
  if (reason === "bad-source" || volume === "") {
    return { kind: "VolumeAttachment", name: attachment.metadata.name ?? "" };
  }
  return { kind: "PersistentVolume", name: volume };
}

/** What waits, by the name of its attachment. Bound: one entry an attachment that is not done. */
export class Waits {
  readonly #byName = new Map<string, WaitingFor>();

  get(name: string): WaitingFor | undefined {
    return this.#byName.get(name);
  }

  /** The same reason for the same object is the same wait, and keeps its beginning. */
  set(name: string, operation: Operation, wait: Wait, nowMs: number): void {
    const before = this.#byName.get(name);
    const same =
      before?.operation === operation &&
      before.reason === wait.reason &&
      before.object.kind === wait.object.kind &&
      before.object.name === wait.object.name;
    this.#byName.set(name, { ...wait, operation, sinceMs: same ? before.sinceMs : nowMs });
  }

  delete(name: string): void {
    this.#byName.delete(name);
  }

  *values(): Iterable<WaitingFor> {
    yield* this.#byName.values();
  }
}

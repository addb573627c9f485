import { unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { KnownSecrets } from "../base/known-secrets.ts";
import type { Logger } from "../base/log.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import {
  trimVolumeAttachment,
  volumeAttachments,
  type VolumeAttachment,
} from "../kube/api/volume-attachment.ts";
import type { Client, JsonPatchOperation, Patch } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import type { KubeObject, Resource } from "../kube/object.ts";
import type { CallOptions, ControllerDriver } from "./driver.ts";
import { DriverError } from "./driver.ts";
import { AttacherError } from "./errors.ts";
import type { Holder, Twin } from "./holders.ts";
import { errorPatch } from "./patches.ts";
import {
  operationOf,
  planAttachment,
  type AttachmentView,
  type Done,
  type Operation,
  type Step,
} from "./plan.ts";
import { fetchSecret, type SecretRef } from "./secrets.ts";
import { finalizerOf } from "./names.ts";
import { isByRecord } from "./source.ts";

export interface PublishDeps {
  readonly client: Pick<Client, "get" | "patch">;
  readonly driver: Pick<ControllerDriver, "publish" | "unpublish">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Asked right before every write and call: false once another replica may act. */
  readonly mayAct: () => boolean;
  /** Who else may have the volume, asked right before every step. */
  readonly holders: {
    elsewhere(view: Work): readonly Holder[];
    twins(view: Work): readonly Twin[];
    claim(attachment: VolumeAttachment): void;
    unclaim(name: string): void;
  };
  /** Secrets of all attachments, those before a rotation included: a driver may repeat any of them. */
  readonly known: KnownSecrets;
  /** Told of every step before it is taken, for whoever asks what is being waited for. */
  readonly onStep: (step: Step) => void;
  /** Told of every answer to a write, so that a cache which lags behind is not believed. */
  readonly onWritten: (attachment: VolumeAttachment) => void;
}

export interface PublishOptions {
  readonly timeoutMs: number;
  /** Whether the number of a gRPC code goes into `attachError`, where kubelets look for 8. */
  readonly errorCodes: boolean;
}

/** What one pass over an attachment came to. */
export type PassResult =
  | { readonly kind: "settled" }
  /** The object is gone from the server: nothing is left that could be written to. */
  | { readonly kind: "gone" }
  /** It turned out to be another operation than when it was taken: it has to queue in that lane. */
  | { readonly kind: "moved" }
  | { readonly kind: "failed"; readonly error: Error };

/** Of gRPC. */
const NOT_FOUND = 5;

/** A patch that a stale cache made impossible is computed anew from a live read, so often a pass. */
const REFRESHES_MAX = 2;

export type Work = Omit<AttachmentView, "done" | "holders" | "twins">;

/**
 * Carries out the plan of one attachment, step after step, until nothing is left to do or something fails. Throws only
 * when it is stopped.
 */
export async function runAttachment(
  deps: PublishDeps,
  { timeoutMs, errorCodes }: PublishOptions,
  work: Work,
  signal: AbortSignal,
): Promise<PassResult> {
  const { client, driver, clock, log } = deps;
  const operation = operationOf(work.attachment);
  const pass = new Pass(work, deps.known);
  const ref = { name: work.attachment.metadata.name ?? "" };

  async function perform(step: Exclude<Step, { kind: "nothing" | "refuse" }>): Promise<void> {
    switch (step.kind) {
      case "hold-volume":
        pass.volume = await patch(persistentVolumes, step.name, step.operations);
        return;
      case "fetch-secret":
        await learn(step.ref);
        return;
      case "check-twins":
        pass.note({ twins: await checkTwins(step.names) });
        return;
      case "hold":
        await hold(step.operations);
        return;
      case "publish":
        pass.note({ published: await driver.publish(step.request, callOptions(step)) });
        return;
      case "unpublish":
        if (isByRecord(pass.attachment, pass.volume))
          log.warn("detached by the record of its attach: its PersistentVolume is another one now", {
            attachment: ref.name,
            recorded: step.request.volumeId,
          });
        await driver.unpublish(step.request, callOptions(step));
        pass.note({ unpublished: true });
        return;
      case "withdraw":
        await withdraw(step);
        pass.note({ withdrawn: step.request.nodeId });
        return;
      case "release":
        written(await patch(volumeAttachments, ref.name, step.operations));
        pass.note({ released: true });
        return;
      case "report":
        await report(step.patch);
        pass.note({ reported: true });
        return;
      default:
        unreachable(step);
    }
  }

  /** A machine that the driver no longer knows has nothing published. */
  async function withdraw(step: Extract<Step, { kind: "withdraw" }>): Promise<void> {
    log.info("the node has another id now; unpublished from the one of an earlier try", {
      attachment: ref.name,
      nodeId: step.request.nodeId,
    });
    try {
      await driver.unpublish(step.request, callOptions(step));
    } catch (error) {
      if (!(error instanceof DriverError && error.grpcCode === NOT_FOUND)) throw error;
    }
  }

  async function learn(ref: SecretRef): Promise<void> {
    const secrets = await fetchSecret(client, ref, { purpose: purposeOf(pass.attachment), signal });
    deps.known.learn(Object.values(secrets.reveal()));
    pass.note({ secrets });
  }

  const callOptions = ({ migrated }: { migrated: boolean }): CallOptions => ({ timeoutMs, signal, migrated });

  function patch<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    operations: readonly JsonPatchOperation[],
  ): Promise<T> {
    return client.patch(resource, { name }, { type: "json", operations }, { signal });
  }

  /** Claimed first: until the finalizer is seen by all, another attachment of the volume would find nobody. */
  async function hold(operations: readonly JsonPatchOperation[]): Promise<void> {
    deps.holders.claim(pass.attachment);
    try {
      written(await patch(volumeAttachments, ref.name, operations));
    } catch (error) {
      if (isKubeError(error) && !error.outcomeUnknown) deps.holders.unclaim(ref.name);
      throw error;
    }
  }

  /**
   * Of two that are deleted at the same time at most one finds the other alive: each is read after its own deletion was known,
   * so the later deletion sees the earlier one. A twin without our finalizer is no reason to stay: nobody would hear of its end.
   */
  async function checkTwins(names: readonly string[]): Promise<NonNullable<Done["twins"]>> {
    for (const name of names) {
      const twin = await found(client.get(volumeAttachments, { name }, { signal }));
      if (!twin || twin.metadata.deletionTimestamp) continue;
      if (!hasFinalizer(twin, finalizerOf(work.driver.name))) continue;
      log.info("the volume stays on its node for another attachment", { attachment: ref.name, other: name });
      return { attachment: name };
    }
    return "none";
  }

  function written(answer: VolumeAttachment): void {
    pass.attachment = trimVolumeAttachment(answer);
    deps.onWritten(pass.attachment);
  }

  /** Absolute values for one uid: sending them again after a lost answer does no harm. */
  async function report(value: Patch): Promise<void> {
    written(
      await client.patch(volumeAttachments, ref, value, { subresource: "status", repeatable: true, signal }),
    );
  }

  /** The API server said that what the patch was computed from is not so any more. */
  async function refresh(step: Step): Promise<"again" | "gone" | "moved"> {
    if (step.kind === "hold-volume") {
      pass.volume = await found(client.get(persistentVolumes, { name: step.name }, { signal }));
      return "again";
    }
    const live = await found(client.get(volumeAttachments, ref, { signal }));
    if (live === undefined || live.metadata.uid !== work.attachment.metadata.uid) return "gone";
    written(live);
    return operationOf(live) === operation ? "again" : "moved";
  }

  async function saveError(error: Error): Promise<void> {
    const which = operation === "attach" ? "attachError" : "detachError";
    const grpcCode =
      errorCodes && operation === "attach" && error instanceof DriverError ? error.grpcCode : undefined;
    const message = pass.scrub(error.message);
    try {
      await report(errorPatch(pass.attachment, which, { message, errorCode: grpcCode, wall: clock.wall() }));
    } catch (failure) {
      if (signal.aborted) throw failure;
      log.warn("error not saved in the status", { attachment: ref.name, which, error: failure });
    }
  }

  async function failed(step: Step, error: unknown): Promise<PassResult> {
    if (signal.aborted) throw error;
    const unreported = step.kind === "report" && operation === "attach";
    const refused = unreported ? refusedContext(error, pass.done.published ?? {}) : undefined;
    const safe = pass.safe(refused ?? error);
    // A publish that went well and a report that was lost: the next pass publishes again, and nobody needs to worry. One that
    // was refused will be refused again, and without a word the pod would wait for ever.
    if ((!unreported || refused) && deps.mayAct()) await saveError(safe);
    return { kind: "failed", error: safe };
  }

  for (;;) {
    // An answer may have shown that it is being deleted: that is for the other lane.
    if (operationOf(pass.attachment) !== operation) return { kind: "moved" };
    const work = pass.work;
    const { holders } = deps;
    const seen = { done: pass.done, holders: holders.elsewhere(work), twins: holders.twins(work) };
    const step = planAttachment({ ...work, ...seen });
    if (step.kind === "nothing") return { kind: "settled" };
    deps.onStep(step);
    if (!deps.mayAct()) throw new Error("this replica may no longer act");
    if (step.kind === "refuse") return failed(step, step.error);
    try {
      await perform(step);
    } catch (error) {
      const verdict = verdictOf(step, error);
      if (verdict === "gone") return { kind: "gone" };
      if (verdict !== "stale" || pass.refreshes++ >= REFRESHES_MAX) return failed(step, error);
      try {
        const next = await refresh(step);
        if (next !== "again") return { kind: next };
      } catch (failure) {
        return failed(step, failure);
      }
    }
  }
}

/** What happened to one attachment while it was worked on. */
class Pass {
  attachment: VolumeAttachment;
  volume: AttachmentView["volume"];
  refreshes = 0;
  readonly #work: Work;
  readonly #known: KnownSecrets;
  done: Done = {};

  constructor(work: Work, known: KnownSecrets) {
    this.#work = work;
    this.#known = known;
    this.attachment = work.attachment;
    this.volume = work.volume;
  }

  get work(): Work {
    return { ...this.#work, attachment: this.attachment, volume: this.volume };
  }

  note(done: Done): void {
    this.done = { ...this.done, ...done };
  }

  scrub(text: string): string {
    return this.#known.scrub(this.done.secrets?.scrub(text) ?? text);
  }

  /** The error as it may be told: without the secrets that the driver was given, and without its causes. */
  safe(error: unknown): Error {
    const original = error instanceof Error ? error : new Error(String(error));
    const text = this.scrub(original.message);
    const causes = original.cause !== undefined && this.done.secrets !== undefined;
    if (text === original.message && !causes) return original;
    // Its code and its subject decide what brings the attachment back.
    if (original instanceof AttacherError)
      return new AttacherError(original.code, text, original.subject && { subject: original.subject });
    if (!(original instanceof DriverError)) return new Error(text);
    return new DriverError(original.grpcCode, text.replace(/^rpc error: code = \S+ desc = /, ""));
  }
}

/** Of writes to the attachment only: what else is not found is an error. */
function verdictOf(step: Step, error: unknown): "gone" | "stale" | "failed" {
  const touches = step.kind === "hold" || step.kind === "release" || step.kind === "report";
  if (touches && isKubeError(error, "NotFound")) return "gone";
  // The first two are a failed `test`; a report names only the uid, and finds another.
  const stale = isKubeError(error, "Invalid", "Conflict");
  return stale && (touches || step.kind === "hold-volume") ? "stale" : "failed";
}

/** HTTP statuses that pass by themselves, or by reading the object again; every other 4xx the server means. */
const PASSING: readonly number[] = [401, 404, 408, 409, 410, 425, 429];

/** Undefined where the status may be taken the next time. */
function refusedContext(
  error: unknown,
  context: Readonly<Record<string, string>>,
): AttacherError | undefined {
  const status = isKubeError(error) ? error.status : undefined;
  if (!isKubeError(error) || status === undefined || status < 400 || status >= 500) return undefined;
  if (PASSING.includes(status)) return undefined;
  const entries = Object.entries(context);
  const bytes = entries.reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  return new AttacherError(
    "ContextRefused",
    `the driver has published the volume, but the API server refuses its publish_context (${entries.length} entries, ${bytes} characters) as status.attachmentMetadata: ${error.detail}`,
  );
}

/** For whoever has to bring a missing secret back. */
function purposeOf(attachment: VolumeAttachment): string {
  const { metadata, spec } = attachment;
  const volume = spec.source.persistentVolumeName;
  const whose = volume === undefined ? "" : ` of persistentvolume "${volume}"`;
  return `${OPERATION_WORDS[operationOf(attachment)]} VolumeAttachment ${metadata.name}${whose}`;
}

const OPERATION_WORDS: Readonly<Record<Operation, string>> = {
  attach: "attaching by",
  detach: "detaching by",
};

async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { isJsonObject, jsonEqual } from "../kube/patch/json.ts";
import type { DeleteOptions, PropagationPolicy } from "./delete-options.ts";
import type { Kind } from "./kinds.ts";
import { fieldAt, toTimestamp, type ApiObject } from "./objects.ts";

/** What a DELETE does to an object as it is now (spec/apiserver.md, section 11). Pure. */
export type Deletion =
  /** `answer` is the object to show, where its kind shows one. */
  | { readonly kind: "remove"; readonly answer: ApiObject }
  /** It stays for now, marked: something still has to let go of it. */
  | { readonly kind: "mark"; readonly next: ApiObject }
  /** It is on its way already, and this request does not hurry it. */
  | { readonly kind: "nothing" };

export function planDeletion(kind: Kind, current: ApiObject, options: DeleteOptions, now: Date): Deletion {
  const finalizers = finalizersFor(current.metadata, options.propagationPolicy);
  const marked = withFinalizers(current, finalizers);
  if (kind.kind === "Namespace") return planNamespace(kind, current, terminateNamespace(marked, now));
  const graceSeconds = kind.kind === "Pod" ? podGraceSeconds(current, options.gracePeriodSeconds) : 0;
  if (graceSeconds > 0) return changeTo(current, withGrace(marked, graceSeconds, now));
  if (finalizers.length > 0) return changeTo(current, withoutGrace(marked, now));
  return { kind: "remove", answer: kind.kind === "Pod" ? withoutGrace(marked, now) : current };
}

/** A namespace is marked first, whatever it holds; what is in it is the work of a controller. */
function planNamespace(kind: Kind, current: ApiObject, next: ApiObject): Deletion {
  const isMarked = current.metadata.deletionTimestamp !== undefined;
  return isMarked && !isHeld(kind, next) ? { kind: "remove", answer: next } : changeTo(current, next);
}

/** By a finalizer. A namespace has others in its spec, the last of which goes when its content is gone. */
export function isHeld(kind: Kind, object: ApiObject): boolean {
  if ((object.metadata.finalizers ?? []).length > 0) return true;
  const ofContent = kind.kind === "Namespace" ? fieldAt(object, "spec", "finalizers") : undefined;
  return Array.isArray(ofContent) && ofContent.length > 0;
}

/** Used when a pod names none and was stored before defaults were applied. */
const POD_GRACE_SECONDS = 30;
/** A hundred years: any time after it can still be written as one. */
const POD_GRACE_SECONDS_MAX = 100 * 365 * 24 * 60 * 60;

/** A pod that no node runs, or that has ended, has nothing to be graceful about. */
function podGraceSeconds(pod: ApiObject, asked: number | undefined): number {
  const phase = fieldAt(pod, "status", "phase");
  const nodeName = fieldAt(pod, "spec", "nodeName") ?? "";
  if (nodeName === "" || phase === "Succeeded" || phase === "Failed") return 0;
  const own = fieldAt(pod, "spec", "terminationGracePeriodSeconds");
  const isGiven = typeof own === "number" || typeof own === "bigint";
  const seconds = asked ?? (isGiven ? Number(own) : POD_GRACE_SECONDS);
  return seconds < 0 ? 1 : Math.min(seconds, POD_GRACE_SECONDS_MAX);
}

/** A first DELETE starts the clock; a later one can only shorten what is left. */
function withGrace(object: ApiObject, graceSeconds: number, now: Date): ApiObject {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, generation } = object.metadata;
  if (deletionTimestamp === undefined) {
    return withMetadata(object, {
      deletionTimestamp: secondsAfter(now.getTime(), graceSeconds),
      deletionGracePeriodSeconds: graceSeconds,
      ...(generation === undefined ? {} : { generation: generation + 1 }),
    });
  }
  if (graceSeconds >= deletionGracePeriodSeconds) return object;
  const startedMs = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
  const endMs = Math.max(startedMs + graceSeconds * 1_000, now.getTime());
  return withMetadata(object, {
    deletionTimestamp: secondsAfter(endMs, 0),
    deletionGracePeriodSeconds: graceSeconds,
  });
}

function withoutGrace(object: ApiObject, now: Date): ApiObject {
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if (deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0) return object;
  return withMetadata(object, { deletionTimestamp: toTimestamp(now), deletionGracePeriodSeconds: 0 });
}

/** Namespaces carry no grace period; they end when they are empty. */
function terminateNamespace(namespace: ApiObject, now: Date): ApiObject {
  const status = namespace["status"];
  return {
    ...withMetadata(namespace, {
      deletionTimestamp: namespace.metadata.deletionTimestamp ?? toTimestamp(now),
    }),
    status: { ...(isJsonObject(status) ? status : {}), phase: "Terminating" },
  };
}

const PROPAGATION_FINALIZERS: Readonly<Record<PropagationPolicy, readonly string[]>> = {
  Orphan: ["orphan"],
  Foreground: ["foregroundDeletion"],
  Background: [],
};

/** The finalizers of the garbage collector are what the latest request says; all others stay. */
function finalizersFor(
  { finalizers = [] }: ObjectMeta,
  policy: PropagationPolicy = "Background",
): readonly string[] {
  const others = finalizers.filter(
    (finalizer) => finalizer !== "orphan" && finalizer !== "foregroundDeletion",
  );
  return [...others, ...PROPAGATION_FINALIZERS[policy]];
}

function withFinalizers(object: ApiObject, finalizers: readonly string[]): ApiObject {
  const { finalizers: _finalizers, ...metadata } = object.metadata;
  return {
    ...object,
    metadata: finalizers.length === 0 ? metadata : { ...metadata, finalizers: [...finalizers] },
  };
}

function withMetadata(object: ApiObject, changes: ObjectMeta): ApiObject {
  return { ...object, metadata: { ...object.metadata, ...changes } };
}

function changeTo(current: ApiObject, next: ApiObject): Deletion {
  return jsonEqual(current, next) ? { kind: "nothing" } : { kind: "mark", next };
}

function secondsAfter(ms: number, seconds: number): string {
  return toTimestamp(new Date(ms + seconds * 1_000));
}

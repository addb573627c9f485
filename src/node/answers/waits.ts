import type { Pod } from "../../kube/api/pod.ts";
import type { Context } from "../context.ts";
import { uidOf } from "../desired.ts";
import { volumeUsesOf } from "../populate.ts";
import { DeadlineExceeded, type Waiters } from "./waiters.ts";

/** Waiting for a pod's volumes: resolved by changes of state, with upstream's texts where it fails. */
export interface VolumeWaits {
  /** Resolves once every volume that a container of the pod uses is mounted; rejects with a VolumeWaitError. */
  waitForAttachAndMount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Resolves once nothing of the pod is, or may be, mounted. */
  waitForUnmount(pod: Pod, signal: AbortSignal): Promise<void>;
  waitForAllPodsUnmount(pods: readonly Pod[], signal: AbortSignal): Promise<void>;
}

/** How a wait failed. `limit`: the node can take no more volumes, and the pod should fail with VolumeAttachmentLimitExceeded. */
export class VolumeWaitError extends Error {
  override readonly name = "VolumeWaitError";
  readonly reason: "timeout" | "canceled" | "refused" | "limit";

  constructor(reason: VolumeWaitError["reason"], message: string, options: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** 2 min 3 s, as upstream: a second more than the longest back-off of a step, so that one more try is seen. */
const WAIT_MS = 123_000;

export function createWaits(context: Context, waiters: Waiters): VolumeWaits {
  async function waitForAttachAndMount(pod: Pod, signal: AbortSignal): Promise<void> {
    const expected = [...volumeUsesOf(pod).keys()].sort();
    if (expected.length === 0) return;
    const uid = uidOf(pod);
    const look = () => {
      if (unmounted(context, uid, expected).length === 0) return "mounted" as const;
      const errors = finalErrors(context, uid);
      return errors.length > 0 ? errors.join("; ") : undefined;
    };
    try {
      const answer = await waiters.wait(uid, look, { timeoutMs: WAIT_MS, signal });
      if (answer !== "mounted") throw new Error(answer);
    } catch (cause) {
      const left = unmounted(context, uid, expected);
      if (left.length > 0) throw await describe(context, { uid, expected, left, cause, signal });
    }
  }

  async function waitForUnmount(pod: Pod, signal: AbortSignal): Promise<void> {
    const uid = uidOf(pod);
    const left = () => mountedNames(context, uid);
    try {
      await waiters.wait(uid, () => (left().length === 0 ? true : undefined), { timeoutMs: WAIT_MS, signal });
    } catch (cause) {
      if (left().length === 0) return;
      const message = `mounted volumes=[${left().join(" ")}]: ${causeText(cause, signal)}`;
      throw new VolumeWaitError(reasonOf(cause, signal), message, { cause });
    }
  }

  return {
    waitForAttachAndMount,
    waitForUnmount,
    async waitForAllPodsUnmount(pods, signal) {
      const results = await Promise.allSettled(pods.map((pod) => waitForUnmount(pod, signal)));
      const errors = results.flatMap((result) =>
        result.status === "rejected" ? [result.reason as Error] : [],
      );
      if (errors.length > 0)
        throw new AggregateError(errors, errors.map(({ message }) => message).join("; "));
    },
  };
}

interface Failure {
  readonly uid: string;
  readonly expected: readonly string[];
  readonly left: readonly string[];
  readonly cause: unknown;
  readonly signal: AbortSignal;
}

async function describe(context: Context, failure: Failure): Promise<VolumeWaitError> {
  const { uid, expected, left, cause, signal } = failure;
  const references = context.world.pods.get(uid)?.references;
  const failed = expected.filter((name) => references?.get(name)?.kind !== "volume");
  const unattached = unattachedOf(context, uid, expected);
  const lists = `unmounted volumes=[${left.join(" ")}], unattached volumes=[${unattached.join(" ")}], failed to process volumes=[${failed.join(" ")}]`;
  const errors = [...(references ?? [])].flatMap(([, reference]) =>
    reference.kind === "unresolved" ? [reference.message] : [],
  );
  const said =
    cause instanceof DeadlineExceeded && errors.length > 0
      ? [...new Set(errors)].sort().join("; ")
      : causeText(cause, signal);
  const message = `${lists}: ${said}`;
  if (!signal.aborted && (await limitReached(context, { uid, unattached, signal })))
    return new VolumeWaitError(
      "limit",
      `Node has reached its volume attachment limit, rejecting pod. ${message}`,
      { cause },
    );
  return new VolumeWaitError(reasonOf(cause, signal), message, { cause });
}

async function limitReached(
  { world }: Context,
  { uid, unattached, signal }: { uid: string; unattached: readonly string[]; signal: AbortSignal },
): Promise<boolean> {
  for (const name of unattached) {
    const reference = world.pods.get(uid)?.references.get(name);
    if (reference?.kind !== "volume") continue;
    const { plugin, wants } = reference.volume;
    const spec = wants.get(uid)?.spec;
    if (spec && (await plugin.attach?.limitReached?.(spec, signal).catch(() => false))) return true;
  }
  return false;
}

function reasonOf(cause: unknown, signal: AbortSignal): VolumeWaitError["reason"] {
  if (cause instanceof DeadlineExceeded) return "timeout";
  return signal.aborted ? "canceled" : "refused";
}

function causeText(cause: unknown, signal: AbortSignal): string {
  if (cause instanceof DeadlineExceeded) return cause.message;
  if (signal.aborted) return "context canceled";
  return cause instanceof Error ? cause.message : String(cause);
}

/** Outer names, sorted as `expected` is. */
function unmounted({ world }: Context, uid: string, expected: readonly string[]): string[] {
  const references = world.pods.get(uid)?.references;
  return expected.filter((name) => {
    const reference = references?.get(name);
    return reference?.kind !== "volume" || reference.volume.held?.mounts.get(uid)?.state !== "mounted";
  });
}

function unattachedOf({ world }: Context, uid: string, expected: readonly string[]): string[] {
  const references = world.pods.get(uid)?.references;
  return expected.filter((name) => {
    const reference = references?.get(name);
    if (reference?.kind !== "volume" || reference.volume.held) return false;
    const spec = reference.volume.wants.get(uid)?.spec;
    return spec !== undefined && reference.volume.plugin.traits(spec).attachable !== "no";
  });
}

/** What no change of another object will heal. At most 11 texts, as upstream keeps. */
function finalErrors({ world }: Context, uid: string): string[] {
  const texts = new Set<string>();
  for (const reference of world.pods.get(uid)?.references.values() ?? [])
    if (reference.kind === "unresolved" && !reference.heals) texts.add(reference.message);
  return [...texts].sort().slice(0, 11);
}

function mountedNames({ world }: Context, uid: string): string[] {
  return [...world.volumesOf(uid)]
    .filter(({ held }) => held?.mounts.has(uid))
    .map(({ name }) => name as string)
    .sort();
}

import { withEither } from "../../base/signals.ts";
import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { referenceTo, type EventRecorder } from "../../kube/events/events.ts";
import { createInformer } from "../../kube/informer/informer.ts";
import type { Delta } from "../../kube/informer/store.ts";
import { keyOf, type ObjectKey, type ObjectRef } from "../../kube/object.ts";
import { runWorkers, type Outcome } from "../../kube/workqueue/controller.ts";
import { createWorkQueue } from "../../kube/workqueue/work-queue.ts";
import { planPod, type Known, type PodStep, type StatusWrite } from "./plan.ts";
import { statusFor } from "./status.ts";

/**
 * What a kubelet does for the pods of one node besides their volumes: it says that they run once their volumes are mounted, and
 * on their deletion that nothing runs any more, waits until the volumes are gone, and removes them. There is no container
 * runtime: a pod runs until it is deleted, whatever its command and restart policy.
 */
export interface PodStarter {
  /** Works until the signal aborts; resolves when the last request has ended. Pods stay as they are. */
  run(signal: AbortSignal): Promise<void>;
}

/** A volume manager, as far as a pod starter needs one. */
export interface PodVolumes {
  /**
   * Resolves once every volume that a container of the pod uses is mounted. A rejection with `reason: "limit"` means that
   * this node can never take them; after any other it is asked again.
   */
  waitForAttachAndMount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Resolves once nothing of the pod is, or may be, mounted. */
  waitForUnmount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** False until it has taken stock of the disk: that it knows of no mount then proves nothing. */
  statesHaveBeenSynced?(): boolean;
}

export interface PodStarterDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: Pick<EventRecorder, "record">;
  readonly metrics: Metrics;
}

export interface PodStarterOptions {
  readonly nodeName: string;
  readonly volumes: PodVolumes;
  readonly hostIP?: string;
}

/** A wait lasts two minutes by itself; these pauses are for one that is refused at once. */
const WAIT_BACKOFF = { initialMs: 1_000, maxMs: 60_000 };
/** For writes that fail, most of them because the cache has not caught up with the write before. */
const WRITE_BACKOFF = { initialMs: 20, maxMs: 10_000 };
/** Writes only; waits take no worker. */
const WORKERS = 4;

export function createPodStarter(
  deps: PodStarterDeps,
  { nodeName, volumes, hostIP = "127.0.0.1" }: PodStarterOptions,
): PodStarter {
  const { client, clock, metrics } = deps;
  const log = deps.log.with({ node: nodeName });
  const random = deps.random.fork(`pod-starter ${nodeName}`);
  const informer = createInformer(
    { client, clock, random, log, metrics },
    { resource: pods, fieldSelector: `spec.nodeName=${nodeName}` },
  );
  const queue = createWorkQueue<ObjectKey>(
    { clock, metrics },
    { name: `pod_starter_${nodeName}`, backoff: WRITE_BACKOFF },
  );
  /** By uid; as many as the node has pods. */
  const lives = new Map<string, Life>();

  function onPod({ kind, key, object }: Delta<Pod>): void {
    if (kind === "deleted") forget(object);
    queue.add(key);
  }

  function forget({ metadata }: Pod): void {
    const uid = metadata.uid ?? "";
    lives.get(uid)?.wait?.stop.abort(new Error("the pod is gone"));
    lives.delete(uid);
  }

  function lifeOf({ metadata }: Pod): Life {
    const uid = metadata.uid ?? "";
    const life = lives.get(uid) ?? { known: { mounted: false, unmounted: false }, failures: 0 };
    lives.set(uid, life);
    return life;
  }

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const pod = informer.get(key);
    if (!pod) return { kind: "done" };
    const life = lifeOf(pod);
    const step = planPod(pod, life.known);
    // A pod that is deleted while its volumes are awaited has no more use for them.
    if (life.wait && (step.kind !== "wait" || step.until !== life.wait.until)) {
      life.wait.stop.abort(new Error("no longer awaited"));
      delete life.wait;
    }
    if (step.kind !== "wait") return perform(pod, step, signal);
    wait(pod, life, { until: step.until, signal });
    return { kind: "done" };
  }

  async function perform(
    pod: Pod,
    step: Exclude<PodStep, { kind: "wait" }>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      if (step.kind === "write") await writeStatus(pod, step, signal);
      if (step.kind === "delete") await remove(pod, signal);
    } catch (error) {
      // It has changed, or another has its name: the watch will tell, and the cache may already know.
      if (isKubeError(error, "Conflict")) return { kind: "retry" };
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return { kind: "done" };
  }

  /** Bound to the version it was worked out from: a pod that is deleted meanwhile must not be said to run. */
  async function writeStatus(pod: Pod, step: StatusWrite, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = pod.metadata;
    const status = statusFor(pod, step, { now: clock.wall(), hostIP });
    const value = { metadata: { uid, resourceVersion }, status };
    await client.patch(pods, refOf(pod), { type: "merge", value }, { subresource: "status", signal });
    log.info("pod status written", { pod: keyOf(pod), what: step.what });
    tell(pod, step.what);
  }

  function tell(pod: Pod, what: StatusWrite["what"]): void {
    const ref = referenceTo(pods, pod);
    const names = (pod.spec?.containers ?? []).map(({ name }) => name).join(", ");
    if (what === "running")
      deps.events.record({ ref, type: "Normal", reason: "Started", message: `Started container ${names}` });
    if (what === "ended" && pod.status?.phase === "Running")
      deps.events.record({ ref, type: "Normal", reason: "Killing", message: `Stopping container ${names}` });
  }

  async function remove(pod: Pod, signal: AbortSignal): Promise<void> {
    const { uid = "" } = pod.metadata;
    await client.delete(pods, refOf(pod), { preconditions: { uid }, gracePeriodSeconds: 0, signal });
    log.info("pod removed", { pod: keyOf(pod) });
  }

  async function unmounted(pod: Pod, signal: AbortSignal): Promise<void> {
    await volumes.waitForUnmount(pod, signal);
    if (volumes.statesHaveBeenSynced?.() === false)
      throw new Error("the volume manager has not taken stock of the disk yet");
  }

  /** Goes on beside the workers: a volume may take minutes. */
  function wait(
    pod: Pod,
    life: Life,
    { until, signal }: { readonly until: "mounted" | "unmounted"; readonly signal: AbortSignal },
  ): void {
    if (life.wait) return;
    const stop = new AbortController();
    const ended = withEither([signal, stop.signal], (either) =>
      until === "mounted" ? volumes.waitForAttachAndMount(pod, either) : unmounted(pod, either),
    );
    const mine: Wait = { until, stop };
    life.wait = mine;
    void ended.then(
      () => {
        if (life.wait !== mine) return;
        delete life.wait;
        life.failures = 0;
        life.known = { ...life.known, mounted: until === "mounted", unmounted: until === "unmounted" };
        queue.add(keyOf(pod));
      },
      (error: unknown) => {
        if (life.wait !== mine) return;
        delete life.wait;
        if (!signal.aborted) onWaitFailed(pod, life, { until, error });
      },
    );
  }

  /** The volume manager has told the pod's events why; here it is only asked again. */
  function onWaitFailed(
    pod: Pod,
    life: Life,
    { until, error }: { readonly until: string; readonly error: unknown },
  ): void {
    const retryInMs = backoffMs(++life.failures, WAIT_BACKOFF);
    log.info("volumes awaited in vain; they are awaited again", {
      pod: keyOf(pod),
      until,
      error,
      retryInMs,
    });
    if (isLimit(error)) life.known = { ...life.known, rejected: error.message };
    queue.addAfter(keyOf(pod), life.known.rejected === undefined ? retryInMs : 0);
  }

  return {
    async run(signal) {
      const leave = informer.addHandler(onPod);
      try {
        await Promise.all([
          informer.run(signal),
          runWorkers({ queue, clock, log, metrics }, { workers: WORKERS, reconcile }, signal),
        ]);
      } finally {
        leave();
      }
    },
  };
}

interface Wait {
  readonly until: "mounted" | "unmounted";
  readonly stop: AbortController;
}

interface Life {
  known: Known;
  /** Waits in a row that failed. */
  failures: number;
  wait?: Wait;
}

function isLimit(error: unknown): error is Error {
  return error instanceof Error && "reason" in error && error.reason === "limit";
}

function refOf({ metadata }: Pod): ObjectRef {
  return { name: metadata.name ?? "", namespace: metadata.namespace };
}

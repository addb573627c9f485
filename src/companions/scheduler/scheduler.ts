import { unreachable } from "../../base/assert.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { isKubeError } from "../../kube/errors.ts";
import { referenceTo } from "../../kube/events/events.ts";
import { keyOf, type ObjectKey } from "../../kube/object.ts";
import { runWorkers, type Outcome } from "../../kube/workqueue/controller.ts";
import { createWorkQueue } from "../../kube/workqueue/work-queue.ts";
import { SELECTED_NODE } from "../names.ts";
import type { StorageDeps } from "../deps.ts";
import { createSchedulerCaches } from "./caches.ts";
import { viewFor } from "./cluster.ts";
import { createEphemeralClaims } from "./ephemeral-claims.ts";
import { createSchedulerMetrics } from "./metrics.ts";
import { Placements } from "./placements.ts";
import { planPod, type PodPlan, type Preparation } from "./plan.ts";
import { claimUsesOf } from "./pod-claims.ts";
import { createRequests, type Explanation } from "./requests.ts";
import type { Blocker } from "./view.ts";
import { listen } from "./wakes.ts";
import { Waits } from "./waits.ts";

/**
 * Gives every pod a node, or says in its PodScheduled condition and an event why it has none. An event marks the pods it may
 * matter to, and one worker plans them one after the other: what one pod takes, the next one sees.
 */
export interface Scheduler {
  run(signal: AbortSignal): Promise<void>;
  hasSynced(): boolean;
}

export interface SchedulerOptions {
  /** Pods that name another are left alone. */
  readonly schedulerName?: string;
}

/** Most failures are a cache that has not caught up with a write; 10 s is what upstream waits at most. */
const BACKOFF = { initialMs: 20, maxMs: 10_000 };

export function createScheduler(
  deps: StorageDeps,
  { schedulerName = "default-scheduler" }: SchedulerOptions = {},
): Scheduler {
  const { clock, log, metrics } = deps;
  const caches = createSchedulerCaches({ ...deps, random: deps.random.fork("scheduler") });
  const requests = createRequests(deps);
  const placements = new Placements();
  const waits = new Waits();
  const measure = createSchedulerMetrics(metrics, waits);
  const queue = createWorkQueue<ObjectKey>({ clock, metrics }, { name: "scheduler", backoff: BACKOFF });
  const ephemeral = createEphemeralClaims({ ...deps, caches });

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const pod = caches.pods.get(key);
    if (!pod || pod.spec?.nodeName) return { kind: "done" };
    try {
      if (placements.get(key)?.inDoubt) return await settleDoubt(pod, key, signal);
      const placedOn = placements.get(key)?.node;
      const plan = planPod(pod, viewFor(pod, caches, placements), { schedulerName, placedOn });
      measure.planned(plan.kind);
      return await carryOut(plan, pod, signal);
    } catch (error) {
      // Somebody wrote in between, or the cache does not show our own write yet.
      if (isKubeError(error, "Conflict", "NotFound")) return { kind: "retry" };
      throw error;
    }
  }

  async function carryOut(plan: PodPlan, pod: Pod, signal: AbortSignal): Promise<Outcome> {
    const key = keyOf(pod);
    switch (plan.kind) {
      case "ignore":
        leave(key);
        return DONE;
      case "gated":
        leave(key);
        await requests.explain(pod, { because: "SchedulingGated", message: plan.message }, signal);
        return DONE;
      case "unschedulable":
        wait(key, plan.until);
        await complain(pod, plan.message, signal);
        return DONE;
      case "release":
        for (const { claim } of plan.claims) await requests.select(claim, undefined, signal);
        return DONE;
      case "prepare":
        return prepare(plan, pod, signal);
      case "bind":
        return bind(plan, pod, signal);
      default:
        return unreachable(plan);
    }
  }

  /** It is not on its way anywhere any more, so its place is free. */
  function leave(key: ObjectKey): void {
    waits.clear(key);
    if (placements.drop(key)) waits.on("room").forEach((other) => queue.add(other));
  }

  function wait(key: ObjectKey, until: readonly Blocker[]): void {
    leave(key);
    waits.set(key, until);
  }

  async function complain(pod: Pod, message: string, signal: AbortSignal): Promise<void> {
    if (!(await requests.explain(pod, { because: "Unschedulable", message }, signal))) return;
    log.info("pod cannot be scheduled", { pod: keyOf(pod), why: message });
    const ref = referenceTo(pods, pod);
    deps.events.record({ ref, type: "Warning", reason: "FailedScheduling", message });
  }

  async function prepare(plan: Preparation, pod: Pod, signal: AbortSignal): Promise<Outcome> {
    const { node, promises, selections, message } = plan;
    const key = keyOf(pod);
    placements.set(key, pod, { node, promised: promises.map(({ volume }) => volume), inDoubt: false });
    waits.set(key, ["node", "volume", "class"]);
    for (const { claim, volume } of promises) await requests.promise(volume, claim.claim, signal);
    for (const { claim } of selections) await requests.select(claim, node, signal);
    if (promises.length + selections.length > 0) log.info("node chosen", { pod: key, node });
    await requests.explain(pod, { because: "WaitingForVolumes", message }, signal);
    return DONE;
  }

  async function bind(
    { node }: Extract<PodPlan, { kind: "bind" }>,
    pod: Pod,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const key = keyOf(pod);
    waits.clear(key);
    placements.set(key, pod, { node, promised: [], inDoubt: true });
    try {
      await requests.bind(pod, node, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      placements.drop(key);
      if (!isKubeError(error, "Conflict", "NotFound")) await excuse(pod, error, signal);
      throw error;
    }
    placements.set(key, pod, { node, promised: [], inDoubt: false });
    log.info("pod scheduled", { pod: key, node });
    const message = `Successfully assigned ${key} to ${node}`;
    deps.events.record({ ref: referenceTo(pods, pod), type: "Normal", reason: "Scheduled", message });
    return DONE;
  }

  async function excuse(pod: Pod, error: Error, signal: AbortSignal): Promise<void> {
    await requests.explain(pod, { because: "SchedulerError", message: error.message }, signal);
  }

  /**
   * Nobody knows whether the pod was bound. The server is asked; where it was not, a write to the pod makes every request
   * that may still be under way too old to be carried out, and only then is its place given away.
   */
  async function settleDoubt(pod: Pod, key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const placement = placements.get(key);
    const found = await requests.read(pod, signal);
    if (found?.spec?.nodeName) {
      if (placement) placements.set(key, pod, { ...placement, node: found.spec.nodeName, inDoubt: false });
      return DONE;
    }
    if (found) await requests.explain(found, doubtAbout(found, placement?.node ?? ""), signal);
    placements.drop(key);
    return { kind: "retry" };
  }

  /** After a restart: claims say for which node their volumes are being made, and pods for these come first. */
  function recall(): void {
    for (const pod of caches.pods.objects()) {
      if (pod.spec?.nodeName) continue;
      for (const { key } of claimUsesOf(pod)) {
        const node = caches.claims.get(key)?.metadata.annotations?.[SELECTED_NODE];
        if (node !== undefined) placements.set(keyOf(pod), pod, { node, promised: [], inDoubt: false });
      }
    }
  }

  return {
    hasSynced: () => caches.hasSynced(),
    async run(signal) {
      const leaveCaches = listen({ caches, placements, waits, look: (key) => queue.add(key) });
      try {
        const running = caches.run(signal);
        await caches.whenSynced(signal);
        recall();
        log.info("scheduler works");
        await Promise.all([
          running,
          runWorkers({ queue, clock, log, metrics }, { workers: 1, reconcile }, signal),
          ephemeral.run(signal),
        ]);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        leaveCaches();
      }
    },
  };
}

const DONE: Outcome = { kind: "done" };

/** The server answered no, or never got it: the pod was certainly not bound by this request. */
function isRefusal(error: unknown): error is Error {
  if (!isKubeError(error)) return false;
  if (error.code === "Unreachable") return true;
  return error.status !== undefined && error.status >= 400 && error.status < 500;
}

/** A text that the pod does not have yet: saying the same again would write nothing. */
function doubtAbout(pod: Pod, node: string): Explanation {
  const { resourceVersion = "" } = pod.metadata;
  const message = `binding to node ${node} was not answered (pod at version ${resourceVersion}); it is scheduled again`;
  return { because: "SchedulerError", message };
}

import type { Binding, PodCondition } from "kubernetes-types/core/v1.js";
import type { Clock } from "../../base/clock.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ObjectRef, Resource } from "../../kube/object.ts";
import { formatTime } from "../../kube/time.ts";
import { BOUND_BY_CONTROLLER, SELECTED_NODE } from "../names.ts";

/**
 * Everything the scheduler writes. Each request names the version it was worked out from: what has changed meanwhile is
 * planned again, and a request that arrives late, after somebody wrote, does nothing.
 */
export interface SchedulerRequests {
  bind(pod: Pod, node: string, signal: AbortSignal): Promise<void>;
  /** The volume names the claim; the binder does the rest. */
  promise(volume: PersistentVolume, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void>;
  /** Tells whoever makes volumes for which node the claim's is to be. */
  select(claim: PersistentVolumeClaim, node: string | undefined, signal: AbortSignal): Promise<void>;
  /** Why the pod has no node; nothing is written where it says so already. True if it was news. */
  explain(pod: Pod, why: Explanation, signal: AbortSignal): Promise<boolean>;
  /** The pod as the server has it now; undefined where it is gone, or another has its name. */
  read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined>;
}

export interface Explanation {
  readonly because: "Unschedulable" | "SchedulingGated" | "WaitingForVolumes" | "SchedulerError";
  readonly message: string;
}

/** Pods are scheduled one after the other: a request that hangs holds up all of them. */
const DEADLINE_MS = 5_000;

export function createRequests({
  client,
  clock,
}: {
  readonly client: Client;
  readonly clock: Clock;
}): SchedulerRequests {
  return {
    async bind(pod, node, signal) {
      const { name = "", namespace = "" } = pod.metadata;
      const binding: PodBinding = {
        metadata: { ...versionOf(pod), name, namespace },
        target: { apiVersion: "v1", kind: "Node", name: node },
      };
      await client.create(bindingsOf(pod), binding, { signal, deadlineMs: DEADLINE_MS });
    },

    async promise(volume, claim, signal) {
      const { namespace, name, uid, resourceVersion } = claim.metadata;
      const kind = { apiVersion: "v1", kind: "PersistentVolumeClaim" };
      const value = {
        metadata: { ...versionOf(volume), annotations: { [BOUND_BY_CONTROLLER]: "yes" } },
        spec: { claimRef: { ...kind, namespace, name, uid, resourceVersion } },
      };
      await client.patch(
        persistentVolumes,
        refOf(volume),
        { type: "merge", value },
        { signal, deadlineMs: DEADLINE_MS },
      );
    },

    async select(claim, node, signal) {
      const value = {
        metadata: { ...versionOf(claim), annotations: { [SELECTED_NODE]: node ?? null } },
      };
      await client.patch(
        persistentVolumeClaims,
        refOf(claim),
        { type: "merge", value },
        { signal, deadlineMs: DEADLINE_MS },
      );
    },

    async explain(pod, why, signal) {
      const condition = nextCondition(pod, why, clock.wall());
      if (!condition) return false;
      const value = { metadata: versionOf(pod), status: { conditions: [condition] } };
      await client.patch(
        pods,
        refOf(pod),
        { type: "strategic", value },
        { subresource: "status", signal, deadlineMs: DEADLINE_MS },
      );
      return true;
    },

    async read(pod, signal) {
      try {
        const found = await client.get(pods, refOf(pod), { signal, deadlineMs: DEADLINE_MS });
        return found.metadata.uid === pod.metadata.uid ? found : undefined;
      } catch (error) {
        if (isKubeError(error, "NotFound")) return undefined;
        throw error;
      }
    },
  };
}

const SCHEDULED = "PodScheduled";

/** Undefined where the pod says so already. */
function nextCondition(pod: Pod, { because, message }: Explanation, now: Date): PodCondition | undefined {
  const before = pod.status?.conditions?.find(({ type }) => type === SCHEDULED);
  const isSaid = before?.status === "False" && before.reason === because && before.message === message;
  if (isSaid) return undefined;
  const changedAt = before?.status === "False" ? before.lastTransitionTime : undefined;
  const lastTransitionTime = changedAt ?? formatTime(now);
  return { type: SCHEDULED, status: "False", reason: because, message, lastTransitionTime };
}

type PodBinding = Binding & KubeObject;

/** The collection of a pod's bindings, to which one is posted. */
function bindingsOf({ metadata }: Pod): Resource<PodBinding> {
  const plural = `pods/${encodeURIComponent(metadata.name ?? "")}/binding`;
  return { group: "", version: "v1", kind: "Binding", plural, namespaced: true };
}

function refOf({ metadata }: KubeObject): ObjectRef {
  return { name: metadata.name ?? "", namespace: metadata.namespace };
}

function versionOf({ metadata }: KubeObject) {
  const { uid, resourceVersion } = metadata;
  return { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
}

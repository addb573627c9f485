import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { isKubeError } from "../../kube/errors.ts";
import { referenceTo } from "../../kube/events/events.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import { runWorkers, type Outcome } from "../../kube/workqueue/controller.ts";
import { createWorkQueue } from "../../kube/workqueue/work-queue.ts";
import type { Companion, StorageDeps } from "../deps.ts";
import { BY_CLAIM, type SchedulerCaches } from "./caches.ts";
import { hasEnded } from "./cluster.ts";
import { claimNameOf, isMadeFor } from "./pod-claims.ts";

/**
 * Generic ephemeral volumes: a pod brings the template of a claim, which is made for it and goes with it. The claim is owned
 * by the pod, so the garbage collector removes it; here it is only made.
 */
export function createEphemeralClaims(
  deps: StorageDeps & { readonly caches: Pick<SchedulerCaches, "pods" | "claims"> },
): Companion {
  const { client, clock, log, metrics, caches } = deps;
  const queue = createWorkQueue<ObjectKey>(
    { clock, metrics },
    { name: "ephemeral_claims", backoff: { initialMs: 100, maxMs: 60_000 } },
  );

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const pod = caches.pods.get(key);
    if (!pod) return { kind: "done" };
    const { missing, foreign } = planEphemeralClaims(pod, (name) => caches.claims.get(name));
    for (const claim of missing) {
      try {
        await client.create(persistentVolumeClaims, claim, { signal });
        log.info("claim made for a pod", { pod: key, claim: keyOf(claim) });
      } catch (error) {
        // The cache has not seen it yet; whose it is will be known then.
        if (!isKubeError(error, "AlreadyExists")) throw error;
      }
    }
    for (const message of foreign)
      deps.events.record({ ref: referenceTo(pods, pod), type: "Warning", reason: "FailedBinding", message });
    return { kind: "done" };
  }

  function onClaim({ metadata }: PersistentVolumeClaim): void {
    const owner = (metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
    if (owner?.kind === "Pod") queue.add(toKey({ namespace: metadata.namespace, name: owner.name }));
  }

  return {
    async run(signal) {
      const leave = [
        caches.pods.addHandler(({ kind, key, object }) => {
          if (kind === "added" && hasTemplates(object)) queue.add(key);
        }),
        // One that is deleted under its pod is made again, as is one that stood in the way under the same name.
        caches.claims.addHandler(({ kind, object, key }) => {
          if (kind !== "deleted") return;
          onClaim(object);
          for (const pod of caches.pods.byIndex(BY_CLAIM, key)) if (hasTemplates(pod)) queue.add(keyOf(pod));
        }),
      ];
      try {
        await runWorkers({ queue, clock, log, metrics }, { workers: 1, reconcile }, signal);
      } finally {
        leave.forEach((end) => end());
      }
    },
  };
}

function hasTemplates({ spec }: Pod): boolean {
  return (spec?.volumes ?? []).some(({ ephemeral }) => ephemeral !== undefined);
}

/** Claims to be made, and why one that exists will not do. A pod that is going gets nothing new. */
function planEphemeralClaims(
  pod: Pod,
  claimOf: (key: ObjectKey) => PersistentVolumeClaim | undefined,
): { readonly missing: readonly PersistentVolumeClaim[]; readonly foreign: readonly string[] } {
  const missing: PersistentVolumeClaim[] = [];
  const foreign: string[] = [];
  if (pod.metadata.deletionTimestamp || hasEnded(pod)) return { missing, foreign };
  for (const volume of pod.spec?.volumes ?? []) {
    const template = volume.ephemeral?.volumeClaimTemplate;
    const name = claimNameOf(pod, volume);
    if (!template || name === undefined) continue;
    const key = toKey({ namespace: pod.metadata.namespace, name });
    const existing = claimOf(key);
    if (!existing) missing.push(toClaim(pod, name, template));
    else if (!isMadeFor(existing, pod))
      foreign.push(
        `ephemeral volume ${volume.name}: PVC ${key} was not created for pod ${keyOf(pod)} (pod is not owner)`,
      );
  }
  return { missing, foreign };
}

type Template = Pick<PersistentVolumeClaim, "spec"> & {
  readonly metadata?: PersistentVolumeClaim["metadata"];
};

function toClaim(pod: Pod, name: string, { metadata, spec }: Template): PersistentVolumeClaim {
  const { labels, annotations } = metadata ?? {};
  const owner = {
    apiVersion: "v1",
    kind: "Pod",
    name: pod.metadata.name ?? "",
    uid: pod.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
  return {
    metadata: {
      name,
      ...(pod.metadata.namespace !== undefined && { namespace: pod.metadata.namespace }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ownerReferences: [owner],
    },
    ...(spec && { spec }),
  };
}

import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { isKubeError } from "../../kube/errors.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import type { Delta } from "../../kube/informer/store.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { Attempts } from "../attempts.ts";
import { WAITING_BY_CLASS, WAITING_BY_NODE, WAITING_BY_SOURCE } from "../caches.ts";
import { classNameOf, sourceOf } from "../claims.ts";
import type { Companion } from "../deps.ts";
import { StorageError } from "../errors.ts";
import { createKeyed, DONE } from "../keyed.ts";
import { sourceKind } from "../kinds.ts";
import { PROVISIONING_FINALIZER } from "../names.ts";
import { createTeller } from "../teller.ts";
import type { EventReason } from "../waiting.ts";
import { STALE_RETRY_MS } from "../writes.ts";
import { planProvision, volumeNameOf, type ProvisionAction } from "./plan.ts";
import { holdCloned, letClonedGo } from "./cloned.ts";
import {
  confirmHeld,
  hold,
  prepare,
  provision,
  release,
  unselectNode,
  type Order,
  type Prepared,
  type ProvisionDeps,
} from "./provision.ts";
import { reclaim } from "./reclaim.ts";

/** Calls that may take a minute each; upstream has 100 workers, for backends that are elsewhere. */
const WORKERS = 10;

/** Has the driver make volumes for claims, and delete those that nobody has any more. */
export function createProvisioner(deps: ProvisionDeps): Companion {
  const { caches, clock, driver, log } = deps;
  const { latest } = caches;
  const claimQueue = createKeyed(deps, {
    name: "provisioner-claims",
    workers: WORKERS,
    reconcile: reconcileClaim,
  });
  const volumeQueue = createKeyed(deps, {
    name: "provisioner-volumes",
    workers: WORKERS,
    reconcile: (key, signal) => reclaim(reclaimDeps, key, signal),
  });
  const teller = createTeller(deps, "provisioner");
  const attempts = new Attempts();
  const reclaimDeps = { ...deps, attempts: new Attempts(), teller };
  /** Claims, by uid, for which the driver certainly has no volume: held by us, and every answer was a clear no. */
  const none = new Set<string>();

  async function reconcileClaim(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const claim = latest.claims.get(key);
    if (!claim) {
      attempts.forget(key);
      teller.forget(key);
      return DONE;
    }
    await letClonedGo(deps, claim, signal);
    const className = classNameOf(claim);
    const plan = planProvision({
      claim,
      driver: driver.name,
      storageClass: className ? caches.classes.get(toKey({ name: className })) : undefined,
      volume: latest.volumes.get(toKey({ name: volumeNameOf(claim) })),
      certainlyNone: none.has(claim.metadata.uid ?? ""),
    });
    if (!plan.action) {
      teller.say(persistentVolumeClaims, claim, plan);
      return DONE;
    }
    return act(claim, plan.action, signal);
  }

  async function act(
    claim: PersistentVolumeClaim,
    action: ProvisionAction,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const key = keyOf(claim);
    if (action.kind === "release") {
      await release(deps, claim, signal);
      none.delete(claim.metadata.uid ?? "");
      attempts.forget(key);
      return DONE;
    }
    const waitMs = attempts.waitMs(key, clock.now());
    if (waitMs > 0) return { kind: "after", ms: waitMs };
    const { storageClass, node } = action;
    return attempt({ claim, storageClass, node, unwanted: action.kind === "settle" }, signal);
  }

  /**
   * The claim is held, the driver is asked, its answer becomes a PersistentVolume, the claim is let go. Killed anywhere
   * between, the next attempt finds the claim held, asks under the same name and gets the same volume.
   */
  async function attempt(wish: Order, signal: AbortSignal): Promise<Outcome> {
    const key = keyOf(wish.claim);
    const uid = wish.claim.metadata.uid ?? "";
    const early = await prepared(wish, signal);
    if ("outcome" in early) return early.outcome;
    if (!wish.unwanted) await holdCloned(deps, wish.claim, signal);
    const fresh = !hasFinalizer(wish.claim, PROVISIONING_FINALIZER);
    const claim = await (fresh ? hold : confirmHeld)(deps, wish.claim, signal);
    if (!claim) return { kind: "after", ms: STALE_RETRY_MS };
    const wasNone = fresh || none.delete(uid);
    // What it is made of may have begun to go before the claim was held; from now on it stays.
    const ready = early.prepared.source ? await prepared({ ...wish, claim }, signal) : early;
    if ("outcome" in ready) {
      if (wasNone) none.add(uid);
      return ready.outcome;
    }
    tell(claim, "Provisioning", `External provisioner is provisioning volume for claim "${key}"`);
    const made = await provision(deps, { ...wish, claim }, ready.prepared, signal);
    if (made.kind === "failed") {
      if (wasNone && !made.uncertain) none.add(uid);
      const tail = made.elsewhere ? `; node "${wish.node}" is given up, the scheduler chooses again` : "";
      const outcome = failed(wish, made.message + tail);
      if (made.elsewhere) await unselectNode(deps, claim, signal);
      return outcome;
    }
    attempts.forget(key);
    const name = made.volume.metadata.name;
    log.info("volume provisioned", { claim: key, volume: name, unwanted: wish.unwanted });
    tell(claim, "ProvisioningSucceeded", `Successfully provisioned volume ${name}`);
    await release(deps, claim, signal);
    return DONE;
  }

  /** What the request needs, or what to do because it cannot be had. */
  async function prepared(
    wish: Order,
    signal: AbortSignal,
  ): Promise<{ readonly prepared: Prepared } | { readonly outcome: Outcome }> {
    try {
      return { prepared: await prepare(deps, wish, signal) };
    } catch (error) {
      if (signal.aborted || isKubeError(error)) throw error;
      // What a claim is made of stays as long as the claim is held, so the driver was never asked for this one.
      if (wish.unwanted && error instanceof StorageError && error.code === "SourceMissing") {
        await release(deps, wish.claim, signal);
        return { outcome: DONE };
      }
      return { outcome: failed(wish, error instanceof Error ? error.message : String(error)) };
    }
  }

  function failed({ claim, storageClass }: Order, message: string): Outcome {
    const key = keyOf(claim);
    const waitMs = attempts.failed(key, clock.now());
    log.warn("volume not provisioned", { claim: key, error: message, retryInMs: waitMs });
    const text = `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${message}`;
    teller.say(persistentVolumeClaims, claim, {
      tell: { type: "Warning", reason: "ProvisioningFailed", message: text },
      waitingFor: { reason: "backoff", message: text },
    });
    return { kind: "after", ms: waitMs };
  }

  function tell(claim: PersistentVolumeClaim, reason: EventReason, message: string): void {
    teller.say(persistentVolumeClaims, claim, { tell: { type: "Normal", reason, message } });
  }

  function onClaim(delta: Delta<PersistentVolumeClaim>): void {
    const { key, object } = delta;
    if (delta.kind === "deleted") none.delete(object.metadata.uid ?? "");
    if (delta.kind === "updated" && isNews(delta.old, object)) attempts.forget(key);
    claimQueue.add(key);
    // Whoever waited for a copy of it may be done now, so that it may go.
    const source = sourceOf(object);
    if (source && sourceKind(source) === "claim")
      claimQueue.add(toKey({ name: source.name, namespace: object.metadata.namespace }));
  }

  /** What it failed for may be gone: its back-off, up to five minutes, is worth nothing now. */
  function wake(index: string, value: string): void {
    for (const claim of caches.claims.byIndex(index, value)) {
      attempts.forget(keyOf(claim));
      claimQueue.add(keyOf(claim));
    }
  }

  function subscribe(): readonly (() => void)[] {
    return [
      caches.claims.addHandler(onClaim),
      caches.claims.addHandler(({ key }) => wake(WAITING_BY_SOURCE, `claim/${key}`), { changesOnly: true }),
      caches.snapshots.addHandler(({ key }) => wake(WAITING_BY_SOURCE, `snapshot/${key}`), {
        changesOnly: true,
      }),
      caches.classes.addHandler(({ key }) => wake(WAITING_BY_CLASS, key), { changesOnly: true }),
      caches.csiNodes.addHandler(({ key }) => wake(WAITING_BY_NODE, key), { changesOnly: true }),
      caches.volumes.addHandler(({ key, object }) => {
        volumeQueue.add(key);
        const ref = object.spec?.claimRef;
        if (ref) claimQueue.add(toKey({ name: ref.name ?? "", namespace: ref.namespace }));
      }),
      caches.attachments.addHandler(({ kind, object }) => {
        const name = object.spec.source.persistentVolumeName;
        if (kind === "deleted" && name) volumeQueue.add(toKey({ name }));
      }),
    ];
  }

  return {
    async run(signal) {
      await caches.whenSynced(signal);
      const leave = subscribe();
      try {
        await Promise.all([claimQueue.run(signal), volumeQueue.run(signal)]);
      } finally {
        leave.forEach((end) => end());
      }
    },
  };
}

/**
 * It is going, and should not keep anybody waiting. A node chosen anew is no news: the scheduler may choose the full one
 * again and again, as fast as it is refused.
 */
function isNews(old: PersistentVolumeClaim, claim: PersistentVolumeClaim): boolean {
  return old.metadata.deletionTimestamp !== claim.metadata.deletionTimestamp;
}

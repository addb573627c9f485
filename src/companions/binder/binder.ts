import { unreachable } from "../../base/assert.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { keyOf, toKey, type KubeObject, type ObjectKey, type Resource } from "../../kube/object.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { AVAILABLE, BY_CLAIM, BY_VOLUME, WAITING_BY_CLASS } from "../caches.ts";
import { classNameOf, defaultClassOf, NO_CHOICE, volumeClassOf } from "../claims.ts";
import type { CachedDeps, Companion } from "../deps.ts";
import { createKeyed, DONE } from "../keyed.ts";
import type { Latest } from "../latest.ts";
import { createTeller } from "../teller.ts";
import { found, patchSeen } from "../writes.ts";
import { nextBindStep } from "./bind.ts";
import { findVolume, mismatchOf, type Shelves } from "./match.ts";
import { planClaim, type ClaimAction, type ClaimPlan, type ClaimView } from "./plan-claim.ts";
import { planVolume, type VolumeAction } from "./plan-volume.ts";

/** A claim binds in four writes one after the other, a volume changes its phase in one. */
const WORKERS = 4;

/** Gives every claim its volume, and every volume its phase. Needs no driver. */
export function createBinder(deps: CachedDeps): Companion {
  const { caches, client, log } = deps;
  const { latest } = caches;
  const claimQueue = createKeyed(deps, {
    name: "binder-claims",
    workers: WORKERS,
    reconcile: reconcileClaim,
  });
  const volumeQueue = createKeyed(deps, {
    name: "binder-volumes",
    workers: WORKERS,
    reconcile: reconcileVolume,
  });
  const teller = createTeller(deps, "binder");
  /** Volumes that a worker is giving to a claim this moment; at most one a worker. */
  const taking = new Set<string>();

  const shelves: Shelves = {
    claimedBy: (claim) =>
      caches.volumes.byIndex(BY_CLAIM, keyOf(claim)).map((one) => latest.volumes.newer(one)),
    available: (shelf) =>
      caches.volumes
        .byIndex(AVAILABLE, shelf)
        .map((one) => latest.volumes.newer(one))
        .filter(({ metadata, spec }) => !spec?.claimRef && !taking.has(metadata.name ?? "")),
  };

  async function patch<T extends KubeObject>(
    resource: Resource<T>,
    cache: Latest<T>,
    object: T,
    change: object,
    options: { readonly subresource?: "status"; readonly signal: AbortSignal },
  ): Promise<T> {
    const written = await patchSeen(client, resource, object, change, options);
    cache.written(written);
    return written;
  }

  async function reconcileClaim(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const claim = latest.claims.get(key);
    if (!claim) {
      teller.forget(key);
      return DONE;
    }
    const className = classNameOf(claim);
    const view = {
      claim,
      volume: latest.volumes.get(toKey({ name: claim.spec?.volumeName ?? "" })),
      storageClass: className ? caches.classes.get(toKey({ name: className })) : undefined,
      defaultClass: className === undefined ? defaultClassOf(caches.classes.objects()) : undefined,
      find: (options: { onlyPromised: boolean }) => findVolume(shelves, claim, options),
    };
    const early = planClaim(view);
    const { action, tell, waitingFor } =
      early.action?.kind === "lose" ? await confirmLoss(view, signal) : early;
    teller.say(persistentVolumeClaims, claim, { tell, waitingFor });
    return action ? actOnClaim(claim, action, signal) : DONE;
  }

  /** A cache that has not seen the volume yet is no reason to call its data lost. */
  async function confirmLoss(view: ClaimView, signal: AbortSignal): Promise<ClaimPlan> {
    const name = view.claim.spec?.volumeName;
    const volume = name ? await found(client.get(persistentVolumes, { name }, { signal })) : undefined;
    return planClaim({ ...view, volume });
  }

  async function actOnClaim(
    claim: PersistentVolumeClaim,
    action: ClaimAction,
    signal: AbortSignal,
  ): Promise<Outcome> {
    switch (action.kind) {
      case "bind":
        return bind(action.volume, claim, signal);
      case "change":
        await patch(persistentVolumeClaims, latest.claims, claim, action.change, { signal });
        claimQueue.add(keyOf(claim));
        return DONE;
      case "lose": {
        const change = { status: { phase: "Lost", accessModes: null, capacity: null } };
        await patch(persistentVolumeClaims, latest.claims, claim, change, { subresource: "status", signal });
        return DONE;
      }
      default:
        return unreachable(action);
    }
  }

  async function bind(
    volume: PersistentVolume,
    claim: PersistentVolumeClaim,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const name = volume.metadata.name ?? "";
    taking.add(name);
    try {
      let [bound, owner, writes] = [volume, claim, 0];
      for (let step = nextBindStep(bound, owner); step; step = nextBindStep(bound, owner), writes++) {
        const { kind, change } = step;
        const options = kind.endsWith("-status") ? { subresource: "status" as const, signal } : { signal };
        if (kind === "volume" || kind === "volume-status")
          bound = await patch(persistentVolumes, latest.volumes, bound, change, options);
        else owner = await patch(persistentVolumeClaims, latest.claims, owner, change, options);
      }
      if (writes > 0) log.info("claim bound", { claim: keyOf(claim), volume: name });
      return DONE;
    } finally {
      taking.delete(name);
    }
  }

  async function reconcileVolume(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const volume = latest.volumes.get(key);
    const ref = volume?.spec?.claimRef;
    if (!volume) {
      teller.forget(key);
      return DONE;
    }
    const claimRef = { name: ref?.name ?? "", namespace: ref?.namespace ?? "" };
    const claimed = ref ? latest.claims.get(toKey(claimRef)) : undefined;
    const view = { volume, claim: claimed, confirmed: false };
    let plan = planVolume(view);
    if (plan.action?.kind === "confirm") {
      const live = await found(client.get(persistentVolumeClaims, claimRef, { signal }));
      plan = planVolume({ ...view, claim: live, confirmed: true });
    }
    if (plan.action) await actOnVolume(volume, plan.action, signal);
    if (plan.tell) teller.say(persistentVolumes, volume, { tell: plan.tell });
    return DONE;
  }

  async function actOnVolume(
    volume: PersistentVolume,
    action: VolumeAction,
    signal: AbortSignal,
  ): Promise<void> {
    const { metadata, spec } = volume;
    switch (action.kind) {
      case "status":
        await patch(persistentVolumes, latest.volumes, volume, action.change, {
          subresource: "status",
          signal,
        });
        log.info("volume changed its phase", { volume: metadata.name, ...action.change });
        return;
      case "unbind":
        await patch(persistentVolumes, latest.volumes, volume, action.change, { signal });
        volumeQueue.add(keyOf(volume));
        return;
      case "look-at-claim":
        claimQueue.add(toKey({ name: spec?.claimRef?.name ?? "", namespace: spec?.claimRef?.namespace }));
        return;
      case "confirm":
        return;
      default:
        unreachable(action);
    }
  }

  function onVolume(volume: PersistentVolume): void {
    volumeQueue.add(keyOf(volume));
    const ref = volume.spec?.claimRef;
    if (ref) claimQueue.add(toKey({ name: ref.name ?? "", namespace: ref.namespace }));
    for (const claim of caches.claims.byIndex(BY_VOLUME, volume.metadata.name ?? ""))
      claimQueue.add(keyOf(claim));
    if (ref || volume.status?.phase !== "Available") return;
    const className = volumeClassOf(volume);
    for (const key of className === "" ? ["", NO_CHOICE] : [className])
      for (const claim of caches.claims.byIndex(WAITING_BY_CLASS, key))
        // Only those it could serve: a class may have many that wait for another size.
        if (mismatchOf(volume, claim) === undefined) claimQueue.add(keyOf(claim));
  }

  function onClaim(claim: PersistentVolumeClaim): void {
    claimQueue.add(keyOf(claim));
    if (claim.spec?.volumeName) volumeQueue.add(toKey({ name: claim.spec.volumeName }));
    for (const volume of caches.volumes.byIndex(BY_CLAIM, keyOf(claim))) volumeQueue.add(keyOf(volume));
  }

  function onClass({ metadata }: KubeObject): void {
    for (const key of [metadata.name ?? "", NO_CHOICE])
      for (const claim of caches.claims.byIndex(WAITING_BY_CLASS, key)) claimQueue.add(keyOf(claim));
  }

  return {
    async run(signal) {
      await caches.whenSynced(signal);
      const leave = [
        caches.volumes.addHandler(({ object }) => onVolume(object)),
        caches.claims.addHandler(({ object }) => onClaim(object)),
        caches.classes.addHandler(({ object }) => onClass(object), { changesOnly: true }),
      ];
      try {
        await Promise.all([claimQueue.run(signal), volumeQueue.run(signal)]);
      } finally {
        leave.forEach((end) => end());
      }
    },
  };
}

import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import { Attempts } from "../attempts.ts";
import { BY_CLAIM, BY_CONTENT, BY_VOLUME } from "../caches.ts";
import type { CachedDeps, Companion } from "../deps.ts";
import type { StorageDriver } from "../driver.ts";
import { createKeyed } from "../keyed.ts";
import { createTeller } from "../teller.ts";
import { sourceOf } from "../claims.ts";
import { sourceKind, type VolumeSnapshot, type VolumeSnapshotContent } from "../kinds.ts";
import { reconcileContent } from "./content.ts";
import { contentNameOf } from "./plan-snapshot.ts";
import { reconcileSnapshot } from "./snapshot.ts";
import { reconcileSourceClaim } from "./source-claim.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";

export interface SnapshotterDeps extends CachedDeps {
  readonly driver: StorageDriver;
}

const WORKERS = 4;

/** What the snapshot controller and the csi-snapshotter sidecar do: snapshots become contents, contents become cuts. */
export function createSnapshotter(deps: SnapshotterDeps): Companion {
  const { caches } = deps;
  const teller = createTeller(deps, "snapshotter");
  const attempts = new Attempts();
  const contentDeps = { ...deps, attempts, teller, none: new Set<string>() };
  const snapshots = createKeyed(deps, {
    name: "snapshotter-snapshots",
    workers: WORKERS,
    reconcile: (key, signal) => reconcileSnapshot({ ...deps, teller }, key, signal),
  });
  const contents = createKeyed(deps, {
    name: "snapshotter-contents",
    workers: WORKERS,
    reconcile: (key, signal) => reconcileContent(contentDeps, key, signal),
  });
  const claims = createKeyed(deps, {
    name: "snapshotter-claims",
    workers: WORKERS,
    reconcile: (key, signal) => reconcileSourceClaim(deps, key, signal),
  });

  function onSnapshot(snapshot: VolumeSnapshot): void {
    snapshots.add(keyOf(snapshot));
    contents.add(toKey({ name: contentNameOf(snapshot) }));
    const { persistentVolumeClaimName: name } = snapshot.spec.source;
    if (name) claims.add(toKey({ name, namespace: snapshot.metadata.namespace }));
  }

  function onContent({ metadata, spec }: VolumeSnapshotContent): void {
    contents.add(toKey({ name: metadata.name ?? "" }));
    const ref = toKey({
      name: spec.volumeSnapshotRef.name ?? "",
      namespace: spec.volumeSnapshotRef.namespace,
    });
    const named = [caches.snapshots.get(ref), ...caches.snapshots.byIndex(BY_CONTENT, metadata.name ?? "")];
    for (const snapshot of named) if (snapshot) onSnapshot(snapshot);
  }

  /** A claim may be what snapshots are of, and may be made of one. */
  function onClaim(claim: PersistentVolumeClaim): void {
    claims.add(keyOf(claim));
    for (const snapshot of caches.snapshots.byIndex(BY_CLAIM, keyOf(claim))) snapshots.add(keyOf(snapshot));
    const source = sourceOf(claim);
    if (source && sourceKind(source) === "snapshot") {
      snapshots.add(toKey({ name: source.name, namespace: claim.metadata.namespace }));
    }
  }

  /** Only what waits for a class: a cluster has many snapshots and few classes. */
  function onClass(): void {
    for (const [key, { reason }] of teller.waits()) {
      if (reason !== "class-missing") continue;
      const queue = caches.contents.get(key) ? contents : snapshots;
      attempts.forget(key);
      queue.add(key);
    }
  }

  function onVolume(key: ObjectKey): void {
    for (const claim of caches.claims.byIndex(BY_VOLUME, key)) onClaim(claim);
  }

  return {
    async run(signal) {
      await caches.whenSynced(signal);
      const leave = [
        caches.snapshots.addHandler(({ object }) => onSnapshot(object)),
        caches.contents.addHandler(({ kind, object }) => {
          if (kind === "deleted") contentDeps.none.delete(object.metadata.uid ?? "");
          onContent(object);
        }),
        caches.claims.addHandler(({ object }) => onClaim(object)),
        caches.volumes.addHandler(({ key }) => onVolume(key), { changesOnly: true }),
        caches.snapshotClasses.addHandler(onClass, { changesOnly: true }),
      ];
      try {
        await Promise.all([snapshots.run(signal), contents.run(signal), claims.run(signal)]);
      } finally {
        leave.forEach((end) => end());
      }
    },
  };
}

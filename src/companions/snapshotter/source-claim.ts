import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { BY_CLAIM } from "../caches.ts";
import type { CachedDeps } from "../deps.ts";
import type { StorageDriver } from "../driver.ts";
import { DONE } from "../keyed.ts";
import { volumeSnapshotContents, type VolumeSnapshot, type VolumeSnapshotContent } from "../kinds.ts";
import { found, patchSeen } from "../writes.ts";
import { BEING_CREATED, CLAIM_SOURCE_FINALIZER } from "./names.ts";
import { contentNameOf } from "./plan-snapshot.ts";

interface SnapshotterDeps extends CachedDeps {
  readonly driver: StorageDriver;
}

/** Lets a claim go once no snapshot of it is being cut. */
export async function reconcileSourceClaim(
  { caches, client, driver }: SnapshotterDeps,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<Outcome> {
  const claim = caches.latest.claims.get(key);
  if (!claim || !hasFinalizer(claim, CLAIM_SOURCE_FINALIZER)) return DONE;
  const volume = caches.latest.volumes.get(toKey({ name: claim.spec?.volumeName ?? "" }));
  // Of another driver's volume another snapshotter knows.
  if (volume && volume.spec?.csi?.driver !== driver.name) return DONE;
  for (const snapshot of caches.snapshots.byIndex(BY_CLAIM, keyOf(claim))) {
    if (snapshot.status?.readyToUse === true) continue;
    // Not from a cache: one that lags does not know of a content just made, and the claim would go under the driver's feet.
    const name = contentNameOf(snapshot);
    const content = await found(client.get(volumeSnapshotContents, { name }, { signal }));
    if (isBeingCut(snapshot, content, claim)) return DONE;
  }
  const finalizers = (claim.metadata.finalizers ?? []).filter((one) => one !== CLAIM_SOURCE_FINALIZER);
  const change = { metadata: { finalizers } };
  caches.latest.claims.written(await patchSeen(client, persistentVolumeClaims, claim, change, { signal }));
  return DONE;
}

/** Without a content it will be cut, unless one of the two is going: then nobody begins any more. */
export function isBeingCut(
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
  claim: PersistentVolumeClaim,
): boolean {
  if (!content) return !snapshot.metadata.deletionTimestamp && !claim.metadata.deletionTimestamp;
  const asked = content.metadata.annotations?.[BEING_CREATED] !== undefined;
  const { status } = content;
  return asked || (status?.snapshotHandle === undefined && status?.error === undefined);
}

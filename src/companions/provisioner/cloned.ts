import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { keyOf, toKey } from "../../kube/object.ts";
import { WAITING_BY_SOURCE } from "../caches.ts";
import { sourceOf } from "../claims.ts";
import type { CachedDeps } from "../deps.ts";
import { sourceKind } from "../kinds.ts";
import { CLONING_FINALIZER } from "../names.ts";
import { patchSeen } from "../writes.ts";
import type { ProvisionDeps } from "./provision.ts";

/*
 * A claim that is being cloned stays until the clone is made: its data would go in the middle of the copy, and a clone
 * whose fate is not known could not be asked for again.
 */

/** Holds the claim that `clone` is made of, if it is made of one. */
export async function holdCloned(
  { client }: CachedDeps,
  clone: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  const source = sourceOf(clone);
  if (!source || sourceKind(source) !== "claim") return;
  const ref = { name: source.name, namespace: clone.metadata.namespace };
  const live = await client.get(persistentVolumeClaims, ref, { signal });
  if (hasFinalizer(live, CLONING_FINALIZER)) return;
  const finalizers = [...(live.metadata.finalizers ?? []), CLONING_FINALIZER];
  await patchSeen(client, persistentVolumeClaims, live, { metadata: { finalizers } }, { signal });
}

/** Lets a claim go once nobody waits for a copy of it. */
export async function letClonedGo(
  { client, caches, driver }: ProvisionDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  if (!hasFinalizer(claim, CLONING_FINALIZER)) return;
  const volume = caches.latest.volumes.get(toKey({ name: claim.spec?.volumeName ?? "" }));
  // Of another driver's volume another provisioner knows.
  if (volume && volume.spec?.csi?.driver !== driver.name) return;
  if (caches.claims.byIndex(WAITING_BY_SOURCE, `claim/${keyOf(claim)}`).length > 0) return;
  const finalizers = (claim.metadata.finalizers ?? []).filter((name) => name !== CLONING_FINALIZER);
  const change = { metadata: { finalizers } };
  caches.latest.claims.written(await patchSeen(client, persistentVolumeClaims, claim, change, { signal }));
}

import { unreachable } from "../../base/assert.ts";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { apiVersionOf, keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { WAITING_BY_SOURCE } from "../caches.ts";
import { sourceKeyOf } from "../claims.ts";
import type { CachedDeps } from "../deps.ts";
import type { StorageDriver } from "../driver.ts";
import { DONE } from "../keyed.ts";
import {
  volumeSnapshotContents,
  volumeSnapshots,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "../kinds.ts";
import { PROVISIONING_FINALIZER } from "../names.ts";
import type { Teller } from "../teller.ts";
import { found, patchSeen } from "../writes.ts";
import { snapshotterSecretOf } from "./content.ts";
import {
  CLAIM_SOURCE_FINALIZER,
  CONTENT_FINALIZER,
  DELETION_SECRET_NAME,
  DELETION_SECRET_NAMESPACE,
} from "./names.ts";
import { contentNameOf, planSnapshot, type SnapshotAction, type SnapshotView } from "./plan-snapshot.ts";

export interface SnapshotDeps extends CachedDeps {
  readonly driver: StorageDriver;
  readonly teller: Teller;
}

const AGAIN: Outcome = { kind: "after", ms: 0 };

/** One look at one snapshot: at most one write, then it is looked at again. */
export async function reconcileSnapshot(
  deps: SnapshotDeps,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<Outcome> {
  const { caches, client, teller } = deps;
  const snapshot = caches.latest.snapshots.get(key);
  if (!snapshot) {
    teller.forget(key);
    return DONE;
  }
  let view = viewOf(deps, snapshot);
  let plan = planSnapshot(view);
  if (plan.action?.kind === "confirm") {
    const name = contentNameOf(snapshot);
    const content = await found(client.get(volumeSnapshotContents, { name }, { signal }));
    const restores = await countRestores(deps, snapshot, signal);
    view = { ...view, content, restores, confirmed: true };
    plan = planSnapshot(view);
  }
  teller.say(volumeSnapshots, snapshot, plan);
  return plan.action ? act(deps, view, plan.action, signal) : DONE;
}

/** Only a snapshot that goes is worth a list of its namespace: a restore that a cache does not show yet would lose its source. */
async function countRestores(
  { client }: SnapshotDeps,
  snapshot: VolumeSnapshot,
  signal: AbortSignal,
): Promise<number> {
  const { namespace, deletionTimestamp } = snapshot.metadata;
  if (!deletionTimestamp) return 0;
  const { items } = await client.list(persistentVolumeClaims, { namespace, signal });
  const key = `snapshot/${keyOf(snapshot)}`;
  return items.filter((claim) => sourceKeyOf(claim) === key && hasFinalizer(claim, PROVISIONING_FINALIZER))
    .length;
}

function viewOf({ caches, driver }: SnapshotDeps, snapshot: VolumeSnapshot): SnapshotView {
  const { namespace } = snapshot.metadata;
  const claimName = snapshot.spec.source.persistentVolumeClaimName;
  const claim = claimName ? caches.latest.claims.get(toKey({ name: claimName, namespace })) : undefined;
  return {
    snapshot,
    driver: driver.name,
    content: caches.latest.contents.get(toKey({ name: contentNameOf(snapshot) })),
    confirmed: false,
    claim,
    volume: claim ? caches.latest.volumes.get(toKey({ name: claim.spec?.volumeName ?? "" })) : undefined,
    classes: [...caches.snapshotClasses.objects()],
    restores: caches.claims
      .byIndex(WAITING_BY_SOURCE, `snapshot/${keyOf(snapshot)}`)
      .filter((waiting) => hasFinalizer(waiting, PROVISIONING_FINALIZER)).length,
  };
}

async function act(
  deps: SnapshotDeps,
  { snapshot, content }: SnapshotView,
  action: SnapshotAction,
  signal: AbortSignal,
): Promise<Outcome> {
  const { client, caches } = deps;
  const { latest } = caches;
  switch (action.kind) {
    case "change":
      latest.snapshots.written(await patchSeen(client, volumeSnapshots, snapshot, action.change, { signal }));
      return AGAIN;
    case "status":
      return writeStatus(deps, snapshot, action.status, signal);
    case "hold-claim": {
      const { claim } = action;
      const finalizers = [...(claim.metadata.finalizers ?? []), CLAIM_SOURCE_FINALIZER];
      const change = { metadata: { finalizers } };
      latest.claims.written(await patchSeen(client, persistentVolumeClaims, claim, change, { signal }));
      return AGAIN;
    }
    case "create-content":
      await client.create(volumeSnapshotContents, toContent(deps, snapshot, action), { signal });
      return DONE;
    case "change-content":
      if (content)
        latest.contents.written(
          await patchSeen(client, volumeSnapshotContents, content, action.change, { signal }),
        );
      return AGAIN;
    case "delete-content": {
      const { name = "", uid = "" } = content?.metadata ?? {};
      await client.delete(volumeSnapshotContents, { name }, { preconditions: { uid }, signal });
      return DONE;
    }
    case "confirm":
      return DONE;
    default:
      return unreachable(action);
  }
}

async function writeStatus(
  { client, caches, teller }: SnapshotDeps,
  snapshot: VolumeSnapshot,
  status: object,
  signal: AbortSignal,
): Promise<Outcome> {
  const options = { subresource: "status", signal } as const;
  const written = await patchSeen(client, volumeSnapshots, snapshot, { status }, options);
  caches.latest.snapshots.written(written);
  const key = keyOf(snapshot);
  if (written.status?.readyToUse && !snapshot.status?.readyToUse) {
    const message = `Snapshot ${key} is ready to use.`;
    teller.say(volumeSnapshots, snapshot, { tell: { type: "Normal", reason: "SnapshotReady", message } });
  } else if (snapshot.status?.boundVolumeSnapshotContentName === undefined) {
    const message = `Waiting for a snapshot ${key} to be created by the CSI driver.`;
    teller.say(volumeSnapshots, snapshot, { tell: { type: "Normal", reason: "CreatingSnapshot", message } });
  }
  return AGAIN;
}

/** The half of a snapshot that belongs to the cluster and that the driver's side works on. */
function toContent(
  { driver }: SnapshotDeps,
  { metadata }: VolumeSnapshot,
  {
    volume,
    snapshotClass,
  }: { readonly volume: PersistentVolume; readonly snapshotClass: VolumeSnapshotClass },
): VolumeSnapshotContent {
  const { name = "", namespace = "", uid = "", resourceVersion = "" } = metadata;
  const contentName = `snapcontent-${uid}`;
  const secret = snapshotterSecretOf(snapshotClass.parameters ?? {}, {
    content: contentName,
    snapshot: { name, namespace },
  });
  return {
    metadata: {
      name: contentName,
      finalizers: [CONTENT_FINALIZER],
      ...(secret && {
        annotations: {
          [DELETION_SECRET_NAME]: secret.name,
          [DELETION_SECRET_NAMESPACE]: secret.namespace,
        },
      }),
    },
    spec: {
      deletionPolicy: snapshotClass.deletionPolicy,
      driver: driver.name,
      source: { volumeHandle: volume.spec?.csi?.volumeHandle ?? "" },
      sourceVolumeMode: volume.spec?.volumeMode ?? "Filesystem",
      volumeSnapshotClassName: snapshotClass.metadata.name ?? "",
      volumeSnapshotRef: {
        apiVersion: apiVersionOf(volumeSnapshots),
        kind: volumeSnapshots.kind,
        name,
        namespace,
        uid,
        resourceVersion,
      },
    },
  };
}

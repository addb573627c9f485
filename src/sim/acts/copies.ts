import { volumeSnapshots } from "../../companions/kinds.ts";
import type { ActOf, CopyAct } from "../act.ts";
import { NAMESPACE, type App } from "../apps.ts";
import type { ActContext, Performers } from "./context.ts";

/** Snapshots of volumes come and go, and apps are made of them and of each other. */
export const COPIES: Performers<CopyAct["kind"]> = {
  snapshot: async ({ app, snapshot: name }, { apps, client, snapshotsOf }) => {
    const source = apps.apps.get(app);
    if (source === undefined) return;
    snapshotsOf.set(name, source);
    const spec = { source: { persistentVolumeClaimName: app } };
    await client.create(volumeSnapshots, { metadata: { namespace: NAMESPACE, name }, spec });
  },
  "delete-snapshot": async ({ snapshot: name }, { client }) =>
    client.delete(volumeSnapshots, { namespace: NAMESPACE, name }),
  restore: async (act, context) => {
    const source = context.snapshotsOf.get(act.snapshot);
    const group = "snapshot.storage.k8s.io";
    if (source !== undefined) addCopy(act, source, context, { group, kind: SNAPSHOT, name: act.snapshot });
  },
  clone: async (act, context) => {
    const source = context.apps.apps.get(act.of);
    if (source !== undefined) addCopy(act, source, context, { kind: CLAIM, name: act.of });
  },
};

const SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io";
const CONTENTS = "volumesnapshotcontents.snapshot.storage.k8s.io";
const SNAPSHOT = "VolumeSnapshot";
const CLAIM = "PersistentVolumeClaim";
/** More than a claim grows by in a run: a copy is not smaller than its source. */
const MORE_GI = 32;

function addCopy(
  { app: name, mode, node, late }: ActOf<"restore" | "clone">,
  { storageClass, block, sizeGi = 1 }: App,
  { apps }: ActContext,
  { group, ...source }: { readonly group?: string; readonly kind: string; readonly name: string },
): void {
  const driver = storageClass.startsWith("loop") ? "loop" : "san";
  const dataSource = { ...source, ...(group !== undefined && { apiGroup: group }) };
  const copyClass = late ? `${driver}-wait` : driver;
  apps.add({ name, mode, storageClass: copyClass, block, node, sizeGi: sizeGi + MORE_GI, dataSource });
}

/** Whoever ordered a copy of what is gone, or can never be copied, sees that nothing comes of it and takes the order back. */
export async function healCopies(context: ActContext): Promise<void> {
  const { apps } = context;
  // One app may be made of another that is given up.
  for (let given = -1; given !== 0;) {
    const lost = [...apps.apps.values()].filter((app) => isLost(app, context));
    for (const { name } of lost) await apps.remove(name);
    given = lost.length;
  }
}

/** With the workload. */
export async function removeSnapshots({
  client,
  world,
}: Pick<ActContext, "client" | "world">): Promise<void> {
  for (const { metadata } of world.objects.all(SNAPSHOTS))
    await client.delete(volumeSnapshots, { namespace: NAMESPACE, name: metadata.name ?? "" });
}

function isLost({ name, dataSource }: App, context: ActContext): boolean {
  const { apps, world } = context;
  if (dataSource === undefined || apps.claimOf({ name })?.spec?.volumeName !== undefined) return false;
  if (dataSource.kind === CLAIM) return !isCopyable(dataSource.name, context);
  const snapshot = world.objects.get(SNAPSHOTS, dataSource.name, NAMESPACE);
  if (snapshot === undefined || snapshot.metadata.deletionTimestamp !== undefined) return true;
  if (snapshot.status?.readyToUse === true) return false;
  const content = world.objects.get(CONTENTS, `snapcontent-${snapshot.metadata.uid}`);
  const handle = content?.spec.source.volumeHandle;
  // It is to be cut of a disk that is gone.
  if (handle !== undefined && !world.storages.volumes.has(handle)) return true;
  return !isCopyable(snapshot.spec.source.persistentVolumeClaimName ?? "", context);
}

/** A raw volume in use is copied only where the pool's filesystem can do it in one step. */
function isCopyable(source: string, { apps, world }: ActContext): boolean {
  const app = apps.apps.get(source);
  if (app === undefined) return false;
  return !app.block || !app.storageClass.startsWith("loop") || world.loopPool?.reflink === true;
}

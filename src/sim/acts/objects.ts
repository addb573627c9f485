import { PROVISIONING_FINALIZER } from "../../companions/names.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { pods } from "../../kube/api/pod.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";
import type { ActOf, ObjectAct } from "../act.ts";
import { NAMESPACE, type App } from "../apps.ts";
import { SAN_DRIVER } from "../san.ts";
import type { ActContext, Performers } from "./context.ts";

/** Claims and PersistentVolumes are made late, and made again under pods. */
export const OBJECTS: Performers<ObjectAct["kind"]> = {
  "replace-claim": replaceClaim,
  "replace-disk": replaceDisk,
  "rename-volume": renameVolume,
};

const DISK_BYTES = 1n << 30n;

/**
 * Every operator has made what he was about to make, and has restarted the pods that wait for a claim which waits for a first
 * consumer: one that was made again after its pod got a node is given none, as no scheduler looks at that pod any more.
 */
export async function healObjects(context: ActContext): Promise<void> {
  const { apps, client } = context;
  for (const name of [...context.volumesToMake.keys()]) await makeVolume(name, context);
  for (const app of apps.apps.values()) {
    const isUnbound = apps.claimOf(app)?.spec?.volumeName === undefined;
    if (!app.storageClass.endsWith("-wait") || !isUnbound || !apps.podOf(app)?.spec?.nodeName) continue;
    await client.delete(pods, { namespace: NAMESPACE, name: `${app.name}-0` }).catch(() => undefined);
  }
}

/** An operator makes a disk for whoever of the class `static` can use it, as the app needs it. */
export function provideVolume(appName: string, afterMs: number, context: ActContext): void {
  const app = context.apps.apps.get(appName);
  if (app === undefined) return;
  const name = context.newName("static");
  const csi = { driver: SAN_DRIVER, volumeHandle: newDisk(name, app, context) };
  const { mode, block, storageClass } = app;
  const spec = {
    ...{ csi, storageClassName: storageClass, persistentVolumeReclaimPolicy: "Retain" },
    ...{ accessModes: [mode], capacity: { storage: "1Gi" }, volumeMode: block ? "Block" : "Filesystem" },
  };
  makeVolumeLater({ metadata: { name }, spec }, afterMs, context);
}

async function replaceClaim(
  { app: name, volumeAfterMs }: ActOf<"replace-claim">,
  context: ActContext,
): Promise<void> {
  const app = context.apps.apps.get(name);
  if (app === undefined || context.apps.claimOf(app) === undefined) return;
  delete app.volumeName;
  if (app.storageClass === "static") provideVolume(name, volumeAfterMs, context);
  await removeByHand(context, persistentVolumeClaims, { namespace: NAMESPACE, name });
}

async function replaceDisk({ app: name, forMs }: ActOf<"replace-disk">, context: ActContext): Promise<void> {
  const bound = boundVolume(name, context);
  // The old disk is left to itself; an image of the pool that no object names would be a leak.
  if (bound?.volume.spec?.csi?.driver !== SAN_DRIVER) return;
  const { app, claim, volume } = bound;
  const old = context.world.san.volumes.get(bound.volume.spec.csi.volumeHandle);
  if (old !== undefined) old.byOperator = true;
  const csi = { driver: SAN_DRIVER, volumeHandle: newDisk(context.newName("spare"), app, context) };
  const { uid = "" } = claim.metadata;
  await retain(volume, context);
  makeVolumeLater(madeAgain(volume, { csi, claimRef: { ...claimRefOf(app), uid } }), forMs, context);
  await removeByHand(context, persistentVolumes, { name: volume.metadata.name ?? "" });
}

async function renameVolume(
  { app: name, forMs }: ActOf<"rename-volume">,
  context: ActContext,
): Promise<void> {
  const bound = boundVolume(name, context);
  if (bound === undefined) return;
  const { app, volume } = bound;
  await retain(volume, context);
  await removeByHand(context, persistentVolumeClaims, { namespace: NAMESPACE, name });
  app.volumeName = context.newName("renamed");
  const renamed = madeAgain(volume, { claimRef: claimRefOf(app) });
  makeVolumeLater({ ...renamed, metadata: { name: app.volumeName } }, forMs, context);
  await removeByHand(context, persistentVolumes, { name: volume.metadata.name ?? "" });
}

interface Bound {
  readonly app: App;
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

/** What an app has, unless somebody is at it. */
function boundVolume(name: string, { apps, world }: ActContext): Bound | undefined {
  const app = apps.apps.get(name);
  const claim = apps.claimOf({ name });
  const volume = world.objects.get("persistentvolumes", claim?.spec?.volumeName ?? "");
  if (app === undefined || claim === undefined || volume?.spec?.csi === undefined) return undefined;
  const isGoing = [claim, volume].some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return isGoing || volume.status?.phase !== "Bound" ? undefined : { app, claim, volume };
}

function newDisk(name: string, { mode }: App, { world }: ActContext): string {
  const shared = mode === "ReadWriteMany";
  return world.san.make({ name, sizeBytes: DISK_BYTES, shared, byOperator: true }).handle;
}

function claimRefOf({ name }: App) {
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: NAMESPACE, name };
}

/** What somebody writes who has the old object before his eyes. */
function madeAgain(
  { metadata, spec }: PersistentVolume,
  change: NonNullable<PersistentVolume["spec"]>,
): PersistentVolume {
  const { claimRef: _, nodeAffinity: __, ...kept } = spec ?? {};
  return {
    metadata: { name: metadata.name ?? "" },
    spec: { ...kept, persistentVolumeReclaimPolicy: "Retain", ...change },
  };
}

/** The data must outlive its object. */
async function retain({ metadata }: PersistentVolume, { client }: ActContext): Promise<void> {
  const value = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
  await client.patch(persistentVolumes, { name: metadata.name ?? "" }, { type: "merge", value });
}

/**
 * `kubectl delete`, and the finalizers taken off because it does not return. Not the provisioner's: it says that the driver may
 * have made a volume of which nothing else knows, and is to be taken off only by somebody who has looked.
 */
async function removeByHand<T extends KubeObject>(
  { client, world }: ActContext,
  resource: Resource<T>,
  ref: { readonly name: string; readonly namespace?: string },
): Promise<void> {
  await client.delete(resource, ref);
  for (;;) {
    const { finalizers: all = [], resourceVersion } = world.read(resource, ref)?.metadata ?? {};
    const finalizers = all.filter((name) => name === PROVISIONING_FINALIZER);
    if (finalizers.length === all.length) return;
    const value = { metadata: { finalizers, resourceVersion } };
    try {
      await client.patch(resource, ref, { type: "merge", value });
    } catch (error) {
      if (isKubeError(error, "NotFound")) return;
      // The provisioner is done with it in this very moment.
      if (!isKubeError(error, "Conflict")) throw error;
    }
  }
}

function makeVolumeLater(volume: PersistentVolume, ms: number, context: ActContext): void {
  const { name = "" } = volume.metadata;
  context.volumesToMake.set(name, volume);
  context.later(ms, () => makeVolume(name, context));
}

/** However often it takes; one of that name that is there is fine. */
async function makeVolume(name: string, context: ActContext): Promise<void> {
  const clock = context.world.scheduler.createClock();
  for (let volume; (volume = context.volumesToMake.get(name)) !== undefined;) {
    try {
      await context.client.create(persistentVolumes, volume);
      context.volumesToMake.delete(name);
    } catch (error) {
      if (isKubeError(error, "AlreadyExists")) context.volumesToMake.delete(name);
      else await clock.sleep(1_000);
    }
  }
}

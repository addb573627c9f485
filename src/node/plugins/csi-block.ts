import { dirname, join } from "node:path";
import { Node } from "../../csi/gen/csi_pb.ts";
import { CSI_PLUGIN } from "../../volumes/names.ts";
import { specName } from "../../volumes/spec.ts";
import { holdsNothing, removeUnbound } from "../unbound-files.ts";
import { VolumeError } from "../errors.ts";
import { escapeName, type Paths } from "../paths.ts";
import type { BlockDeviceRequest, BlockSteps, TearDownDeviceRequest, TearDownRequest } from "../plugin.ts";
import { forgetOr, fromStep, namedBy, persistent, refuseMounted, unlessStaged } from "./csi-device.ts";
import { messageOf } from "./csi-errors.ts";
import {
  attachmentNameOf,
  checkLifecycle,
  driverOf,
  probe,
  publishContextOf,
  rulesFor,
  secretsOf,
  type CsiContext,
} from "./csi-lookups.ts";
import { readRecord, removeRecord, writeRecord } from "./csi-records.ts";
import { podInfoOf, publishRequest, stageRequest } from "./csi-requests.ts";
import { csiVolumeOf } from "./csi-source.ts";

/** Where a raw block volume lies; everything of one volume hangs on its spec name. */
export function blockPathsOf(paths: Paths, name: string) {
  const base = join(paths.plugin(CSI_PLUGIN), "volumeDevices");
  const directory = escapeName(name);
  return {
    volume: join(base, directory),
    /** One bind-mounted device file a pod. */
    map: join(base, directory, "dev"),
    data: join(base, directory, "data"),
    staging: join(base, "staging", directory),
    published: join(base, "publish", directory),
    publishOf: (podUid: string) => join(base, "publish", directory, escapeName(podUid)),
  };
}

/** Raw block volumes: the driver stages into a directory and publishes a device file, which the caller binds and links. */
export function createCsiBlock(context: CsiContext): BlockSteps {
  const { paths } = context;
  return {
    globalMapPath: (spec) => blockPathsOf(paths, specName(spec)).map,
    podDeviceMap: (spec, podUid) => {
      const path = paths.podDevice(podUid, CSI_PLUGIN, escapeName(specName(spec)));
      return { directory: dirname(path), name: escapeName(specName(spec)) };
    },
    stagingPath: (spec) => blockPathsOf(paths, specName(spec)).staging,
    setUpDevice: (request) => stageBlock(context, request),
    mapPodDevice: (request) => publishBlock(context, request),
    unmapPodDevice: (request) => unpublishBlock(context, request),
    tearDownDevice: (request) => unstageBlock(context, request),
    isUnstaged: async (spec, signal) => {
      const { can } = await probe(context, persistent(spec).driver, signal);
      if (!can.stage) return false;
      return (await context.host.files.stat(blockPathsOf(paths, specName(spec)).staging)) === undefined;
    },
  };
}

async function stageBlock(context: CsiContext, request: BlockDeviceRequest): Promise<void> {
  const { spec, pod, signal, mayBeThere } = request;
  const volume = persistent(spec);
  refuseReserved(specName(spec));
  const at = blockPathsOf(context.paths, specName(spec));
  const rules = rulesFor(context, volume.driver);
  checkLifecycle(rules, volume.driver, "Persistent");
  const { driver, can } = await probe(context, volume.driver, signal);
  const publishContext = await publishContextOf(context, volume, { rules, signal, first: true });
  const podNamespace = pod.metadata.namespace ?? "";
  const secrets = await secretsOf(context, volume.stageSecret, {
    field: "NodeStageSecretRef",
    podNamespace,
    signal,
  });
  try {
    await writeBlockRecord(context, request);
    // As of a filesystem: what the version before was asked for, and did not answer, is not staged.
    if (!can.stage) {
      await unlessStaged(() => context.host.files.removeDirectory(at.staging));
      return;
    }
    await context.host.files.makeDirectories(at.staging, 0o750);
    const facts = { volume, stagingPath: at.staging, publishContext, secrets, traits: can };
    await driver.call(Node.method.nodeStageVolume, stageRequest(facts), {
      signal,
      migrated: volume.migrated,
    });
  } catch (error) {
    const failure = fromStep(error);
    if (failure.outcome !== "final" || mayBeThere) throw failure;
    throw await forgetOr(context, failure, () => removeBlock(context, specName(spec)));
  }
}

/** Beside the directories of volumes lie those where all of them are staged and published: no volume may be one of them. */
function refuseReserved(name: string): void {
  if (name === "staging" || name === "publish")
    throw new VolumeError(
      "final",
      `a block volume cannot be called "${name}", which is a directory that all of them share; give the PersistentVolume another name`,
    );
}

/** Who this is, for whoever finds the directory after a restart; before the driver hears of it. */
async function writeBlockRecord(context: CsiContext, { spec }: BlockDeviceRequest): Promise<void> {
  const { driver, handle } = persistent(spec);
  const { data } = blockPathsOf(context.paths, specName(spec));
  try {
    await context.host.files.makeDirectories(data, 0o750);
    await writeRecord(context.host.files, data, {
      specVolID: specName(spec),
      volumeHandle: handle,
      driverName: driver,
      nodeName: context.nodeName,
      attachmentID: attachmentNameOf(context, { driver, handle }),
    });
  } catch (error) {
    throw new VolumeError("final", `preparing ${data}: ${messageOf(error)}`, { cause: error });
  }
}

async function publishBlock(context: CsiContext, request: BlockDeviceRequest): Promise<string> {
  const { spec, pod, podUid, signal, mayBeThere } = request;
  const volume = persistent(spec);
  const at = blockPathsOf(context.paths, specName(spec));
  const rules = rulesFor(context, volume.driver);
  checkLifecycle(rules, volume.driver, "Persistent");
  const { driver, can } = await probe(context, volume.driver, signal);
  const podNamespace = pod.metadata.namespace ?? "";
  const message = publishRequest({
    volume,
    handle: volume.handle,
    stagingPath: at.staging,
    targetPath: at.publishOf(podUid),
    publishContext: await publishContextOf(context, volume, { rules, signal }),
    secrets: await secretsOf(context, volume.publishSecret, {
      field: "NodePublishSecretRef",
      podNamespace,
      signal,
    }),
    podInfo: rules.podInfo ? podInfoOf(pod, { ephemeral: false }) : undefined,
    tokens: new Map(),
    tokensInSecrets: false,
    traits: can,
  });
  try {
    await context.host.files.makeDirectories(at.published, 0o750);
    await driver.call(Node.method.nodePublishVolume, message, { signal, migrated: volume.migrated });
  } catch (error) {
    const failure = fromStep(error);
    if (failure.outcome !== "final" || mayBeThere) throw failure;
    throw await forgetOr(context, failure, () => removePublished(context, specName(spec), podUid));
  }
  return at.publishOf(podUid);
}

/** Asked of the driver always, whether or not its file is still there, unless none can have been asked for it. */
async function unpublishBlock(context: CsiContext, request: TearDownRequest): Promise<void> {
  const { podUid, signal } = request;
  const { publishOf } = blockPathsOf(context.paths, request.specName);
  const known = await blockKnownAs(context, request);
  if (known !== undefined) {
    const message = { volumeId: known.handle, targetPath: publishOf(podUid) };
    try {
      await driverOf(context, known.driver).call(Node.method.nodeUnpublishVolume, message, { signal });
    } catch (error) {
      throw fromStep(error);
    }
  }
  await removePublished(context, request.specName, podUid);
}

async function unstageBlock(context: CsiContext, request: TearDownDeviceRequest): Promise<void> {
  const { signal } = request;
  const { staging } = blockPathsOf(context.paths, request.specName);
  const isThere = (await context.host.files.stat(staging)) !== undefined;
  const known = isThere ? await blockKnownAs(context, request) : undefined;
  if (known !== undefined) {
    const { driver, can } = await probe(context, known.driver, signal);
    const message = { volumeId: known.handle, stagingTargetPath: staging };
    try {
      if (can.stage) await driver.call(Node.method.nodeUnstageVolume, message, { signal });
    } catch (error) {
      throw fromStep(error);
    }
  }
  await removeBlock(context, request.specName);
}

/** By its record, else by its spec or its name (FIX 13). Undefined where no driver has anything of it. */
async function blockKnownAs(
  context: CsiContext,
  request: Pick<TearDownRequest, "spec" | "volume" | "specName">,
): Promise<{ driver: string; handle: string } | undefined> {
  const { host, paths } = context;
  const lookup = await readRecord(host.files, blockPathsOf(paths, request.specName).data);
  if (lookup.kind === "found")
    return { driver: lookup.record.driverName, handle: lookup.record.volumeHandle };
  const csi = request.spec && csiVolumeOf(request.spec);
  const known = csi?.kind === "persistent" ? csi : namedBy(request.volume);
  if (known !== undefined) return known;
  if (lookup.kind === "missing" && (await isBroughtBack(context, request.specName))) return undefined;
  throw new VolumeError(
    "final",
    `block volume ${request.specName}: its vol_data.json is ${lookup.kind} and nothing else says which driver to ask`,
  );
}

/**
 * Whether what is there of a volume without a record is only what a power loss brought back. The record is on the disk before
 * a driver is asked for anything, and goes after its last answer, but it lies in another directory than the rest: links,
 * files and directories whose removal was not on the disk outlive it. Somebody may have removed it all the same, so that
 * nothing of the volume may be mounted, bound or hold a byte, for whichever pod.
 */
async function isBroughtBack({ host, paths }: CsiContext, name: string): Promise<boolean> {
  const at = blockPathsOf(paths, name);
  const table = await host.mounts.table();
  if ([at.volume, at.staging, at.published].some((path) => table.below(path).length > 0)) return false;
  for (const directory of [at.map, at.staging, at.published])
    if (!(await holdsNothing(host, directory))) return false;
  return true;
}

/** The file the driver should have removed, and the directory of the last pod. Still bound to a device is uncertain. */
async function removePublished(context: CsiContext, name: string, podUid: string): Promise<void> {
  const { host, paths } = context;
  const { published, publishOf } = blockPathsOf(paths, name);
  const path = publishOf(podUid);
  await refuseMounted(context, path, `${path} is still mounted after NodeUnpublishVolume; it is tried again`);
  const left = await host.files.stat(path);
  if (left?.kind === "directory") await host.files.removeDirectory(path);
  else if (left !== undefined) await host.files.removeFile(path);
  if ((await host.files.list(published))?.length === 0) await host.files.removeDirectory(published);
}

/** Everything of the volume, its record last; only ever what is empty or below the staging directory. */
async function removeBlock({ host, paths }: CsiContext, name: string): Promise<void> {
  const { files, mounts } = host;
  const at = blockPathsOf(paths, name);
  const table = await mounts.table().catch((error: unknown) => {
    const message = `whether ${at.staging} is still mounted: ${messageOf(error)}`;
    throw new VolumeError("uncertain", message, { cause: error });
  });
  const [mounted] = table.below(at.staging);
  if (mounted !== undefined) {
    throw new VolumeError(
      "uncertain",
      `${mounted.path} is still mounted after NodeUnstageVolume; it is tried again`,
    );
  }
  await files.removeTree(at.staging);
  await removeUnbound(host, at.published);
  await files.removeDirectory(at.published);
  await files.removeDirectory(at.map);
  await removeRecord(files, at.data);
  await files.removeDirectory(at.data);
  await files.removeDirectory(at.volume);
}

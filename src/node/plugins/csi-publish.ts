import { dirname, join } from "node:path";
import { withEither } from "../../base/signals.ts";
import { Node } from "../../csi/gen/csi_pb.ts";
import { CSI_PLUGIN } from "../../volumes/names.ts";
import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import { escapeName, type Paths } from "../paths.ts";
import type { MountAttributes, SetUpRequest, TearDownRequest } from "../plugin.ts";
import { forgetOr, fromStep, namedBy, refuseMounted } from "./csi-device.ts";
import type { CsiDriverClient } from "./csi-drivers.ts";
import { messageOf, transient } from "./csi-errors.ts";
import {
  attachmentNameOf,
  checkLifecycle,
  driverOf,
  probe,
  publishContextOf,
  rulesFor,
  secretsOf,
  tokensOf,
  type Capable,
  type CsiContext,
} from "./csi-lookups.ts";
import { readRecord, removeRecord, writeRecord } from "./csi-records.ts";
import { podInfoOf, publishRequest, wantsGroup, type PublishFacts } from "./csi-requests.ts";
import type { DriverRules } from "./csi-rules.ts";
import { applyFsGroup } from "./fs-group.ts";
import { csiVolumeOf, ephemeralHandle, handleOf, type CsiVolume } from "./csi-source.ts";

/** `pods/<uid>/volumes/kubernetes.io~csi/<spec name>/mount`: its parent is ours, the target itself the driver's. */
export function targetPathOf(paths: Paths, podUid: string, name: string): string {
  return join(paths.podVolume(podUid, CSI_PLUGIN, escapeName(name)), "mount");
}

/** Publishing: once a volume and pod, again to refresh it. */
export async function publish(context: CsiContext, request: SetUpRequest): Promise<MountAttributes> {
  const { spec, podUid, signal } = request;
  const volume = csiVolumeOf(spec);
  if (volume === undefined)
    throw new VolumeError("final", `volume ${specName(spec)} names no CSI driver and handle`);
  const rules = rulesFor(context, volume.driver);
  checkLifecycle(rules, volume.driver, lifecycleOf(volume));
  const { driver, can } = await probe(context, volume.driver, signal);
  const applies = groupApplies(volume, { rules, can, request });
  const facts = await gatherFacts(context, request, { volume, rules, can });
  try {
    await prepareTarget(context, request, facts);
    await callPublish(driver, facts, signal);
  } catch (error) {
    throw await afterFailedPublish(context, fromStep(error), request);
  }
  const targetPath = targetPathOf(context.paths, podUid, specName(spec));
  const selinuxRelabel = await relabelNeeded(context, targetPath, request.selinuxLabel);
  if (applies) await applyGroup(context, request, facts);
  return { readOnly: volume.readOnly, managed: !volume.readOnly, selinuxRelabel };
}

async function gatherFacts(
  context: CsiContext,
  { spec, pod, podUid, signal, fsGroup, selinuxLabel, deviceMountPath, isRemount }: SetUpRequest,
  { volume, rules, can }: { volume: CsiVolume; rules: DriverRules; can: Capable },
): Promise<PublishFacts> {
  const name = specName(spec);
  const persistent = volume.kind === "persistent" ? volume : undefined;
  const podNamespace = pod.metadata.namespace ?? "";
  const first = !can.stage && !isRemount;
  return {
    volume,
    handle: handleOf(volume, { podUid, specName: name }),
    stagingPath: persistent && can.stage ? deviceMountPath : "",
    targetPath: targetPathOf(context.paths, podUid, name),
    publishContext: persistent ? await publishContextOf(context, persistent, { rules, signal, first }) : {},
    secrets: await secretsOf(context, volume.publishSecret, {
      field: "NodePublishSecretRef",
      podNamespace,
      signal,
    }),
    podInfo: rules.podInfo ? podInfoOf(pod, { ephemeral: persistent === undefined }) : undefined,
    tokens: await tokensOf(context, pod, { rules, signal }),
    tokensInSecrets: rules.tokensInSecrets,
    traits: can,
    fsGroup,
    selinuxLabel: persistent ? selinuxLabel : undefined,
  };
}

async function callPublish(driver: CsiDriverClient, facts: PublishFacts, signal: AbortSignal): Promise<void> {
  const migrated = facts.volume.kind === "persistent" && facts.volume.migrated;
  await driver.call(Node.method.nodePublishVolume, publishRequest(facts), { signal, migrated });
}

async function prepareTarget(
  context: CsiContext,
  { spec, selinuxLabel }: SetUpRequest,
  { volume, handle, targetPath }: PublishFacts,
): Promise<void> {
  const { files } = context.host;
  const directory = dirname(targetPath);
  try {
    await files.makeDirectories(directory, 0o750);
    await writeRecord(files, directory, {
      specVolID: specName(spec),
      volumeHandle: handle,
      driverName: volume.driver,
      nodeName: context.nodeName,
      volumeLifecycleMode: lifecycleOf(volume),
      attachmentID: attachmentNameOf(context, { driver: volume.driver, handle }),
      ...(selinuxLabel ? { seLinuxMountContext: selinuxLabel } : {}),
    });
  } catch (error) {
    throw new VolumeError("final", `preparing ${targetPath}: ${messageOf(error)}`, { cause: error });
  }
}

/** What is or may be mounted already keeps its directory and its record, so that it can still be torn down. */
async function afterFailedPublish(
  context: CsiContext,
  failure: VolumeError,
  { spec, podUid, mayBeThere, isRemount }: SetUpRequest,
): Promise<VolumeError> {
  if (failure.outcome !== "final" || mayBeThere || isRemount) return failure;
  return forgetOr(context, failure, () =>
    removeTarget(context, targetPathOf(context.paths, podUid, specName(spec))),
  );
}

function groupApplies(
  volume: CsiVolume,
  { rules, can, request }: { rules: DriverRules; can: Capable; request: SetUpRequest },
): boolean {
  if (request.fsGroup === undefined) return false;
  if (rules.fsGroupPolicy === "") {
    throw transient(`failed to check fsGroup policy: CSIDriver ${volume.driver} has no fsGroupPolicy`, {
      blockedBy: [{ kind: "csi-driver-object", name: volume.driver }],
    });
  }
  // Walking a million files again because a token was renewed would hold up the volume for minutes (FIX 21).
  if (request.isRemount) return false;
  return wantsGroup(volume, { fsGroup: request.fsGroup, policy: rules.fsGroupPolicy, traits: can });
}

async function applyGroup(
  context: CsiContext,
  { pod, fsGroup = 0, fsGroupChangePolicy: policy, signal: stop, unwanted }: SetUpRequest,
  { handle, targetPath }: PublishFacts,
): Promise<void> {
  const { events = { record: () => undefined } } = context;
  try {
    await withEither([stop, unwanted], (signal) =>
      applyFsGroup({ ...context, events }, { path: targetPath, gid: fsGroup, policy, pod, signal }),
    );
  } catch (error) {
    throw new VolumeError("uncertain", `applyFSGroup failed for vol ${handle}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Where SELinux is on, filesystems that take labels say `seclabel`; one mounted with a context is labelled as a whole. */
async function relabelNeeded(
  { host }: CsiContext,
  path: string,
  label: string | undefined,
): Promise<boolean> {
  if (label) return false;
  try {
    const table = await host.mounts.table();
    for (let at = path; ; at = dirname(at)) {
      const point = table.at(at);
      if (point !== undefined) return point.options.includes("seclabel");
      if (at === dirname(at)) return false;
    }
  } catch (error) {
    throw new VolumeError("uncertain", `checking SELinux support of ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function lifecycleOf({ kind }: CsiVolume): "Persistent" | "Ephemeral" {
  return kind === "persistent" ? "Persistent" : "Ephemeral";
}

/** Unpublishing, and nothing left behind. Every failure leaves the record, so that the next try knows whose it is. */
export async function unpublish(context: CsiContext, request: TearDownRequest): Promise<void> {
  const targetPath = targetPathOf(context.paths, request.podUid, request.specName);
  const published = await publishedAs(context, request, targetPath);
  if (published !== undefined) {
    const message = { volumeId: published.handle, targetPath };
    try {
      await driverOf(context, published.driver).call(Node.method.nodeUnpublishVolume, message, {
        signal: request.signal,
      });
    } catch (error) {
      throw fromStep(error);
    }
  }
  await removeTarget(context, targetPath);
}

/** Undefined where neither a record nor a target was ever made, so that no driver was asked for anything. */
async function publishedAs(
  { host, log }: CsiContext,
  request: TearDownRequest,
  targetPath: string,
): Promise<{ driver: string; handle: string } | undefined> {
  const { volume, spec, podUid } = request;
  const lookup = await readRecord(host.files, dirname(targetPath));
  if (lookup.kind === "found")
    return { driver: lookup.record.driverName, handle: lookup.record.volumeHandle };
  if (lookup.kind === "missing" && (await isUntouched(host, targetPath))) return undefined;
  const csi = spec && csiVolumeOf(spec);
  const known =
    csi?.kind === "ephemeral"
      ? { driver: csi.driver, handle: ephemeralHandle(podUid, request.specName) }
      : (csi ?? namedBy(volume));
  if (known === undefined) {
    throw new VolumeError(
      "final",
      `unpublishing ${targetPath}: vol_data.json is ${lookup.kind} and nothing else says which driver to ask; unmount it by hand`,
    );
  }
  log.warn("csi record unusable, using what else is known", { volume, podUid, record: lookup.kind });
  return known;
}

async function isUntouched(host: CsiContext["host"], targetPath: string): Promise<boolean> {
  if (await host.mounts.isMountPoint(targetPath)) return false;
  return (await host.files.stat(targetPath)) === undefined;
}

/** Never recursive: what a driver left inside may be data. Still mounted is uncertain, and tried again (FIX 28). */
async function removeTarget(context: CsiContext, targetPath: string): Promise<void> {
  const { host } = context;
  const message = `${targetPath} is still mounted after NodeUnpublishVolume; it is tried again`;
  await refuseMounted(context, targetPath, message);
  const directory = dirname(targetPath);
  const left = await host.files.stat(targetPath);
  if (left?.kind === "directory") await host.files.removeDirectory(targetPath);
  else if (left !== undefined) await host.files.removeFile(targetPath);
  await removeRecord(host.files, directory);
  await host.files.removeDirectory(directory);
}

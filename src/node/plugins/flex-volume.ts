import { join } from "node:path";
import { flexOptionsJson, flexSourceOf, type FlexSource } from "../../volumes/plugins/flex-protocol.ts";
import { toVolumeName } from "../../volumes/names.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { NodeObjects } from "../objects.ts";
import { escapeName, type Paths } from "../paths.ts";
import type { DeviceSteps, NodePlugin, SetUpRequest } from "../plugin.ts";
import { createDiskRecords, mountedDisk } from "./disk-identity.ts";
import { growMounted, mountDisk } from "./disk-mount.ts";
import { hostFailure, hostStep, readFailure } from "./failures.ts";
import type { FlexNodeCall, FlexNodeDriver } from "./flex-call.ts";
import type { FlexCapabilities } from "./flex-capabilities.ts";
import { applyFsGroup, type FsGroupDeps } from "./fs-group.ts";
import { isReadOnly, PLAIN_TRAITS } from "./sources.ts";
import { filesystemStats } from "./stats.ts";

export interface FlexVolumeDeps extends FsGroupDeps {
  readonly paths: Paths;
  readonly objects: Pick<NodeObjects, "secret">;
  readonly call: FlexNodeDriver;
  /** What a driver is told where the node attaches for itself; "" where it never does. */
  readonly nodeName?: string;
}

/** One FlexVolume driver on a node. What it does not support is done the ordinary way: mount, bind, unmount. */
export function createFlexVolumePlugin(
  deps: FlexVolumeDeps,
  { driver, can }: { readonly driver: string; readonly can: FlexCapabilities },
): NodePlugin {
  const { host, paths, call, nodeName = "" } = deps;
  const stagingBase = join(paths.plugin("kubernetes.io/flexvolume"), driver, "mounts");
  const target = (podUid: string, name: string) => paths.podVolume(podUid, driver, name);
  const traits = {
    ...PLAIN_TRAITS,
    attachable: can.attach ? "yes" : "no",
    deviceMountable: can.attach,
    expandable: can.requiresFsResize,
  } as const;

  async function setUp(request: SetUpRequest) {
    const { spec, pod, podUid, fsGroup, fsGroupChangePolicy: policy, deviceMountPath, signal } = request;
    const source = sourceOrThrow(spec);
    const readOnly = isReadOnly(spec, source);
    const directory = target(podUid, specName(spec));
    const { options, secrets } = await mountOptions(deps, request, source, driver);
    const isNew = await mountBy(
      deps,
      directory,
      { verb: "mount", args: [directory, options], secrets, signal },
      () => bindFrom(host, { from: deviceMountPath, to: directory, readOnly }),
    );
    if (isNew && !readOnly && can.fsGroup && fsGroup !== undefined)
      await applyFsGroup(deps, { path: directory, gid: fsGroup, policy, pod, signal }).catch(
        (error: unknown) => deps.log.warn("group of a flexvolume not set", { directory, fsGroup, error }),
      );
    return { readOnly, managed: !readOnly && can.fsGroup, selinuxRelabel: can.selinuxRelabel };
  }

  const device: DeviceSteps = {
    mountPath: (spec) => join(stagingBase, escapeName(specName(spec))),
    async mount({ spec, devicePath, deviceMountPath: directory, signal }) {
      const source = sourceOrThrow(spec);
      const args = [directory, devicePath, flexOptionsJson(spec, source)];
      await mountBy(deps, directory, { verb: "mountdevice", args, signal }, async () => {
        if (devicePath === "") return;
        const options = isReadOnly(spec, source) ? ["ro"] : [];
        await mountDisk(deps, { source: devicePath, target: directory, type: source.fsType ?? "", options });
      });
    },
    async unmount({ deviceMountPath: directory, signal }) {
      await unmountBy(deps, directory, { verb: "unmountdevice", args: [directory], signal });
      await hostStep(directory, () => createDiskRecords(deps).remove(directory));
    },
  };

  return {
    name: driver,
    canSupport: (spec) => flexSourceOf(spec)?.driver === driver,
    volumeName: (spec) => specName(spec) || undefined,
    traits: () => traits,
    metricName: () => driver,
    mountPath: (spec, podUid) => target(podUid, specName(spec)),
    setUp,
    tearDown: ({ podUid, specName: name, signal }) =>
      unmountBy(deps, target(podUid, name), { verb: "unmount", args: [target(podUid, name)], signal }),
    ...(can.attach && { device, attach: { waitForAttach, attach, detach } }),
    async expand({ spec, devicePath, volumePath, newSizeBytes, oldSizeBytes, signal }) {
      const options = flexOptionsJson(spec, sourceOrThrow(spec));
      const args = [options, devicePath, volumePath, String(newSizeBytes), String(oldSizeBytes)];
      const answer = await call({ verb: "expandfs", args, signal });
      if (answer.kind === "success" || !(await hostStep(volumePath, () => mountedDisk(host, volumePath))))
        return;
      await hostStep(`grow ${volumePath}`, () => growMounted(host, volumePath));
    },
    ...(can.supportsMetrics && { stats: (request) => filesystemStats(host, request) }),
    reconstruct: async ({ specName: name }) => ({ spec: flexSpec(driver, name) }),
    async findStaged() {
      const mounted = (await host.mounts.table()).below(stagingBase);
      return mounted.map(({ path }) => {
        const name = path.slice(stagingBase.length + 1);
        return { volume: toVolumeName(driver, name), spec: flexSpec(driver, name), mode: "Filesystem", path };
      });
    },
  };

  async function attach({ spec, signal }: Pick<SetUpRequest, "spec" | "signal">): Promise<string> {
    const args = [flexOptionsJson(spec, sourceOrThrow(spec)), nodeName];
    const answer = await call({ verb: "attach", args, signal });
    return answer.kind === "success" ? answer.device : "";
  }

  async function detach({ spec, signal }: Pick<SetUpRequest, "spec" | "signal">): Promise<void> {
    await call({ verb: "detach", args: [specName(spec), nodeName], signal });
  }

  async function waitForAttach({ spec, devicePath, signal }: SetUpRequestLike): Promise<string> {
    const options = flexOptionsJson(spec, sourceOrThrow(spec));
    const answer = await call({ verb: "waitforattach", args: [devicePath, options], signal });
    return answer.kind === "success" && answer.device !== "" ? answer.device : devicePath;
  }
}

type SetUpRequestLike = Pick<SetUpRequest, "spec" | "devicePath" | "signal">;

function flexSpec(driver: string, name: string): VolumeSpec {
  return { kind: "inline", volume: { name, flexVolume: { driver } } };
}

function sourceOrThrow(spec: VolumeSpec): FlexSource {
  const source = flexSourceOf(spec);
  if (source === undefined) throw new VolumeError("final", `volume ${specName(spec)} is no FlexVolume`);
  return source;
}

/** Answers whether it mounted anything now. A failure that is final leaves no directory. */
async function mountBy(
  { host, call, log }: FlexVolumeDeps,
  directory: string,
  request: FlexNodeCall,
  otherwise: () => Promise<void>,
): Promise<boolean> {
  if (await hostStep(directory, () => host.mounts.isMountPoint(directory))) return false;
  try {
    await host.files.makeDirectories(directory, 0o750);
    const answer = await call(request);
    if (answer.kind === "not-supported") await otherwise();
    return true;
  } catch (error) {
    const failure = hostFailure(request.verb, error);
    if (failure.outcome !== "final") throw failure;
    // Unmounted by nobody: what the driver mounted before it failed is the driver's, and tear-down asks it.
    const isFree = await host.mounts.isMountPoint(directory).then(
      (isMounted) => !isMounted,
      () => false,
    );
    if (!isFree)
      throw new VolumeError(
        "uncertain",
        `${failure.message}; something is, or may be, mounted all the same`,
        {
          cause: failure,
        },
      );
    await host.files
      .removeDirectory(directory)
      .catch((reason: unknown) =>
        log.warn("directory of a failed mount stays", { directory, error: reason }),
      );
    throw failure;
  }
}

async function unmountBy(
  { host, call }: FlexVolumeDeps,
  directory: string,
  request: FlexNodeCall,
): Promise<void> {
  if ((await hostStep(directory, () => host.files.stat(directory))) === undefined) return;
  const answer = await call(request);
  await hostStep(`${request.verb} ${directory}`, async () => {
    if (answer.kind === "not-supported") await host.mounts.cleanUp(directory);
    else if (await host.mounts.isMountPoint(directory))
      throw new VolumeError(
        "uncertain",
        "the driver says it is unmounted, but it is mounted still; it is asked again",
      );
    else await host.files.removeDirectory(directory);
  });
}

async function bindFrom(
  host: Host,
  { from, to, readOnly }: { readonly from: string; readonly to: string; readonly readOnly: boolean },
): Promise<void> {
  if (from === "")
    throw new VolumeError(
      "final",
      "the driver supports neither mount nor attach, so there is nothing to mount",
    );
  await host.mounts.bind(from, to, readOnly ? ["ro"] : []);
}

/** What `mount` is told besides the volume's own options. Secrets go to the driver and nowhere else. */
async function mountOptions(
  { objects }: FlexVolumeDeps,
  { spec, pod, podUid, fsGroup, signal }: SetUpRequest,
  source: FlexSource,
  driver: string,
): Promise<{ readonly options: string; readonly secrets: readonly string[] }> {
  const { name = "", namespace = "" } = pod.metadata;
  const data = await secretData(objects, { source, namespace, driver, signal });
  const options = {
    ...(JSON.parse(flexOptionsJson(spec, source)) as Record<string, string>),
    ...Object.fromEntries(Object.entries(data).map(([key, value]) => [`kubernetes.io/secret/${key}`, value])),
    "kubernetes.io/pod.name": name,
    "kubernetes.io/pod.namespace": namespace,
    "kubernetes.io/pod.uid": podUid,
    "kubernetes.io/serviceAccount.name": pod.spec?.serviceAccountName ?? "",
    ...(fsGroup !== undefined && { "kubernetes.io/mounterArgs.FsGroup": String(fsGroup) }),
  };
  const encoded = Object.values(data);
  const secrets = [...encoded, ...encoded.map((value) => Buffer.from(value, "base64").toString())];
  return { options: JSON.stringify(options), secrets };
}

/** By key, in base64 as the API has it. A secret made for another driver is none of this one's business. */
async function secretData(
  objects: Pick<NodeObjects, "secret">,
  {
    source,
    namespace: podNamespace,
    driver,
    signal,
  }: { source: FlexSource; namespace: string; driver: string; signal: AbortSignal },
): Promise<Readonly<Record<string, string>>> {
  const { name, namespace = podNamespace }: { name?: string; namespace?: string } = source.secretRef ?? {};
  if (!name) return {};
  const of = { kind: "secret", namespace, name } as const;
  const secret = await objects.secret(namespace, name, signal).catch((error: unknown) => {
    throw readFailure(`couldn't get secret ${namespace}/${name}: `, error, of);
  });
  if (secret.type !== driver)
    throw new VolumeError(
      "transient",
      `secret ${namespace}/${name} is of type ${secret.type ?? "none"}, not ${driver}`,
      {
        blockedBy: [of],
      },
    );
  return secret.data ?? {};
}

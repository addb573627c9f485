import { join } from "node:path";
import { pods } from "../../kube/api/pod.ts";
import { referenceTo } from "../../kube/events/events.ts";
import { toVolumeName } from "../../volumes/names.ts";
import { specName, type PersistentSpec, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import { escapeName, type Paths } from "../paths.ts";
import type {
  BlockSteps,
  DeviceSteps,
  FoundVolume,
  NodePlugin,
  SetUpRequest,
  StagedVolume,
} from "../plugin.ts";
import { hostStep } from "./failures.ts";
import { applyFsGroup, type FsGroupDeps } from "./fs-group.ts";
import { createLanes } from "./lanes.ts";
import { createDiskRecords } from "./disk-identity.ts";
import { growMounted, mountDisk } from "./disk-mount.ts";
import { mountOnce } from "./mount-point.ts";
import { hasBackstep, isReadOnly, joinOptions, mountOptionsOf, PLAIN_TRAITS } from "./sources.ts";
import { deviceStats, filesystemStats } from "./stats.ts";
import { systemPathOf } from "./system-paths.ts";

const LOCAL = "kubernetes.io/local-volume";

export interface LocalDeps extends FsGroupDeps {
  readonly paths: Paths;
}

/** A directory or a disk of this node as a PersistentVolume. */
export function createLocalPlugin(deps: LocalDeps): NodePlugin {
  const { host, paths } = deps;
  const lanes = createLanes();
  const pathOf = (spec: VolumeSpec) => localOf(spec)?.path ?? "";
  const stagingBase = join(paths.plugin(LOCAL), "mounts");
  const stagingOf = (name: string) => join(stagingBase, escapeName(name));
  const target = (podUid: string, name: string) => paths.podVolume(podUid, LOCAL, name);

  /** Directories are bound as they are; a disk is mounted once for the node. */
  async function kindOf(spec: VolumeSpec): Promise<"directory" | "block"> {
    const path = pathOf(spec);
    if (path === "") throw new VolumeError("final", `local volume ${specName(spec)}: path is empty`);
    if (hasBackstep(path)) throw new VolumeError("final", `invalid path: ${path} must not contain '..'`);
    const kind = (await hostStep(`local volume ${path}`, () => host.files.statTarget(path)))?.kind;
    if (kind === undefined) throw new VolumeError("final", `path "${path}" does not exist`);
    if (kind !== "directory" && kind !== "block")
      throw new VolumeError("final", `path "${path}": only directory and block device are supported`);
    return kind;
  }

  const device: DeviceSteps = {
    mountPath: (spec) => stagingOf(specName(spec)),
    async mount({ spec, deviceMountPath }) {
      if ((await kindOf(spec)) === "directory") return;
      const type = localOf(spec)?.fsType ?? "ext4";
      const options = joinOptions(isReadOnly(spec, undefined) ? ["ro"] : [], mountOptionsOf(spec));
      await mountDisk(deps, { source: pathOf(spec), target: deviceMountPath, type, options });
    },
    async unmount({ deviceMountPath }) {
      // A directory was never mounted for the node, and what it is must not be removed.
      if (!deviceMountPath.startsWith(`${stagingBase}/`)) return;
      await hostStep(`unmount ${deviceMountPath}`, () => host.mounts.cleanUp(deviceMountPath));
      await hostStep(deviceMountPath, () => createDiskRecords(deps).remove(deviceMountPath));
    },
  };

  async function setUp(request: SetUpRequest) {
    const { spec, podUid } = request;
    const name = specName(spec);
    const source = (await kindOf(spec)) === "directory" ? pathOf(spec) : stagingOf(name);
    const readOnly = isReadOnly(spec, undefined);
    // One pod after the other: who is the first on a volume decides about its group.
    await lanes.run(source, request.signal, () =>
      bindFor(request, { source, target: target(podUid, name), readOnly }),
    );
    return { readOnly, managed: !readOnly, selinuxRelabel: true };
  }

  async function bindFor(request: SetUpRequest, bind: { source: string; target: string; readOnly: boolean }) {
    const { spec, pod, fsGroup, fsGroupChangePolicy: policy, signal, isRemount } = request;
    if (await host.mounts.isMountPoint(bind.target)) return;
    const others = fsGroup !== undefined && (await otherPodsOn(bind.source));
    if (fsGroup !== undefined && others) await warnOfGroup(request, bind.source, fsGroup);
    const options = joinOptions(bind.readOnly ? ["ro"] : [], mountOptionsOf(spec));
    await mountOnce(deps, { target: bind.target, what: `bind ${bind.source}` }, async () => {
      await host.mounts.bind(bind.source, bind.target, options);
      if (fsGroup === undefined || bind.readOnly || others || isRemount) return;
      const isDirectory = bind.source === pathOf(spec);
      if (isDirectory && (await isOfMachine(request, fsGroup))) return;
      await applyFsGroup(deps, { path: bind.target, gid: fsGroup, policy, pod, signal });
    });
  }

  /** By identity: the mount table knows a bound directory by its place in its filesystem, not by its path. */
  async function otherPodsOn(source: string): Promise<boolean> {
    const ofPods = (await host.mounts.table())
      .below(paths.pods)
      .filter(({ path }) => path.includes(`/${escapeName(LOCAL)}/`));
    if (ofPods.length === 0) return false;
    const identity = (await host.files.statTarget(source))?.identity;
    for (const { path } of ofPods)
      if ((await host.files.statTarget(path))?.identity === identity) return true;
    return false;
  }

  /** The machine keeps its own directories, and the pod's owner is told. */
  async function isOfMachine({ spec, pod }: SetUpRequest, fsGroup: number): Promise<boolean> {
    const path = pathOf(spec);
    const system = await hostStep(`local volume ${path}`, () => systemPathOf(deps, path));
    if (system === undefined) return false;
    const message =
      `fsGroup ${fsGroup} is not applied to volume ${specName(spec)}: ${path} is ${system === path ? "" : `${system} or lies in it, `}` +
      "a directory of the machine, whose files keep their owners. Use a directory of its own as spec.local.path.";
    const ref = referenceTo(pods, pod);
    deps.events.record({ ref, type: "Warning", reason: "VolumePermissionChangeSkipped", message });
    return true;
  }

  async function warnOfGroup({ spec, pod }: SetUpRequest, source: string, fsGroup: number): Promise<void> {
    const gid = (await host.files.statTarget(source))?.gid;
    if (gid === fsGroup) return;
    const message =
      `The requested fsGroup is ${fsGroup}, but the volume ${specName(spec)} has GID ${gid ?? "unknown"}. ` +
      "The volume may not be shareable.";
    deps.events.record({
      ref: referenceTo(pods, pod),
      type: "Warning",
      reason: "AlreadyMountedVolume",
      message,
    });
  }

  return {
    name: LOCAL,
    canSupport: (spec) => localOf(spec) !== undefined,
    volumeName: (spec) => specName(spec) || undefined,
    traits: () => ({ ...PLAIN_TRAITS, deviceMountable: true, mountOptions: true, expandable: true }),
    metricName: () => LOCAL,
    mountPath: (spec, podUid) => target(podUid, specName(spec)),
    setUp,
    tearDown: ({ podUid, specName: name }) =>
      hostStep(`unmount volume ${name}`, () => host.mounts.cleanUp(target(podUid, name))),
    device,
    block: localBlock(deps, kindOf),
    async expand({ spec, stagingPath }) {
      if (isBlock(spec) || (await kindOf(spec)) === "directory") return;
      await hostStep(`grow ${pathOf(spec)}`, () => growMounted(host, stagingPath));
    },
    stats: (request) => (isBlock(request.spec) ? deviceStats(host, request) : filesystemStats(host, request)),
    reconstruct: (found) => reconstruct(deps, stagingBase, found),
    findStaged: () => findStaged(deps, stagingBase),
  };
}

/** Pods cannot write one into themselves. */
function localOf(spec: VolumeSpec) {
  return spec.kind === "persistent" ? spec.volume.spec?.local : undefined;
}

function isBlock(spec: VolumeSpec): boolean {
  return spec.kind === "persistent" && spec.volume.spec?.volumeMode === "Block";
}

function localBlock(
  { paths }: LocalDeps,
  kindOf: (spec: VolumeSpec) => Promise<"directory" | "block">,
): BlockSteps {
  return {
    globalMapPath: (spec) =>
      join(paths.plugins, escapeName(LOCAL), "volumeDevices", escapeName(specName(spec))),
    podDeviceMap: (spec, podUid) => ({
      directory: join(paths.podDevices(podUid), escapeName(LOCAL)),
      name: escapeName(specName(spec)),
    }),
    stagingPath: () => "",
    async mapPodDevice({ spec }) {
      if ((await kindOf(spec)) !== "block")
        throw new VolumeError("final", `local volume ${specName(spec)}: its path is no block device`);
      return localOf(spec)?.path ?? "";
    },
  };
}

/**
 * A disk is known again by its mount for the node. A bound directory is not: its entry in the mount table does not
 * tell its path, so the ordinary mount adopts it, or it is taken down with no more than its name.
 */
async function reconstruct(
  { host }: LocalDeps,
  stagingBase: string,
  { path, specName: name, mode }: FoundVolume,
) {
  if (mode === "Block") return { spec: localSpec(name, "", mode) };
  const table = await host.mounts.table();
  const staged = table.references(path).find((other) => other.startsWith(`${stagingBase}/`));
  const source = staged === undefined ? undefined : table.at(staged)?.source;
  return source === undefined ? undefined : { spec: localSpec(name, source, mode) };
}

async function findStaged({ host }: LocalDeps, stagingBase: string): Promise<readonly StagedVolume[]> {
  const mounted = (await host.mounts.table()).below(stagingBase);
  return mounted.map(({ path, source }) => {
    const name = path.slice(stagingBase.length + 1);
    return {
      volume: toVolumeName(LOCAL, name),
      spec: localSpec(name, source, "Filesystem"),
      mode: "Filesystem",
      path,
    };
  });
}

function localSpec(name: string, path: string, volumeMode: "Filesystem" | "Block"): PersistentSpec {
  const volume = { metadata: { name }, spec: { local: { path }, volumeMode } };
  return { kind: "persistent", volume, readOnly: false, migrated: "none" };
}

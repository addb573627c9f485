import { join } from "node:path";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { escapeName, type Paths } from "../paths.ts";
import type { Host } from "../host.ts";
import type { BlockSteps, DeviceSteps, MountDeviceRequest, NodePlugin, SetUpRequest } from "../plugin.ts";
import { createDiskRecords, mountedDisk, type Disk } from "./disk-identity.ts";
import { claimDisk, mountDisk } from "./disk-mount.ts";
import { hostStep } from "./failures.ts";
import { applyFsGroup, type FsGroupDeps } from "./fs-group.ts";
import { mountOnce } from "./mount-point.ts";
import { isReadOnly, joinOptions, mountOptionsOf, PLAIN_TRAITS } from "./sources.ts";
import { deviceStats, filesystemStats } from "./stats.ts";

export interface DiskDeps extends FsGroupDeps {
  readonly paths: Paths;
}

/** What iscsi and fc have each for themselves; mounting the disk, binding it for pods and mapping it is the same. */
export interface DiskKind {
  readonly plugin: string;
  readonly fields: (
    spec: VolumeSpec,
  ) => { readonly fsType?: string; readonly readOnly?: boolean } | undefined;
  /** The volume's directory below the plugin's. */
  readonly directory: (spec: VolumeSpec) => string;
  /** The device by which the volume's disk is known now. */
  readonly find: (spec: VolumeSpec, signal: AbortSignal) => Promise<string>;
  /** Lets go of the devices of this disk; `wwid` is "" where it was never recorded. No path from before is told. */
  readonly release: (request: {
    readonly directory: string;
    readonly wwid: string;
    readonly signal: AbortSignal;
  }) => Promise<void>;
}

type DiskSteps = Pick<NodePlugin, "setUp" | "tearDown" | "mountPath" | "stats" | "traits"> & {
  readonly device: DeviceSteps;
  readonly block: BlockSteps;
};

export function diskSteps(deps: DiskDeps, kind: DiskKind): DiskSteps {
  const { host, paths } = deps;
  const base = paths.plugin(kind.plugin);
  const target = (podUid: string, name: string) => paths.podVolume(podUid, kind.plugin, name);
  const records = createDiskRecords(deps);

  async function release(directory: string, mounted: Disk | undefined, signal: AbortSignal): Promise<void> {
    const wwid = (await records.load(directory)) ?? mounted?.wwid ?? "";
    await kind.release({ directory, wwid, signal });
    await records.remove(directory);
  }

  /** The path that attaching answered may be of an earlier boot, so the disk is found anew. */
  async function mount({ spec, deviceMountPath, selinuxLabel, signal }: MountDeviceRequest): Promise<void> {
    const source = kind.fields(spec);
    const context = selinuxLabel ? [`context="${selinuxLabel}"`] : [];
    const options = joinOptions(isReadOnly(spec, source) ? ["ro"] : [], context, mountOptionsOf(spec));
    const devicePath = await hostStep(`find the disk of ${specName(spec)}`, () => kind.find(spec, signal));
    await mountDisk(
      deps,
      { source: devicePath, target: deviceMountPath, type: source?.fsType ?? "", options },
      { needsWwid: true },
    );
  }

  async function setUp({
    spec,
    pod,
    podUid,
    deviceMountPath,
    fsGroup,
    fsGroupChangePolicy: policy,
    selinuxLabel,
    isRemount,
    signal,
  }: SetUpRequest) {
    const readOnly = isReadOnly(spec, kind.fields(spec));
    const at = target(podUid, specName(spec));
    await mountOnce(deps, { target: at, what: `bind ${deviceMountPath}` }, async () => {
      await host.mounts.bind(deviceMountPath, at, joinOptions(readOnly ? ["ro"] : [], mountOptionsOf(spec)));
      if (fsGroup === undefined || readOnly || isRemount) return;
      await applyFsGroup(deps, { path: at, gid: fsGroup, policy, pod, signal });
    });
    return { readOnly, managed: !readOnly, selinuxRelabel: !selinuxLabel };
  }

  const device: DeviceSteps = {
    mountPath: (spec) => join(base, kind.directory(spec)),
    mount,
    async unmount({ deviceMountPath: directory, signal }) {
      await hostStep(`unmount ${directory}`, async () => {
        const mounted = await mountedDisk(host, directory);
        if ((await host.mounts.table()).at(directory) !== undefined) await host.mounts.unmount(directory);
        // The directory goes last: while it is there, a second attempt knows that the disk is still to be let go.
        await release(directory, mounted, signal);
        await host.files.removeTree(directory);
      });
    },
  };

  const block: BlockSteps = {
    globalMapPath: (spec) => join(base, "volumeDevices", kind.directory(spec)),
    podDeviceMap: (spec, podUid) => ({
      directory: join(paths.podDevices(podUid), escapeName(kind.plugin)),
      name: escapeName(specName(spec)),
    }),
    stagingPath: () => "",
    // Found anew for each pod: what the first step of the volume found may be another disk by now.
    mapPodDevice: ({ spec, signal }) =>
      hostStep(`map ${specName(spec)}`, async () => {
        const directory = join(base, "volumeDevices", kind.directory(spec));
        const path = await kind.find(spec, signal);
        return (await claimDisk(deps, { path, directory, needsWwid: true })).disk.devicePath;
      }),
    tearDownDevice: ({ globalMapPath: directory, signal }) =>
      hostStep(`release the disk of ${directory}`, () => release(directory, undefined, signal)),
  };

  return {
    setUp,
    tearDown: ({ podUid, specName: name }) =>
      hostStep(`unmount volume ${name}`, () => host.mounts.cleanUp(target(podUid, name))),
    mountPath: (spec, podUid) => target(podUid, specName(spec)),
    traits: () => ({
      ...PLAIN_TRAITS,
      attachable: "yes",
      deviceMountable: true,
      mountOptions: true,
      selinuxMount: true,
    }),
    stats: (request) =>
      request.spec.kind === "persistent" && request.spec.volume.spec?.volumeMode === "Block"
        ? deviceStats(host, request)
        : filesystemStats(host, request),
    device,
    block,
  };
}

export interface FoundDisk {
  /** The volume's directory, relative to the plugin's or to its `volumeDevices`. */
  readonly directory: string;
  readonly selinuxLabel?: string;
}

/** Which of the plugin's disks a pod's directory shows: another mount of it lies below the plugin's directory. */
export async function findMountedDisk(
  host: Host,
  base: string,
  path: string,
): Promise<FoundDisk | undefined> {
  const table = await host.mounts.table();
  const other = table.references(path).find((each) => each.startsWith(`${base}/`));
  if (other === undefined) return undefined;
  const context = table.at(other)?.options.find((option) => option.startsWith("context="));
  const label = context?.slice("context=".length).replaceAll('"', "");
  return { directory: other.slice(base.length + 1), ...(label ? { selinuxLabel: label } : {}) };
}

/** Which of them a pod's device link shows: the file with the pod's name in a map directory is the same device. */
export async function findMappedDisk(
  host: Host,
  maps: readonly string[],
  { path, podUid }: { readonly path: string; readonly podUid: string },
): Promise<string | undefined> {
  const wanted = (await host.files.statTarget(path))?.deviceNumber;
  if (wanted === undefined) return undefined;
  for (const map of maps)
    if ((await host.files.statTarget(join(map, podUid)))?.deviceNumber === wanted) return map;
  return undefined;
}

import { CsiError } from "../csi/errors.ts";
import { Node, type VolumeCapability } from "../csi/gen/csi_pb.ts";
import { serve, type ServedMethod } from "../csi/methods.ts";
import { HostError } from "../node/host.ts";
import { filesystemOn, newDisk, type Disk } from "../node/memory/disks.ts";
import { addDevice, removeDevice } from "../node/memory/mounts.ts";
import type { Device } from "../node/memory/tree.ts";
import type { Machine } from "./machine.ts";
import { nodeCapabilities, type NodeAbility } from "./san-abilities.ts";
import { serveIdentity, type San, type SanVolume } from "./san.ts";
import type { Storages } from "./storage.ts";

/** Disks of the storage system on one machine, as its kernel sees them: they come with a publish and go with its opposite. */
export class SanDisks {
  readonly #machine: Machine;
  readonly #nodeIds: () => readonly string[];
  readonly #san: San;
  readonly #storages: Storages;

  constructor(
    machine: Machine,
    { san, storages }: { readonly san: San; readonly storages: Storages },
    nodeIds: () => readonly string[],
  ) {
    this.#machine = machine;
    this.#san = san;
    this.#storages = storages;
    this.#nodeIds = nodeIds;
    storages.on({
      published: ({ handle }, node) => {
        const volume = san.volumes.get(handle);
        if (volume && nodeIds().includes(node) && machine.isOn) this.#appear(volume);
      },
      unpublished: ({ handle }, node) => {
        const volume = san.volumes.get(handle);
        if (volume && nodeIds().includes(node)) this.#disappear(volume);
      },
    });
    machine.onPowerOff(() => {
      for (const volume of san.volumes.values()) {
        const device = machine.host.tree.devices.get(this.pathOf(volume));
        if (device === undefined) continue;
        if (device.disk !== undefined) machine.loseDisk(device.disk);
        removeDevice(machine.host.tree, this.pathOf(volume));
      }
    });
  }

  /** Machines may share a computer, and have a node each below its /dev. */
  pathOf({ handle }: Pick<SanVolume, "handle">): string {
    return `/dev/san-${handle}@${this.#machine.name}`;
  }

  /** After a boot: what is published is seen again. */
  discover(): void {
    for (const volume of this.#san.volumes.values())
      if (this.#nodeIds().some((id) => volume.publishedOn.has(id))) this.#appear(volume);
  }

  /** Its filesystem was made here: from now on every node finds it there. */
  formatted(volume: SanVolume): void {
    const filesystem = filesystemOn(this.#machine.host.tree.devices.get(this.pathOf(volume))?.disk);
    if (filesystem !== undefined) volume.content = filesystem;
  }

  /** Another node may have made a filesystem on the disk since it came to this one. */
  reread(volume: SanVolume): void {
    const device = this.#machine.host.tree.devices.get(this.pathOf(volume));
    if (device !== undefined && filesystemOn(device.disk) === undefined) this.#read(volume, device);
  }

  /** Each kernel has a view of its own of the one disk: its number, and the filesystem by that number. */
  #read({ content }: SanVolume, { deviceNumber, sizeBytes, disk }: Device): void {
    if (content === undefined || disk === undefined) return;
    const { type, root, unsynced } = content;
    const filesystem = this.#machine.host.tree.newFilesystem(type, deviceNumber, sizeBytes);
    disk.content = { kind: "filesystem", filesystem: { ...filesystem, root, unsynced, disk } };
    disk.everMounted = true;
  }

  #appear(volume: SanVolume): void {
    const { tree } = this.#machine.host;
    if (tree.devices.has(this.pathOf(volume))) return;
    // Numbers are handed out again, as a kernel does: once nothing is mounted from the disk that had it, nor its node bound.
    const used = new Set([
      ...[...tree.devices.values()].map(({ deviceNumber }) => deviceNumber),
      ...tree.mounts.map(({ root, filesystem }) => root.device?.deviceNumber ?? filesystem.deviceNumber),
    ]);
    let number = 0;
    while (used.has(`8:${16 * number}`)) number++;
    const deviceNumber = `8:${16 * number}`;
    const sizeBytes = Number(volume.sizeBytes);
    const { blocks, unsyncedBlocks } = volume;
    const disk = { ...newDisk(sizeBytes), blocks, unsyncedBlocks };
    this.#storages.shows(disk, volume);
    const device: Device = { deviceNumber, sizeBytes, disk, openers: 0, wwid: volume.handle };
    this.#read(volume, device);
    addDevice(tree, this.pathOf(volume), device);
  }

  #disappear(volume: SanVolume): void {
    if (this.#nodeIds().some((id) => volume.publishedOn.has(id))) return;
    const { tree } = this.#machine.host;
    const device = tree.devices.get(this.pathOf(volume));
    // Who closes a disk for the last time writes what is left; here nobody has.
    if (device?.disk !== undefined && (device.openers > 0 || this.#isMounted(device.disk)))
      this.#machine.loseDisk(device.disk);
    volume.unsyncedBlocks.clear();
    removeDevice(tree, this.pathOf(volume));
  }

  #isMounted(disk: Disk): boolean {
    const filesystem = filesystemOn(disk);
    return filesystem !== undefined && this.#machine.host.tree.isUsed(filesystem);
  }
}

export interface SanNodeOptions {
  readonly nodeId: () => string;
  /** Asked at every call: a restart with another limit is an upgrade. */
  readonly limits: { readonly volumesMax: number };
  /** What the driver's present version cannot do; calls for it are refused. */
  readonly lacks: ReadonlySet<NodeAbility>;
}

/** What a request says of the volume. */
interface Attached {
  readonly volumeId: string;
  /** As the attach answered it. */
  readonly publishContext: Readonly<Record<string, string>>;
}

/** The CSI node service of the storage system on one machine. */
export function serveSanNode(
  machine: Machine,
  { san, disks }: { readonly san: San; readonly disks: SanDisks },
  { nodeId, limits, lacks }: SanNodeOptions,
): readonly ServedMethod[] {
  const { host } = machine;

  /** What was attached is named by the attach, and the kernel has the disk, or the call is refused. */
  function diskOf({ volumeId, publishContext }: Attached): SanVolume {
    const volume = san.volumes.get(volumeId);
    if (publishContext["disk"] === undefined)
      throw new CsiError("INVALID_ARGUMENT", `nobody has attached volume ${volumeId}: no disk is named`);
    return hasDisk(volume, volumeId);
  }

  function hasDisk(volume: SanVolume | undefined, volumeId: string): SanVolume {
    if (volume === undefined || !host.tree.devices.has(disks.pathOf(volume)))
      throw new CsiError("FAILED_PRECONDITION", `no disk of volume ${volumeId} on this node`);
    return volume;
  }

  function can(ability: NodeAbility): void {
    if (lacks.has(ability)) throw new CsiError("UNIMPLEMENTED", `this version has no ${ability}`);
  }

  /** Formats a blank one. */
  async function mount(
    volume: SanVolume,
    target: string,
    { type, options }: { readonly type: string; readonly options: readonly string[] },
  ): Promise<void> {
    if (await host.mounts.isMountPoint(target)) return;
    await host.files.makeDirectories(target, 0o750);
    disks.reread(volume);
    const mayFormat = volume.content === undefined;
    await host.mounts.formatAndMount({ source: disks.pathOf(volume), target, type, options, mayFormat });
    disks.formatted(volume);
    machine.mounted();
  }

  return [
    ...serveIdentity(),
    ...serve(Node, {
      nodeGetInfo: async () => ({ nodeId: nodeId(), maxVolumesPerNode: BigInt(limits.volumesMax) }),
      nodeGetCapabilities: async () => nodeCapabilities(lacks),
      nodeStageVolume: async ({ volumeId, publishContext, stagingTargetPath, volumeCapability }) => {
        can("STAGE_UNSTAGE_VOLUME");
        const volume = diskOf({ volumeId, publishContext });
        if (isMount(volumeCapability))
          await translated(() =>
            mount(volume, stagingTargetPath, { type: typeOf(volumeCapability), options: [] }),
          );
        return {};
      },
      nodeUnstageVolume: async ({ stagingTargetPath }) => {
        can("STAGE_UNSTAGE_VOLUME");
        await unmount(stagingTargetPath);
        return {};
      },
      nodePublishVolume: async (request) => {
        const { volumeId, targetPath, stagingTargetPath, volumeCapability, readonly } = request;
        const volume = diskOf(request);
        await translated(async () => {
          if (await host.mounts.isMountPoint(targetPath)) return;
          const options = readonly ? ["ro"] : [];
          // A version that stages nothing mounts the disk where the pod has it.
          if (isMount(volumeCapability) && stagingTargetPath === "")
            await mount(volume, targetPath, { type: typeOf(volumeCapability), options });
          else if (isMount(volumeCapability)) {
            if (!(await host.mounts.isMountPoint(stagingTargetPath)))
              throw new CsiError("FAILED_PRECONDITION", `${volumeId} is not staged at ${stagingTargetPath}`);
            await host.files.makeDirectories(targetPath, 0o750);
            await host.mounts.bind(stagingTargetPath, targetPath, options);
          } else {
            await host.files.makeFile(targetPath, 0o600);
            await host.mounts.bind(disks.pathOf(volume), targetPath, options);
          }
          machine.mounted();
        });
        return {};
      },
      nodeUnpublishVolume: async ({ targetPath }) => {
        await unmount(targetPath);
        return {};
      },
      nodeExpandVolume: async ({ volumeId, capacityRange }) => {
        can("EXPAND_VOLUME");
        const volume = hasDisk(san.volumes.get(volumeId), volumeId);
        const device = host.tree.devices.get(disks.pathOf(volume));
        if (device !== undefined) device.sizeBytes = Number(volume.sizeBytes);
        const filesystem = filesystemOn(device?.disk);
        if (filesystem !== undefined) filesystem.sizeBytes = Number(volume.sizeBytes);
        return { capacityBytes: capacityRange?.requiredBytes ?? volume.sizeBytes };
      },
    }),
  ];

  async function unmount(path: string): Promise<void> {
    await translated(async () => {
      if (await host.mounts.isMountPoint(path)) await host.mounts.unmount(path);
    });
  }
}

function isMount(capability: VolumeCapability | undefined): boolean {
  return capability?.accessType.case === "mount";
}

function typeOf(capability: VolumeCapability | undefined): string {
  return (capability?.accessType.case === "mount" && capability.accessType.value.fsType) || "ext4";
}

async function translated(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof HostError) throw new CsiError("INTERNAL", error.message, { cause: error });
    throw error;
  }
}

import type { Node } from "../../kube/api/node.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { WaitingReason as NodeReason } from "../../node/waiting.ts";
import { volumeAttachmentName } from "../../volumes/names.ts";
import { reportedWaits, type ReportedWait } from "../reported-waits.ts";
import type { SimNode, World } from "../world.ts";
import { mountedOn } from "./node-status.ts";

/** What is so at this instant, whoever knows it: from the store, the storage system and the machines. */
export class Facts {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  claim(name: string, namespace: string): PersistentVolumeClaim | undefined {
    return this.#world.objects.get("persistentvolumeclaims", name, namespace);
  }

  volume(name: string): PersistentVolume | undefined {
    return this.#world.objects.get("persistentvolumes", name);
  }

  node(name: string): Node | undefined {
    return this.#world.objects.get("nodes", name);
  }

  /** `namespace/name`. */
  pod(key: string): Pod | undefined {
    const [namespace = "", name = ""] = key.split("/");
    return this.#world.objects.get("pods", name, namespace);
  }

  podByUid(uid: string): Pod | undefined {
    return this.#world.objects.all("pods").find(({ metadata }) => metadata.uid === uid);
  }

  attachment(name: string): VolumeAttachment | undefined {
    return this.#world.objects.get("volumeattachments.storage.k8s.io", name);
  }

  /** Those of one disk on one node, and those of which nobody can tell any more what they are for. */
  attachmentsOn(node: string, handle: string): readonly VolumeAttachment[] {
    return this.#world.objects
      .all("volumeattachments.storage.k8s.io")
      .filter((attachment) => attachment.spec.nodeName === node)
      .filter((attachment) => [undefined, handle].includes(this.handleOf(attachment)));
  }

  /**
   * Whether one on that node says that it is for the disk, by its PersistentVolume, its record or its name. Where they differ an
   * attacher of ours goes by the record, and one that records nothing by the PersistentVolume: nobody can tell which comes next.
   */
  isClaimedOn(node: string, handle: string): boolean {
    const source = { driver: this.driverOf(handle) ?? "", volumeHandle: handle };
    const isNamed = ({ metadata, spec }: VolumeAttachment) =>
      metadata.name === volumeAttachmentName(source, node) ||
      this.volume(spec.source.persistentVolumeName ?? "")?.spec?.csi?.volumeHandle === handle;
    const there = this.#world.objects
      .all("volumeattachments.storage.k8s.io")
      .filter(({ spec }) => spec.nodeName === node);
    return there.some(isNamed) || this.attachmentsOn(node, handle).length > 0;
  }

  /** Which disk it is for; undefined where it does not say and its PersistentVolume is gone. */
  handleOf({ metadata, spec }: VolumeAttachment): string | undefined {
    const recorded = metadata.annotations?.["mooring.dev/volume-handle"];
    return recorded ?? this.volume(spec.source.persistentVolumeName ?? "")?.spec?.csi?.volumeHandle;
  }

  isRegistered(driver: string, node: string): boolean {
    const drivers = this.#world.objects.get("csinodes.storage.k8s.io", node)?.spec.drivers ?? [];
    return drivers.some(({ name }) => name === driver);
  }

  /** Whose volume it is; undefined once it is deleted. */
  driverOf(handle: string): string | undefined {
    return this.#world.storages.volumes.get(handle)?.driver;
  }

  isPublishedOn(handle: string, node: string): boolean {
    const { publishedOn } = this.#world.storages.volumes.get(handle) ?? {};
    return this.#nodeIds(node).some((id) => publishedOn?.has(id) === true);
  }

  isListedAttached(handle: string, node: string): boolean {
    const listed = this.node(node)?.status?.volumesAttached ?? [];
    return listed.some(({ name }) => isOf(name, handle));
  }

  isListedInUse(handle: string, node: string): boolean {
    return this.node(node)?.status?.volumesInUse?.some((name) => isOf(name, handle)) ?? false;
  }

  isReady(node: string): boolean {
    const ready = this.node(node)?.status?.conditions?.find(({ type }) => type === "Ready");
    return ready?.status === "True";
  }

  isMountedOn(handle: string, node: string): boolean {
    const machine = this.#world.nodes.get(node);
    if (machine === undefined) return false;
    return [...mountedOn(this.#world, machine)].some((volume) => volume.handle === handle);
  }

  /** Whether the same agent has another reason, or this one, for which the volume is there: it is judged by itself. */
  isWaitedWith(handle: string, wait: ReportedWait, reason?: NodeReason): boolean {
    return reportedWaits(this.#world).some(
      (other) =>
        other.process === wait.process &&
        other.handle === handle &&
        (reason === undefined ? other.reason !== wait.reason : other.reason === reason),
    );
  }

  /** Whether it repeats what the same agent says of another pod that has the volume, for this reason. */
  isQuoting(wait: ReportedWait, reason: NodeReason): boolean {
    return reportedWaits(this.#world).some(
      (other) =>
        other.process === wait.process &&
        other.handle === wait.handle &&
        other.podUid !== wait.podUid &&
        other.reason === reason &&
        wait.message.endsWith(`; ${other.message}`),
    );
  }

  /** Whether something of the machine does not answer, so that whoever asks it waits. */
  hangs(node: string): boolean {
    return (this.#world.nodes.get(node)?.machine.host.tree.hung.size ?? 0) > 0;
  }

  /** Whether a mount of the volume answers whoever looks at it with an error: its server or device is gone. */
  isBrokenOn(handle: string, node: string): boolean {
    const { machine } = this.#world.nodes.get(node) ?? {};
    if (machine === undefined) return false;
    const broken = machine.mounts.filter(({ path }) => machine.host.tree.isBroken(path));
    return broken.some((mount) => this.#world.storages.at(mount)?.handle === handle);
  }

  /** Whether a process of the machine has the volume, or a mount of it is kept busy, or nobody could tell. */
  isHeldOn(handle: string, node: string): boolean {
    const machine = this.#world.nodes.get(node);
    if (machine === undefined) return false;
    // Who looks for holders of a device sees every process of the computer, also one that another node on it runs.
    const here = [...this.#world.nodes.values()].filter(
      (other) => other.machine.host === machine.machine.host,
    );
    const runs = here
      .flatMap(({ containers }) => [...containers.running.values()])
      .some(({ volumes }) => volumes.some(({ volume }) => volume.handle === handle));
    return runs || this.#isBusy(machine) || this.hangs(node) || machine.machine.kernelFaults.rate > 0;
  }

  requestsUnderWay(process: string): number {
    return this.#world.processes.get(process)?.requestsUnderWay ?? 0;
  }

  #isBusy({ machine }: SimNode): boolean {
    return machine.host.kernel.held.size > 0;
  }

  #nodeIds(node: string): readonly string[] {
    return this.#world.nodes.get(node)?.nodeIds ?? [node];
  }
}

/** `kubernetes.io/csi/<driver>^<handle>`; no two drivers of the world have a handle in common. */
function isOf(name: string, handle: string): boolean {
  return name.slice(name.indexOf("^") + 1) === handle;
}

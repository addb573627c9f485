import type { Clock } from "../base/clock.ts";
import { pathsOf } from "../driver/context.ts";
import type { Host } from "../driver/host.ts";
import type { VolumeRecord } from "../driver/records.ts";
import { SINGLE_NODE_MODES } from "../driver/validate.ts";
import type { MemoryHost } from "../node/memory/host.ts";
import { DRIVER_NAME } from "../processes/up/defaults.ts";
import type { CopyOptions } from "./copies.ts";
import { createDriverHost } from "./driver-host.ts";
import { DRIVER_VIEW, mapCalls, type HostCall } from "./host-calls.ts";
import type { Storages, StoredVolume } from "./storage.ts";

export const LOOP_POOL = "/var/lib/mooring/pool";

interface LoopVolume extends StoredVolume {
  readonly publishedOn: Map<string, { readonly readonly: boolean }>;
  shared: boolean;
}

export interface LoopPoolDeps {
  readonly storages: Storages;
  /** Copies of images take their time by this one. */
  readonly clock: Clock;
  /** Told of every copy of a volume or snapshot when it is begun; to be called once it is done. */
  readonly beginCopy: (from: string, to: string, options: CopyOptions) => () => void;
  readonly reflink: boolean;
}

/** A file or a block of an image that is copied takes so long: others run meanwhile. */
const PART_MS = 3;

/**
 * The pool of the loop driver on the computer that all machines share, as others see it: what its records say at each
 * instant is the truth about its volumes. It does nothing itself; the driver's processes come and go.
 */
export class LoopPool {
  readonly #host: MemoryHost;
  /** Whether its filesystem copies a file in one step. Where it does not, a raw volume in use cannot be copied. */
  readonly reflink: boolean;
  readonly #deps: LoopPoolDeps;
  readonly #storages: Storages;
  readonly #volumes = new Map<string, LoopVolume>();

  constructor(host: MemoryHost, deps: LoopPoolDeps) {
    this.#host = host;
    this.#deps = deps;
    this.#storages = deps.storages;
    this.reflink = deps.reflink;
    host.kernel.storage.filesystem.reflink = deps.reflink;
    this.#makeDirectory("/var/lib/mooring");
  }

  /** The computer as a process of the driver sees it. */
  view(): Host {
    const copies = { clock: this.#deps.clock, partMs: PART_MS };
    return mapCalls(createDriverHost(this.#host, { copies }), DRIVER_VIEW, async (call, work) => {
      const copied = this.#beginCopy(call);
      const result = await work();
      copied?.();
      this.#notice(call);
      return result;
    });
  }

  /** The computer has lost its power: a record whose removal was not synced may be back. */
  reread(): void {
    const { volumes } = pathsOf({ stateDir: LOOP_POOL, nodeId: "", serves: "controller" });
    const there = this.#host.tree.walk(volumes, { follow: true })?.inode?.children.keys() ?? [];
    for (const id of new Set([...this.#volumes.keys(), ...there])) if (id.startsWith("vol-")) this.#look(id);
  }

  /** Somebody else has taken all that was left of the disk. */
  set isFull(isFull: boolean) {
    this.#host.kernel.storage.room.files = isFull ? 0 : Infinity;
  }

  /** Whether its records say that a volume is staged on the node, which nobody but the node's agent can change. */
  isStagedOn(nodeId: string): boolean {
    return this.#below(pathsOf({ stateDir: LOOP_POOL, nodeId, serves: "node" }).node).length > 0;
  }

  /** What is there although nothing should be: images of volumes that no PersistentVolume names, devices, records. */
  leftovers(handles: ReadonlySet<string>): readonly string[] {
    const below = (path: string) => this.#below(path);
    const { volumes, snapshots, nodes } = pathsOf({ stateDir: LOOP_POOL, nodeId: "", serves: "controller" });
    const records = below(nodes).flatMap((node) => below(`${nodes}/${node}`));
    return [
      ...below(volumes)
        .filter((id) => !handles.has(id))
        .map((id) => `${id} in the pool`),
      ...below(snapshots).map((id) => `${id} in the pool`),
      ...records.map((name) => `record ${name} of a node in the pool`),
      ...this.#host.kernel.loops.attached().map(({ path, backing }) => `${path} with ${backing?.path}`),
    ];
  }

  #below(path: string): readonly string[] {
    return [...(this.#host.tree.walk(path, { follow: true })?.inode?.children.keys() ?? [])];
  }

  #beginCopy({ name, args: [from, to] }: HostCall): (() => void) | undefined {
    if (name !== "images.copy" && name !== "images.clone") return undefined;
    const [, source] = /\/((?:vol|snap)-[^/]+)\/[^/]+$/.exec(String(from)) ?? [];
    const [, target] = /\/((?:vol|snap)-[^/]+)\.raw$/.exec(String(to)) ?? [];
    if (source === undefined || target === undefined) return undefined;
    return this.#deps.beginCopy(source, target, { atOnce: name === "images.clone" });
  }

  #notice({ name, args: [first, second] }: HostCall): void {
    const path = name === "files.rename" ? second : name === "files.removeFile" ? first : undefined;
    const [, id] = /\/volumes\/(vol-[^/]+)\/meta\.json$/.exec(typeof path === "string" ? path : "") ?? [];
    if (id !== undefined) this.#look(id);
  }

  #look(id: string): void {
    const path = `${LOOP_POOL}/volumes/${id}/meta.json`;
    const text = this.#host.tree.walk(path, { follow: true })?.inode?.bytes;
    if (text === undefined) this.#forget(id);
    else this.#remember(id, JSON.parse(Buffer.from(text).toString("utf8")) as VolumeRecord);
  }

  #remember(handle: string, { attachments }: VolumeRecord): void {
    const volume = this.#volumes.get(handle) ?? this.#add(handle);
    const image = this.#host.tree.walk(`${LOOP_POOL}/volumes/${handle}/image.raw`, { follow: true })?.inode;
    if (image?.disk !== undefined) this.#storages.shows(image.disk, volume);
    const before = [...volume.publishedOn.keys()];
    for (const { nodeId, readonly, capability } of attachments) {
      volume.shared = !SINGLE_NODE_MODES.has(capability.mode);
      volume.publishedOn.set(nodeId, { readonly });
      if (!before.includes(nodeId)) this.#storages.published(volume, nodeId);
    }
    for (const nodeId of before) {
      if (attachments.some((one) => one.nodeId === nodeId)) continue;
      volume.publishedOn.delete(nodeId);
      this.#storages.unpublished(volume, nodeId);
    }
  }

  #add(handle: string): LoopVolume {
    // An image stays below a mount, whoever unpublishes it.
    const isReachedFrom = () => true;
    const volume: LoopVolume = {
      ...{ driver: DRIVER_NAME, handle, shared: false, publishedOn: new Map(), isReachedFrom },
    };
    this.#volumes.set(handle, volume);
    this.#storages.add(volume);
    return volume;
  }

  #forget(handle: string): void {
    const volume = this.#volumes.get(handle);
    if (volume === undefined) return;
    this.#volumes.delete(handle);
    this.#storages.deleted(volume);
  }

  #makeDirectory(path: string): void {
    const { tree } = this.#host;
    const place = tree.walk(path, { follow: true });
    if (place?.inode === undefined) place?.parent.children.set(place.name, tree.newInode("directory", 0o755));
  }
}

import { createCaches, type Caches } from "../attach-detach/caches.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { nodes } from "../kube/api/node.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { ObjectKey } from "../kube/object.ts";
import { mayMultiAttach } from "../volumes/access.ts";
import { CSI_PLUGIN, csiVolumeName, type VolumeName } from "../volumes/names.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import { OriginalAttachments } from "./original-attachments.ts";
import { OriginalDesired, placeKey, type DesiredVolume, type Place } from "./original-desired.ts";
import { OriginalNodes } from "./original-nodes.ts";
import { OriginalOperations, type OperationKey } from "./original-operations.ts";

export interface OriginalControllerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
}

export interface OriginalControllerOptions {
  /** How long a node that is not healthy keeps a volume that no pod uses any more; the original's is 6 minutes. */
  readonly forceAfterMs: number;
}

/** A volume that is on a node, or may be. */
interface Attached extends Place {
  /** Unknown of what was attached before the start and is used by no pod. */
  spec: VolumeSpec | undefined;
  /** False where an attach or a detach has failed, or was under way before the start. */
  isConfirmed: boolean;
  undesiredSinceMs: number | undefined;
}

/** The original looks ten times as often. */
const LOOP_MS = 1_000;
const VERIFY_MS = 60_000;

/**
 * Upstream's attach/detach controller as a model: the same objects in the same order, so that ours can take over from it and hand
 * over to it. It is rebuilt from VolumeAttachments and node status at its start and has its clocks in memory; an attachment that
 * it is not sure of keeps no other node from being tried (W-1), which the attacher has to bear; one whose VolumeAttachment says not
 * attached it forgets (W-4).
 *
 * Checkers judge Mooring, so where the original endangers data by itself the model takes the careful branch: a healthy node is asked
 * also after 6 minutes (W-2), what forces is read from the server (W-3), a server that does not answer proves nothing (the rest of
 * W-4), only what is surely attached is listed (W-5), always the whole list (W-6), and time counts towards a force only while no
 * pod could have come and gone unseen. W-8 concerns names that nothing here has.
 */
export class OriginalController {
  readonly #deps: OriginalControllerDeps;
  readonly #options: OriginalControllerOptions;
  readonly #caches: Caches;
  readonly #nodes: OriginalNodes;
  readonly #attachments: OriginalAttachments;
  readonly #operations: OriginalOperations;
  readonly #attached = new Map<string, Attached>();
  /** What each node is to list as attached. */
  readonly #listed = new Map<string, Set<VolumeName>>();
  /** Nodes whose list has to be written. */
  readonly #unwritten = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: OriginalControllerDeps, options: OriginalControllerOptions) {
    const { client, clock, random } = deps;
    this.#deps = deps;
    this.#options = options;
    this.#caches = createCaches({ client, clock, random: random.fork("caches") });
    this.#nodes = new OriginalNodes({ client, clock, cache: this.#caches.nodes });
    this.#attachments = new OriginalAttachments({ client, clock, caches: this.#caches });
    this.#operations = new OriginalOperations(clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const caching = this.#caches.run(signal);
    try {
      await this.#caches.whenSynced(signal);
      await this.#work(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await Promise.all([caching, ...this.#running]);
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    this.#rebuild();
    const desired = new OriginalDesired(this.#caches, (place) => this.#resetTimer(place));
    this.#caches.pods.onGap(() => this.#resetTimers());
    this.#caches.nodes.addHandler(({ kind, object: { metadata } }) => {
      // A Node that was made again has no list.
      if (kind === "added" && this.#listed.has(metadata.name ?? "")) this.#unwritten.add(metadata.name ?? "");
    });
    for (let verifiedMs = clock.now(); ;) {
      const places = desired.places();
      await this.#detachUndesired(places, signal);
      this.#attachDesired(places, signal);
      for (const node of [...this.#unwritten]) await this.#writeList(node, signal);
      if (clock.now() - verifiedMs >= VERIFY_MS) {
        await this.#verify(signal);
        verifiedMs = clock.now();
      }
      await clock.sleep(LOOP_MS, signal);
    }
  }

  /** Node status first: a VolumeAttachment that no list knows was being attached or detached when the last controller ended. */
  #rebuild(): void {
    for (const { metadata, status } of this.#caches.nodes.objects())
      for (const { name } of status?.volumesAttached ?? []) {
        const place = { volume: name as VolumeName, node: metadata.name ?? "" };
        if (name.startsWith(`${CSI_PLUGIN}/`)) this.#markAttached(place, undefined);
      }
    for (const { spec } of this.#caches.attachments.objects()) {
      const volume = this.#caches.volumes.get((spec.source.persistentVolumeName ?? "") as ObjectKey);
      if (volume?.spec?.csi === undefined) continue;
      const place = { volume: csiVolumeName(volume.spec.csi), node: spec.nodeName };
      const found: VolumeSpec = { kind: "persistent", volume, readOnly: false, migrated: "none" };
      if (!this.#attached.has(placeKey(place))) this.#markUncertain(place, found);
    }
    this.#unwritten.clear();
  }

  async #detachUndesired(desired: ReadonlyMap<string, DesiredVolume>, signal: AbortSignal): Promise<void> {
    for (const attached of [...this.#attached.values()]) {
      const key = keyFor(attached, attached.spec);
      if (desired.has(placeKey(attached)) || !this.#operations.mayStart("detach", key)) continue;
      attached.undesiredSinceMs ??= this.#deps.clock.now();
      const isForced = await this.#mayForce(attached, signal).catch(() => false);
      const node = this.#nodes.get(attached.node);
      if (!isForced && this.#nodes.mayUse(node, attached, this.#attachments.cached(attached))) continue;
      this.#unlist(attached);
      if (await this.#writeList(attached.node, signal))
        this.#start("detach", key, () => this.#detach(attached, isForced, signal));
      else if (attached.isConfirmed) this.#list(attached);
    }
  }

  async #mayForce({ node, undesiredSinceMs = Infinity }: Attached, signal: AbortSignal): Promise<boolean> {
    const isExpired = this.#deps.clock.now() - undesiredSinceMs > this.#options.forceAfterMs;
    const isForce = (known: Parameters<OriginalNodes["reasonToForce"]>[0]) =>
      this.#nodes.reasonToForce(known, isExpired) !== undefined;
    if (!isForce(this.#nodes.get(node)) || this.#caches.pods.watchedMs() === 0) return false;
    return isForce(await this.#nodes.live(node, signal));
  }

  async #detach(attached: Attached, isForced: boolean, signal: AbortSignal): Promise<void> {
    try {
      const attachment = await this.#attachments.find(attached, signal);
      const node = isForced ? undefined : await this.#nodes.live(attached.node, signal);
      if (!isForced && this.#nodes.mayUse(node, attached, attachment))
        throw new Error("volume is still in use by node, according to Node status");
      await this.#attachments.detach(attached, signal);
      this.#attached.delete(placeKey(attached));
    } catch (error) {
      attached.isConfirmed = false;
      throw error;
    }
  }

  #attachDesired(desired: ReadonlyMap<string, DesiredVolume>, signal: AbortSignal): void {
    for (const one of desired.values()) {
      const key = keyFor(one, one.spec);
      if (this.#operations.isRunning(key)) continue;
      const attached = this.#attached.get(placeKey(one));
      this.#resetTimer(one);
      if (attached?.isConfirmed === true) attached.spec ??= one.spec;
      else if (!this.#isHeldElsewhere(one) && this.#operations.mayStart("attach", key))
        this.#start("attach", key, () => this.#attach(one, signal));
    }
  }

  async #attach(desired: DesiredVolume, signal: AbortSignal): Promise<void> {
    try {
      await this.#attachments.attach(desired, signal);
      this.#markAttached(desired, desired.spec);
    } catch (error) {
      this.#markUncertain(desired, desired.spec);
      throw error;
    }
  }

  #isHeldElsewhere({ volume, node, spec }: DesiredVolume): boolean {
    if (mayMultiAttach(spec)) return false;
    return [...this.#attached.values()].some(
      (other) => other.volume === volume && other.node !== node && other.isConfirmed,
    );
  }

  async #verify(signal: AbortSignal): Promise<void> {
    for (const attached of [...this.#attached.values()]) {
      if (!attached.isConfirmed || attached.spec === undefined) continue;
      if (this.#operations.isRunning(keyFor(attached, attached.spec))) continue;
      const attachment = await this.#attachments.find(attached, signal).catch(() => "unknown" as const);
      if (attachment === "unknown" || attachment?.status?.attached === true) continue;
      this.#attached.delete(placeKey(attached));
      this.#unlist(attached);
    }
  }

  #start(name: "attach" | "detach", key: OperationKey, work: () => Promise<void>): void {
    const running = this.#operations.run(name, key, work).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #markAttached(place: Place, spec: VolumeSpec | undefined): void {
    const known = this.#attached.get(placeKey(place));
    const { volume, node } = place;
    if (known === undefined)
      this.#attached.set(placeKey(place), {
        ...{ volume, node, spec, isConfirmed: true, undesiredSinceMs: undefined },
      });
    else Object.assign(known, { spec, isConfirmed: true });
    this.#list(place);
  }

  #markUncertain(place: Place, spec: VolumeSpec): void {
    const { volume, node } = place;
    const { undesiredSinceMs } = this.#attached.get(placeKey(place)) ?? {};
    this.#attached.set(placeKey(place), { volume, node, spec, isConfirmed: false, undesiredSinceMs });
  }

  #resetTimer(place: Place): void {
    const attached = this.#attached.get(placeKey(place));
    if (attached !== undefined) attached.undesiredSinceMs = undefined;
  }

  /** Pods may have come and gone unseen. */
  #resetTimers(): void {
    for (const attached of this.#attached.values()) attached.undesiredSinceMs = undefined;
  }

  #list({ volume, node }: Place): void {
    const listed = this.#listed.get(node) ?? new Set();
    this.#listed.set(node, listed.add(volume));
    this.#unwritten.add(node);
  }

  #unlist({ volume, node }: Place): void {
    if (this.#listed.get(node)?.delete(volume) === true) this.#unwritten.add(node);
  }

  /** Answers whether the node lists what it is to list; one that does not exist lists nothing. */
  async #writeList(node: string, signal: AbortSignal): Promise<boolean> {
    if (!this.#unwritten.delete(node) || this.#nodes.get(node) === undefined) return true;
    const volumes = [...(this.#listed.get(node) ?? [])].map((name) => ({ name, devicePath: "" }));
    const value = { status: { volumesAttached: volumes.length === 0 ? null : volumes } };
    const options = { subresource: "status", signal } as const;
    try {
      await this.#deps.client.patch(nodes, { name: node }, { type: "strategic", value }, options);
      return true;
    } catch (error) {
      if (isKubeError(error, "NotFound")) return true;
      this.#unwritten.add(node);
      return false;
    }
  }
}

/** Of a volume for one node, one operation at a time in the whole cluster. */
function keyFor({ volume, node }: Place, spec: VolumeSpec | undefined): OperationKey {
  return { volume, node: spec === undefined || mayMultiAttach(spec) ? node : undefined };
}

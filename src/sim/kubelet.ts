import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { createInformer, type Informer } from "../kube/informer/informer.ts";
import type { VolumeName } from "../volumes/names.ts";
import { volumesOfPod } from "./kubelet-volumes.ts";

export interface KubeletDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
}

export interface KubeletOptions {
  readonly node: string;
  /** From noticing that `volumesInUse` is not right to writing it; the real one takes up to 10 s. */
  readonly statusLatencyMs?: number;
  /** From a pod's deletion to the end of its containers. */
  readonly terminateMs?: number;
}

export interface MountRecord {
  readonly what: "mount" | "unmount";
  readonly volume: VolumeName;
  readonly node: string;
  readonly atMs: number;
}

/** What a pod is to its kubelet, besides what the API says. */
type PodPhase = "starting" | "running" | "stopping" | "stopped";

/** Claims are not watched here: a pod that waits for one is looked at again after this. */
const RETRY_MS = 1_000;

/**
 * The kubelet of one node, as far as volumes go. It keeps its side of the handshake: a volume is in `volumesInUse`
 * on the server before `volumesAttached` is looked at, is mounted only when listed there, and leaves `volumesInUse`
 * only after it was unmounted. Mounts outlive a stop, as they outlive the process.
 */
export class SimKubelet {
  readonly node: string;
  /** Oldest first; grows with every mount, of which a simulation makes hundreds. */
  readonly records: MountRecord[] = [];
  readonly #deps: KubeletDeps;
  readonly #statusLatencyMs: number;
  readonly #terminateMs: number;
  readonly #mounted = new Set<VolumeName>();
  readonly #phases = new Map<string, PodPhase>();
  /** By uid of a running pod: what it uses, still so for `terminateMs` after its object has vanished. */
  readonly #held = new Map<string, readonly VolumeName[]>();
  readonly #listeners = new Set<(record: MountRecord) => void>();
  #pods: Informer<Pod> | undefined;
  #wake: (() => void) | undefined;
  #marked = false;
  #running = false;

  constructor(deps: KubeletDeps, { node, statusLatencyMs = 0, terminateMs = 0 }: KubeletOptions) {
    this.#deps = deps;
    this.node = node;
    this.#statusLatencyMs = statusLatencyMs;
    this.#terminateMs = terminateMs;
  }

  /** False before `run` and after its signal aborted: then nobody guards what is mounted. */
  get running(): boolean {
    return this.#running;
  }

  get mounted(): ReadonlySet<VolumeName> {
    return this.#mounted;
  }

  onMount(listener: (record: MountRecord) => void): void {
    this.#listeners.add(listener);
  }

  /** The machine was off: what was mounted is not any more, and no container runs. */
  reboot(): void {
    assert(!this.#running, `kubelet of ${this.node}: it is stopped before its machine goes down`);
    this.#phases.clear();
    this.#held.clear();
    this.#unmountUnused(new Set());
  }

  async run(signal: AbortSignal): Promise<void> {
    const own = { resource: pods, fieldSelector: `spec.nodeName=${this.node}` };
    this.#pods = createInformer<Pod>(this.#deps, own);
    const self = createInformer<Node>(this.#deps, {
      resource: nodes,
      fieldSelector: `metadata.name=${this.node}`,
    });
    this.#pods.addHandler(() => this.#mark());
    self.addHandler(() => this.#mark());
    this.#running = true;
    const onAbort = () => {
      this.#running = false;
      this.#mark();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    await Promise.all([this.#pods.run(signal), self.run(signal), this.#loop(this.#pods, signal)]);
  }

  async #loop(informer: Informer<Pod>, signal: AbortSignal): Promise<void> {
    await informer.whenSynced(signal).catch(() => undefined);
    while (!signal.aborted) {
      this.#marked = false;
      try {
        await this.#sync([...informer.objects()], signal);
      } catch {
        this.#retryLater();
      }
      await this.#nextMark();
    }
  }

  #mark(): void {
    this.#marked = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  async #nextMark(): Promise<void> {
    if (!this.#marked) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  #retryLater(): void {
    this.#deps.clock.after(RETRY_MS, () => this.#mark());
  }

  /** One round: unmount, tell the server, look what it says is attached, mount, and move the pods on. */
  async #sync(own: readonly Pod[], signal: AbortSignal): Promise<void> {
    this.#forgetVanished(own);
    const wanted = new Map<Pod, readonly VolumeName[]>();
    for (const pod of own) {
      if (this.#phaseOf(pod) === "stopped") {
        this.#held.delete(pod.metadata.uid ?? "");
        continue;
      }
      const volumes = await volumesOfPod(this.#deps.client, pod);
      if (volumes.kind === "unknown") this.#retryLater();
      else wanted.set(pod, volumes.attachable);
    }
    signal.throwIfAborted();
    const used = new Set([...wanted.values(), ...this.#held.values()].flat());
    // What cannot be told right now may still need what is mounted.
    const allKnown = wanted.size === own.filter((pod) => this.#phaseOf(pod) !== "stopped").length;
    if (allKnown) this.#unmountUnused(used);
    const stopped = own.filter((pod) => this.#phaseOf(pod) === "stopped");
    const node = await this.#report([...new Set([...used, ...this.#mounted])].sort(), signal);
    if (node === undefined) return;
    const attached = new Set(node.status?.volumesAttached?.map(({ name }) => name));
    for (const volume of [...wanted.values()].flat()) if (attached.has(volume)) this.#mount(volume);
    for (const [pod, volumes] of wanted) await this.#advance(pod, volumes);
    for (const pod of stopped) await this.#finish(pod);
  }

  #forgetVanished(own: readonly Pod[]): void {
    const uids = new Set(own.map(({ metadata }) => metadata.uid));
    for (const [uid, phase] of this.#phases) {
      if (uids.has(uid) || phase === "stopping") continue;
      if (phase === "running" && this.#terminateMs > 0) {
        this.#phases.set(uid, "stopping");
        this.#deps.clock.after(this.#terminateMs, () => this.#drop(uid));
      } else this.#drop(uid);
    }
  }

  #drop(uid: string): void {
    this.#phases.delete(uid);
    this.#held.delete(uid);
    this.#mark();
  }

  #phaseOf({ metadata, status }: Pod): PodPhase {
    if (status?.phase === "Succeeded" || status?.phase === "Failed") return "stopped";
    return this.#phases.get(metadata.uid ?? "") ?? "starting";
  }

  #unmountUnused(used: ReadonlySet<VolumeName>): void {
    for (const volume of [...this.#mounted]) {
      if (used.has(volume)) continue;
      this.#mounted.delete(volume);
      this.#note("unmount", volume);
    }
  }

  #mount(volume: VolumeName): void {
    if (this.#mounted.has(volume)) return;
    this.#mounted.add(volume);
    this.#note("mount", volume);
  }

  #note(what: MountRecord["what"], volume: VolumeName): void {
    const record = { what, volume, node: this.node, atMs: this.#deps.clock.now() };
    this.records.push(record);
    for (const listener of this.#listeners) listener(record);
  }

  /** The node as it was when `volumesInUse` was what it should be, so a look at `volumesAttached` comes after. */
  async #report(inUse: readonly VolumeName[], signal: AbortSignal): Promise<Node | undefined> {
    const { client, clock } = this.#deps;
    const ref = { name: this.node };
    try {
      const node = await client.get(nodes, ref, { signal });
      if (sameNames(node.status?.volumesInUse ?? [], inUse)) return node;
      if (this.#statusLatencyMs > 0) await clock.sleep(this.#statusLatencyMs, signal);
      signal.throwIfAborted();
      const value = { status: { volumesInUse: inUse } };
      return await client.patch(nodes, ref, { type: "merge", value }, { subresource: "status", signal });
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async #advance(pod: Pod, volumes: readonly VolumeName[]): Promise<void> {
    const { uid = "", deletionTimestamp } = pod.metadata;
    const phase = this.#phaseOf(pod);
    if (deletionTimestamp !== undefined) {
      if (phase === "stopping") return;
      this.#phases.set(uid, "stopping");
      if (phase === "running" && this.#terminateMs > 0)
        this.#deps.clock.after(this.#terminateMs, () => void this.#stop(pod));
      else await this.#stop(pod);
    } else if (phase === "starting" && volumes.every((volume) => this.#mounted.has(volume))) {
      this.#phases.set(uid, "running");
      this.#held.set(uid, volumes);
      await this.#writeStatus(pod, "Running", { running: { startedAt: this.#time() } });
    }
  }

  async #stop(pod: Pod): Promise<void> {
    if (!this.#running || !this.#phases.has(pod.metadata.uid ?? "")) return;
    this.#phases.set(pod.metadata.uid ?? "", "stopped");
    this.#held.delete(pod.metadata.uid ?? "");
    const ended = { exitCode: 0, finishedAt: this.#time() };
    await this.#writeStatus(pod, pod.status?.phase ?? "Pending", { terminated: ended }).catch(
      () => undefined,
    );
    this.#mark();
  }

  /** A pod that is going is removed once nothing of it is left on the node. */
  async #finish({ metadata }: Pod): Promise<void> {
    if (metadata.deletionTimestamp === undefined) return;
    const ref = { name: metadata.name ?? "", namespace: metadata.namespace };
    const preconditions = { uid: metadata.uid ?? "" };
    try {
      await this.#deps.client.delete(pods, ref, { gracePeriodSeconds: 0, preconditions });
    } catch (error) {
      if (!isKubeError(error, "NotFound", "Conflict")) throw error;
    }
  }

  async #writeStatus(pod: Pod, phase: string, state: object): Promise<void> {
    const containerStatuses = pod.spec?.containers.map(({ name }) => ({
      name,
      image: "",
      imageID: "",
      ready: phase === "Running",
      restartCount: 0,
      state,
    }));
    const ref = { name: pod.metadata.name ?? "", namespace: pod.metadata.namespace };
    const value = { metadata: { uid: pod.metadata.uid }, status: { phase, containerStatuses } };
    await this.#deps.client.patch(pods, ref, { type: "merge", value }, { subresource: "status" });
  }

  #time(): string {
    return this.#deps.clock
      .wall()
      .toISOString()
      .replace(/\.\d+Z$/, "Z");
  }
}

function sameNames(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && new Set([...some, ...others]).size === some.length;
}

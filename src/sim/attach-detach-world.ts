import { createLogger, type LogFields, type Logger } from "../base/log.ts";
import { DEFAULT_OPTIONS, type AttachDetachOptions } from "../attach-detach/options.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { events } from "../kube/api/event.ts";
import type { TransportRequest } from "../kube/transport/transport.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import { AttachDetachProcess, type SimLease } from "./attach-detach-process.ts";
import { createAttachmentChecker } from "./attachment-checker.ts";
import { BareStorage } from "./bare-storage.ts";
import { SimCluster, type PodSketch, type VolumeSketch } from "./cluster.ts";
import type { NodeSketch } from "./cluster-objects.ts";
import { SimExternalAttacher } from "./external-attacher.ts";
import type { NetworkFaults } from "./faulty-transport.ts";
import { HandAttacher } from "./hand-attacher.ts";
import { SimKubelet, type KubeletOptions } from "./kubelet.ts";
import { toRequestLine } from "./request-lines.ts";
import type { Mishap } from "./scripted-transport.ts";

export interface WorldSketch {
  readonly seed?: number;
  readonly nodes?: Readonly<Record<string, NodeSketch>> | readonly string[];
  /** Only those that differ from an ordinary ReadWriteOnce volume; `uses` creates the others. */
  readonly volumes?: Readonly<Record<string, VolumeSketch>>;
  readonly pods?: Readonly<Record<string, PodSketch>>;
  readonly drivers?: Readonly<Record<string, { readonly attachRequired?: boolean }>>;
  readonly attachments?: readonly AttachmentSketch[];
  /** `by-hand`: the test writes the status of VolumeAttachments, through `world.hand`. */
  readonly attacher?: "auto" | "by-hand";
  /** Every node gets a kubelet; without, the test writes `volumesInUse`. */
  readonly kubelets?: boolean | Omit<KubeletOptions, "node">;
  readonly options?: Partial<AttachDetachOptions>;
  readonly plugins?: readonly AttachablePlugin[];
  /** What goes wrong between the controller and the server by chance; asked at every step. */
  readonly network?: () => NetworkFaults;
  /** Whether controllers hold a Lease, whose renewals carry a note; they do unless told otherwise. */
  readonly elected?: boolean;
  /** False leaves the start of the controller to the test. */
  readonly started?: boolean;
}

export interface AttachmentSketch {
  readonly volume: string;
  readonly node: string;
  readonly attached?: boolean;
  readonly held?: boolean;
  readonly source?: VolumeAttachment["spec"]["source"];
}

/** Below the first back-off of 500 ms, so that settling never includes a retry. */
const SETTLE_MS = 400;

/** What is attached is surely younger than its node, as it nearly always is. */
const FIRST_ATTACH_MS = 10_000;

/** A cluster with one attach/detach controller in it, as sketched, after everything has come to rest. */
export async function given(sketch: WorldSketch = {}): Promise<AttachDetachWorld> {
  const world = new AttachDetachWorld(sketch);
  await world.populate();
  if (sketch.started !== false) world.startController();
  await world.settle();
  return world;
}

export class AttachDetachWorld extends SimCluster {
  readonly storages = new BareStorage((volume) => this.isShared(this.labels.volume(volume)));
  readonly hand: HandAttacher;
  readonly lease: SimLease = {};
  readonly log: { message: string; fields: LogFields }[] = [];
  readonly #sketch: WorldSketch;
  readonly #attachers = new Map<string, SimExternalAttacher>();
  readonly #kubelets = new Map<string, { kubelet: SimKubelet; stop: AbortController }>();
  readonly #checker = createAttachmentChecker(this);
  readonly #processes: AttachDetachProcess[] = [];
  #options: Partial<AttachDetachOptions>;
  #forgotten = 0;

  constructor(sketch: WorldSketch) {
    super({ ...sketch, settleMs: SETTLE_MS });
    this.#sketch = sketch;
    this.#options = sketch.options ?? {};
    this.hand = new HandAttacher({ client: this.client, clock: this.clock, cluster: this });
  }

  /** Everything that is sketched, but no controller. */
  async populate(): Promise<void> {
    await this.server.start();
    await this.#createObjects();
    this.#startSurroundings();
  }

  async #createObjects(): Promise<void> {
    const { nodes = {}, volumes = {}, pods = {}, drivers = {}, attachments = [] } = this.#sketch;
    const used = Object.values(pods).flatMap(({ uses = [] }) => uses);
    const plain = [...used, ...attachments.map(({ volume }) => volume)].filter(
      (label) => !(label in volumes),
    );
    for (const [label, sketch] of Object.entries(volumes)) await this.createVolume(label, sketch);
    for (const label of new Set(plain)) await this.createVolume(label);
    for (const [name, driver] of Object.entries(drivers)) await this.setDriver(name, driver);
    const named = isList(nodes) ? Object.fromEntries(nodes.map((name) => [name, {}])) : nodes;
    for (const [name, sketch] of Object.entries(named)) await this.createNode(name, sketch);
    await this.scheduler.runFor(FIRST_ATTACH_MS);
    for (const { volume, node, ...rest } of attachments) await this.hand.create(volume, node, rest);
    for (const [name, sketch] of Object.entries(pods)) await this.createPod(name, sketch);
  }

  #startSurroundings(): void {
    const { nodes = {}, kubelets = false, attacher = "auto" } = this.#sketch;
    if (attacher === "auto") for (const driver of this.labels.drivers) this.attacherOf(driver);
    if (kubelets === false) return;
    for (const node of isList(nodes) ? nodes : Object.keys(nodes)) this.startKubelet(node);
  }

  /** The external-attacher of a driver, which runs from the first time it is asked for. */
  attacherOf(driver: string): SimExternalAttacher {
    const known = this.#attachers.get(driver);
    if (known !== undefined) return known;
    const { client, clock, storages } = this;
    const attacher = new SimExternalAttacher(
      { client, clock, storages, random: this.random.fork(`attacher ${driver}`) },
      { driver, handleOf: ({ metadata }) => this.labels.handleOf((metadata.name ?? "").slice("pv-".length)) },
    );
    this.#attachers.set(driver, attacher);
    this.#run(attacher.run(new AbortController().signal));
    return attacher;
  }

  kubelet(node: string): SimKubelet {
    const known = this.#kubelets.get(node);
    if (known === undefined) throw new Error(`node ${node} has no kubelet in this world`);
    return known.kubelet;
  }

  /** A first start, or one after `stopKubelet`: what was mounted still is. */
  startKubelet(node: string): void {
    const { kubelets } = this.#sketch;
    const options = typeof kubelets === "object" ? kubelets : {};
    const { client, clock } = this;
    const deps = { client, clock, random: this.random.fork(`kubelet ${node}`) };
    const kubelet = this.#kubelets.get(node)?.kubelet ?? new SimKubelet(deps, { node, ...options });
    if (!this.#kubelets.has(node)) this.#checker.watch(kubelet);
    const stop = new AbortController();
    this.#kubelets.set(node, { kubelet, stop });
    this.#run(kubelet.run(stop.signal));
  }

  /** The machine is gone: nobody unmounts and nobody writes its status any more. */
  stopKubelet(node: string): void {
    this.#kubelets.get(node)?.stop.abort(new Error("the node is dead"));
  }

  /** After a power failure: it comes back healthy and with nothing mounted. */
  async rebootNode(node: string): Promise<void> {
    this.kubelet(node).reboot();
    await this.setReady(node, "True");
    this.startKubelet(node);
  }

  /** `leading: false` is a replica that stands by until the test has it lead. */
  startController(options: Partial<AttachDetachOptions> = {}, { leading = true } = {}): void {
    this.#options = { ...this.#options, ...options };
    const { plugins = [], elected = true } = this.#sketch;
    const describe = (call: TransportRequest) => toRequestLine(call, this.labels);
    const started = new AttachDetachProcess((work) => this.launch("controller", describe, work), {
      ...{ plugins, leading, lease: elected ? this.lease : undefined },
      controller: { ...DEFAULT_OPTIONS, ...this.#options },
    });
    this.#processes.push(started);
  }

  protected override logOf(): Logger {
    return createLogger((_level, message, fields) => this.log.push({ message, fields }));
  }

  /** Kills it between two lines, and starts another. */
  async restartController(options: Partial<AttachDetachOptions> = {}): Promise<void> {
    this.controller.kill();
    this.startController(options);
    await this.settle();
  }

  /** The process that runs now. */
  get controller(): AttachDetachProcess {
    const last = this.#processes.at(-1);
    if (last === undefined) throw new Error("no controller was started in this world");
    return last;
  }

  /** What controllers asked of VolumeAttachments and nodes, in order, since the last `forget()`. */
  requests(): string[] {
    return this.#allRequests().filter((line) => / (va|node) /.test(line));
  }

  /** Everything else they wrote: events and what they keep for themselves. */
  otherRequests(): string[] {
    return this.#allRequests().filter((line) => !/ (va|node) /.test(line));
  }

  /** With when each was sent. */
  timedRequests(): readonly { readonly line: string; readonly atMs: number }[] {
    return this.programs.flatMap(({ transport }) => transport.requests).slice(this.#forgotten);
  }

  forget(): void {
    this.#forgotten += this.timedRequests().length;
  }

  /** The next `times` requests whose line begins with these words are answered with this status. */
  failNext(matcher: string, status: number, times = 1): void {
    this.spoil(matcher, { kind: "status", status }, times);
  }

  /** Until the answered function is called, all of them. */
  spoil(matcher: string, mishap: Mishap, times?: number): () => void {
    return this.transport.spoil(matcher, mishap, times);
  }

  /** Cuts the controller off; what happens meanwhile it can only learn from a new list. */
  cutOff(): void {
    this.transport.cut();
  }

  /** The server forgets its history: whoever asks what happened until now is answered 410. */
  compact(): Promise<void> {
    return this.server.store.compact(this.server.store.revision);
  }

  async reconnect(): Promise<void> {
    await this.compact();
    this.transport.mend();
  }

  attachmentOf(volume: string, node: string): VolumeAttachment | undefined {
    return this.hand.attachmentOf(volume, node);
  }

  /** Events about a pod, as `kubectl describe` shows them, of these reasons or all; oldest first, to the second. */
  eventsOf(
    path: string,
    ...reasons: readonly string[]
  ): { type: string; reason: string; message: string; count: number }[] {
    const [name = "", namespace = "default"] = path.split("/").reverse();
    return this.list(events)
      .filter(({ metadata }) => metadata.namespace === namespace)
      .filter(({ involvedObject }) => involvedObject.kind === "Pod" && involvedObject.name === name)
      .filter(({ reason = "" }) => reasons.length === 0 || reasons.includes(reason))
      .sort((a, b) => String(a.firstTimestamp).localeCompare(String(b.firstTimestamp)))
      .map(({ type = "", reason = "", message = "", count = 1 }) => ({ type, reason, message, count }));
  }

  /** The value of a metric of the running controller, summed over what has these labels; undefined if there is none. */
  metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
    return this.program.metric(name, wanted);
  }

  #allRequests(): string[] {
    return this.timedRequests().map(({ line }) => line);
  }

  #run(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.log.push({ message: "a part of the simulated world failed", fields: { error } });
    });
  }
}

function isList(nodes: NonNullable<WorldSketch["nodes"]>): nodes is readonly string[] {
  return Array.isArray(nodes);
}

import { createLogger, type LogFields } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";
import { DEFAULT_OPTIONS, type AttachDetachOptions } from "../attach-detach/options.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { events, type KubeEvent } from "../kube/api/event.ts";
import { resourceName } from "../kube/object.ts";
import type { Transport } from "../kube/transport/transport.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import { createSimApiServer } from "./api-server.ts";
import { AttachDetachProcess, type SimLease } from "./attach-detach-process.ts";
import { createAttachmentChecker } from "./attachment-checker.ts";
import { SimCluster, type ClusterDeps, type PodSketch, type VolumeSketch } from "./cluster.ts";
import type { NodeSketch } from "./cluster-objects.ts";
import { CsiBackend } from "./csi-backend.ts";
import { SimExternalAttacher } from "./external-attacher.ts";
import { createFaultyTransport, type NetworkFaults } from "./faulty-transport.ts";
import { HandAttacher } from "./hand-attacher.ts";
import { SimKubelet, type KubeletOptions } from "./kubelet.ts";
import { SimScheduler, type SimClock } from "./scheduler.ts";
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
  const random = createSeededRandom(sketch.seed ?? 1);
  const scheduler = new SimScheduler(random.fork("scheduler"));
  const server = await createSimApiServer(scheduler, random.fork("server"));
  const world = new AttachDetachWorld({ ...server, scheduler, random }, sketch);
  await world.populate();
  await world.startSurroundings();
  if (sketch.started !== false) world.startController();
  await world.settle();
  return world;
}

interface WorldDeps extends ClusterDeps {
  readonly scheduler: SimScheduler;
  readonly random: Random;
}

export class AttachDetachWorld extends SimCluster {
  readonly scheduler: SimScheduler;
  readonly backend: CsiBackend;
  readonly hand: HandAttacher;
  /** Plurals (`nodes`) of which the controller is told nothing new for now: a cache that lags behind. */
  readonly heldWatches = new Set<string>();
  readonly lease: SimLease = {};
  readonly log: { message: string; fields: LogFields }[] = [];
  readonly #deps: WorldDeps;
  readonly #sketch: WorldSketch;
  /** Of everybody in this world. */
  readonly clock: SimClock;
  readonly #attachers = new Map<string, SimExternalAttacher>();
  readonly #kubelets = new Map<string, { kubelet: SimKubelet; stop: AbortController }>();
  readonly #checker: ReturnType<typeof createAttachmentChecker>;
  readonly #processes: AttachDetachProcess[] = [];
  #options: Partial<AttachDetachOptions>;
  #forgotten = 0;

  constructor(deps: WorldDeps, sketch: WorldSketch) {
    super(deps);
    this.#deps = deps;
    this.#sketch = sketch;
    this.#options = sketch.options ?? {};
    this.scheduler = deps.scheduler;
    this.clock = deps.scheduler.createClock();
    this.backend = new CsiBackend(this.clock);
    this.hand = new HandAttacher({ client: deps.client, clock: this.clock, cluster: this });
    this.#checker = createAttachmentChecker({
      backend: this.backend,
      maySeveralNodesHave: (volume) => this.isShared(this.labels.volume(volume)),
    });
  }

  async populate(): Promise<void> {
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

  async startSurroundings(): Promise<void> {
    const { nodes = {}, kubelets = false, attacher = "auto" } = this.#sketch;
    if (attacher === "auto") for (const driver of this.labels.drivers) this.attacherOf(driver);
    if (kubelets === false) return;
    for (const node of isList(nodes) ? nodes : Object.keys(nodes)) this.startKubelet(node);
  }

  /** The external-attacher of a driver, which runs from the first time it is asked for. */
  attacherOf(driver: string): SimExternalAttacher {
    const known = this.#attachers.get(driver);
    if (known !== undefined) return known;
    const deps = { ...this.#deps, clock: this.clock, backend: this.backend };
    const attacher = new SimExternalAttacher(
      { ...deps, random: this.#deps.random.fork(`attacher ${driver}`) },
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
    const deps = {
      client: this.#deps.client,
      clock: this.clock,
      random: this.#deps.random.fork(`kubelet ${node}`),
    };
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
    const random = this.#deps.random.fork(`controller ${this.#processes.length}`);
    const started = new AttachDetachProcess(
      {
        transport: this.#networkFor(random.fork("network")),
        clock: this.clock,
        random,
        log: createLogger((_level, message, fields) => this.log.push({ message, fields })),
        labels: this.labels,
        held: this.heldWatches,
        plugins: this.#sketch.plugins ?? [],
        lease: this.#sketch.elected === false ? undefined : this.lease,
      },
      { ...DEFAULT_OPTIONS, ...this.#options },
    );
    this.#processes.push(started);
    started.start({ leading });
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

  /** Lets everything happen that needs no retry. */
  settle(): Promise<void> {
    return this.advance(SETTLE_MS);
  }

  async advance(ms: number): Promise<void> {
    await this.scheduler.runFor(ms);
    for (const life of this.#processes) life.throwIfFailed();
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
    return this.#processes.flatMap(({ transport }) => transport.requests).slice(this.#forgotten);
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
    return this.controller.transport.spoil(matcher, mishap, times);
  }

  /** Cuts the controller off; what happens meanwhile it can only learn from a new list. */
  cutOff(): void {
    this.controller.transport.cut();
  }

  /** The server forgets its history: whoever asks what happened until now is answered 410. */
  compact(): Promise<void> {
    return this.#deps.store.compact(this.#deps.store.revision);
  }

  async reconnect(): Promise<void> {
    await this.compact();
    this.controller.transport.mend();
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
    const stored = [...this.#deps.store.scan({ resource: resourceName(events), namespace })];
    return stored
      .map(({ text }) => JSON.parse(text) as KubeEvent)
      .filter(({ involvedObject }) => involvedObject.kind === "Pod" && involvedObject.name === name)
      .filter(({ reason = "" }) => reasons.length === 0 || reasons.includes(reason))
      .sort((a, b) => String(a.firstTimestamp).localeCompare(String(b.firstTimestamp)))
      .map(({ type = "", reason = "", message = "", count = 1 }) => ({ type, reason, message, count }));
  }

  /** The value of a metric of the running controller, summed over what has these labels; undefined if there is none. */
  metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    return this.controller.metric(name, labels);
  }

  /** What would have cost data. */
  get violations(): readonly string[] {
    return this.#checker.violations;
  }

  #networkFor(random: Random): Transport {
    const { transport } = this.#deps;
    const { network } = this.#sketch;
    return network ? createFaultyTransport(transport, { clock: this.clock, random }, network) : transport;
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

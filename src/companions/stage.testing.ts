import { setMaxListeners } from "node:events";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { createLogger, silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";
import { createEngineControllers } from "../apiserver/controllers/engine-controllers.ts";
import type { ObjectStore } from "../apiserver/store/store.ts";
import { createMemoryChannel, type MemoryChannel } from "../csi/memory-channel.ts";
import { createLoopDriver, type LoopDriver } from "../driver/driver.ts";
import { createFakeHost } from "../driver/fake-host.testing.ts";
import { withFaults, type Fault } from "../driver/faults.ts";
import type { DriverOptions } from "../driver/options.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import type { RecordedEvent } from "../kube/events/events.ts";
import { resourceName, type KubeObject, type Resource } from "../kube/object.ts";
import type { Transport, TransportRequest } from "../kube/transport/transport.ts";
import { createSimApiServer } from "../sim/api-server.ts";
import { createFaultyTransport, type NetworkFaults } from "../sim/faulty-transport.ts";
import { SimScheduler, type SimClock } from "../sim/scheduler.ts";
import { ScriptedTransport } from "../sim/scripted-transport.ts";
import { storageClasses, type StorageClass } from "./kinds.ts";
import { createStorageCompanions } from "./storage.ts";
import { found } from "./writes.ts";

export const DRIVER = "loop.csi.mooring.dev";
const TOPOLOGY = `topology.${DRIVER}/node`;

export interface Sketch {
  readonly seed?: number;
  readonly driver?: Partial<DriverOptions>;
  readonly network?: () => NetworkFaults;
}

interface Server {
  readonly scheduler: SimScheduler;
  readonly client: Client;
  readonly transport: Transport;
  readonly store: ObjectStore;
}

/** An API server with its own controllers, the real loop driver on a machine in memory, nodes n1 to n3, class `fast`. */
export async function given(sketch: Sketch = {}): Promise<StorageWorld> {
  const random = createSeededRandom(sketch.seed ?? 1);
  const scheduler = new SimScheduler(random.fork("scheduler"));
  const server = await createSimApiServer(scheduler, random.fork("server"));
  const engine = createEngineControllers({
    store: server.store,
    clock: scheduler.createClock(),
    random: random.fork("engine"),
    log: silentLogger,
  });
  void engine.run(new AbortController().signal);
  const world = new StorageWorld({ ...server, scheduler }, sketch, random.fork("driver"));
  await world.driver.recover();
  for (const name of ["n1", "n2", "n3"]) await world.createNode(name);
  await world.createClass("fast");
  return world;
}

/** Below the first back-off of 1 s, so that settling never includes a retry. */
const SETTLE_MS = 700;

export class StorageWorld {
  readonly scheduler: SimScheduler;
  readonly clock: SimClock;
  readonly client: Client;
  readonly driver: LoopDriver;
  /** Writes to the API server and calls to the driver, in the order in which they left. */
  readonly journal: string[] = [];
  /** `Kind/name reason: message`. */
  readonly events: string[] = [];
  readonly log: string[] = [];
  readonly held = new Set<string>();
  readonly #server: Server;
  readonly #sketch: Sketch;
  readonly #random: Random;
  #faults: readonly Fault[] = [];
  #lives = 0;
  #life: { stop: AbortController; transport: ScriptedTransport; channel: MemoryChannel } | undefined;
  failure: unknown;
  /** Told of every call right before the driver sees it, with its request. */
  onCall: (call: string, request: Readonly<Record<string, unknown>>) => void = () => undefined;

  constructor(server: Server, sketch: Sketch, random: Random) {
    this.#server = server;
    this.#sketch = sketch;
    this.#random = random;
    this.scheduler = server.scheduler;
    this.client = server.client;
    this.clock = server.scheduler.createClock();
    this.driver = createLoopDriver(
      { host: createFakeHost(), clock: this.clock, random: random.fork("ids"), log: silentLogger },
      {
        name: DRIVER,
        vendorVersion: "1",
        stateDir: "/state",
        nodeId: "n1",
        nodes: ["n2", "n3"],
        ...sketch.driver,
      },
    );
  }

  start(): void {
    const random = createSeededRandom((this.#sketch.seed ?? 1) * 1_000 + this.#lives++);
    const { clock } = this;
    const { network } = this.#sketch;
    const inner = network
      ? createFaultyTransport(this.#server.transport, { clock, random: random.fork("network") }, network)
      : this.#server.transport;
    const transport = new ScriptedTransport({ inner, clock, held: this.held }, (call) =>
      this.#describe(call),
    );
    const client = createClient({ transport, clock, random: random.fork("client") });
    const channel = createMemoryChannel({ clock, log: silentLogger }, this.#served());
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const log = createLogger((level, message, fields) =>
      this.log.push(`${level} ${message} ${JSON.stringify(fields, textOf)}`),
    );
    const companions = createStorageCompanions(
      { client, clock, random, log, metrics: noMetrics, events: { record: (event) => this.#tell(event) } },
      { channels: [channel] },
    );
    this.#life = { stop, transport, channel };
    void companions.run(stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) this.failure ??= error;
    });
  }

  /** Ends it between two lines: what is on the wire may still be carried out, no answer arrives. */
  kill(): void {
    this.#life?.transport.kill();
    this.#life?.channel.close();
    this.#life?.stop.abort(new Error("killed"));
    this.#life = undefined;
  }

  /** Dies with its n-th line in the journal from now, which is carried out or not as chance has it. */
  killAt(at: number, { lost = at % 2 === 0 }: { lost?: boolean } = {}): void {
    const push = this.journal.push.bind(this.journal);
    let seen = 0;
    this.journal.push = (...lines: string[]) => {
      const length = push(...lines);
      seen += lines.length;
      if (seen !== at) return length;
      this.journal.push = push;
      if (lost) this.kill();
      else void Promise.resolve().then(() => this.kill());
      return length;
    };
  }

  get transport(): ScriptedTransport {
    if (!this.#life) throw new Error("nothing runs in this world");
    return this.#life.transport;
  }

  /** How the driver misbehaves from now on. */
  misbehave(faults: readonly Fault[]): void {
    this.#faults = faults;
    this.#life?.channel.connect(this.#served());
  }

  settle(): Promise<void> {
    return this.advance(SETTLE_MS);
  }

  async advance(ms: number): Promise<void> {
    await this.scheduler.runFor(ms);
    if (this.failure !== undefined) throw this.failure as Error;
  }

  take(): string[] {
    return this.journal.splice(0);
  }

  async createNode(name: string): Promise<void> {
    await this.client.create(nodes, { metadata: { name, labels: { [TOPOLOGY]: name } } });
    await this.client.create(csiNodes, {
      metadata: { name },
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys: [TOPOLOGY] }] },
    });
  }

  async createClass(name: string, members: Partial<StorageClass> = {}): Promise<void> {
    await this.client.create(storageClasses, {
      metadata: { name },
      provisioner: DRIVER,
      reclaimPolicy: "Delete",
      allowVolumeExpansion: true,
      ...members,
    });
  }

  async createClaim(
    name: string,
    spec: Partial<PersistentVolumeClaim["spec"]> = {},
    metadata: ObjectMeta = {},
  ): Promise<void> {
    await this.client.create(persistentVolumeClaims, {
      metadata: { name, namespace: "default", ...metadata },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "64Mi" } },
        storageClassName: "fast",
        ...spec,
      },
    });
  }

  /** A volume somebody made by hand, of a driver nobody here knows. */
  async createVolume(
    name: string,
    spec: Partial<PersistentVolume["spec"]> = {},
    metadata: ObjectMeta = {},
  ): Promise<void> {
    await this.client.create(persistentVolumes, {
      metadata: { name, ...metadata },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        storageClassName: "slow",
        csi: { driver: "by.hand", volumeHandle: name },
        ...spec,
      },
    });
  }

  claim(name: string): Promise<PersistentVolumeClaim | undefined> {
    return found(this.client.get(persistentVolumeClaims, { name, namespace: "default" }));
  }

  volume(name: string): Promise<PersistentVolume | undefined> {
    return found(this.client.get(persistentVolumes, { name }));
  }

  deleteClaim(name: string): Promise<void> {
    return this.client.delete(persistentVolumeClaims, { name, namespace: "default" });
  }

  /** As the server has them at this very moment: a checker must not wait for an answer. */
  now<T extends KubeObject>(resource: Resource<T>): T[] {
    const stored = [...this.#server.store.scan({ resource: resourceName(resource) })];
    return stored.map(({ text }) => JSON.parse(text) as T);
  }

  #served() {
    const { clock } = this;
    const noted = this.driver.methods.map((method) => ({
      ...method,
      handler: ((request: never, context: never) => {
        const call = method.path.split("/")[2] ?? "";
        if (!/^(Get|Probe|ControllerGet)/.test(call)) this.journal.push(call);
        this.onCall(call, request);
        return method.handler(request, context);
      }) as typeof method.handler,
    }));
    return withFaults({ clock, random: this.#random, log: silentLogger }, noted, this.#faults);
  }

  #tell({ ref, reason, message }: RecordedEvent): void {
    this.events.push(`${ref.kind}/${ref.name} ${reason}: ${message}`);
  }

  #describe({ method, path }: TransportRequest): string | undefined {
    if (method === "GET") return undefined;
    const [, plural, name = "", sub = ""] = /\/([a-z]+)(?:\/([^/?]+))?(\/status)?(?:\?.*)?$/.exec(path) ?? [];
    const line = `${method} ${plural}${name === "" ? "" : ` ${name}`}${sub}`;
    this.journal.push(line);
    return line;
  }
}

/** Errors as a log would print them. */
function textOf(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Error ? { message: value.message, cause: value.cause } : value;
}

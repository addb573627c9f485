import { setMaxListeners } from "node:events";
import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { VolumeAttachmentStatus } from "kubernetes-types/storage/v1.js";
import { createLogger } from "../base/log.ts";
import { createPromMetrics } from "../base/prom-metrics.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { secrets } from "../kube/api/secret.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { resourceName } from "../kube/object.ts";
import type { ObjectStore } from "../apiserver/store/store.ts";
import type { Transport, TransportRequest } from "../kube/transport/transport.ts";
import { createSimApiServer } from "../sim/api-server.ts";
import { createFaultyTransport, type NetworkFaults } from "../sim/faulty-transport.ts";
import { SimScheduler, type SimClock } from "../sim/scheduler.ts";
import { ScriptedTransport } from "../sim/scripted-transport.ts";
import { createAttacherCaches } from "./caches.ts";
import { createAttacher, type Attacher } from "./controller.ts";
import type { DriverCapabilities } from "./driver.ts";
import { EVERYTHING, FakeDriver } from "./fake-driver.testing.ts";
import { measureDriver } from "./metrics.ts";
import type { AttachmentReport, ReportFilter } from "./report.ts";
import { DEFAULT_ATTACHER_OPTIONS, type AttacherOptions } from "./options.ts";

export const DRIVER = "csi.test";
/** Its finalizer. */
export const F = "external-attacher/csi-test";
export const NODE_ID = "csi.alpha.kubernetes.io/node-id";

export interface Sketch {
  readonly seed?: number;
  readonly driver?: Partial<DriverCapabilities>;
  readonly options?: Partial<AttacherOptions>;
  readonly network?: () => NetworkFaults;
  readonly resyncMs?: number;
}

/** An API server, a driver that remembers everything, and one node `n1`, which the driver calls `id-n1`. */
export async function given(sketch: Sketch = {}): Promise<AttacherWorld> {
  const random = createSeededRandom(sketch.seed ?? 1);
  const scheduler = new SimScheduler(random.fork("scheduler"));
  const server = await createSimApiServer(scheduler, random.fork("server"));
  const world = new AttacherWorld({ ...server, scheduler }, sketch);
  await world.createNode("n1");
  return world;
}

/** Below the first back-off of 1 s, so that settling never includes a retry. */
const SETTLE_MS = 400;

export interface AttachmentSketch {
  readonly volume?: string;
  readonly source?: VolumeAttachment["spec"]["source"];
  readonly node?: string;
  readonly attacher?: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly status?: Partial<VolumeAttachmentStatus>;
}

interface Server {
  readonly scheduler: SimScheduler;
  readonly client: Client;
  readonly transport: Transport;
  readonly store: ObjectStore;
}

export class AttacherWorld {
  readonly scheduler: SimScheduler;
  readonly clock: SimClock;
  readonly client: Client;
  readonly driver: FakeDriver;
  /** Writes to the API server, reads of secrets and calls to the driver, in the order in which they left. */
  readonly journal: string[] = [];
  readonly log: { level: string; text: string }[] = [];
  readonly held = new Set<string>();
  readonly #server: Server;
  readonly #sketch: Sketch;
  #lives = 0;
  #life:
    | {
        stop: AbortController;
        alive: { yes: boolean };
        attacher: Attacher;
        ended: Promise<unknown>;
        transport: ScriptedTransport;
        metrics: ReturnType<typeof createPromMetrics>;
      }
    | undefined;
  failure: unknown;

  constructor(server: Server, sketch: Sketch) {
    this.#server = server;
    this.#sketch = sketch;
    this.scheduler = server.scheduler;
    this.client = server.client;
    this.clock = server.scheduler.createClock();
    this.driver = new FakeDriver(this.clock);
    this.driver.caps = { ...EVERYTHING, ...sketch.driver };
    this.driver.onCall = (line) => this.journal.push(line);
  }

  start(options: Partial<AttacherOptions> = {}): void {
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
    const metrics = createPromMetrics();
    const log = createLogger((level, message, fields) =>
      this.log.push({ level, text: `${message} ${JSON.stringify(fields, textOf)}` }),
    );
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const alive = { yes: true };
    const { resyncMs } = this.#sketch;
    const caches = createAttacherCaches(
      { client, clock, random: random.fork("caches"), log },
      resyncMs === undefined ? {} : { resyncMs },
    );
    const facts = { name: DRIVER, capabilities: this.driver.caps };
    const driver = measureDriver(this.driver, { clock, metrics }, DRIVER);
    const attacher = createAttacher(
      { client, caches, driver, facts, clock, log, metrics, mayAct: () => alive.yes },
      { ...DEFAULT_ATTACHER_OPTIONS, ...this.#sketch.options, ...options },
    );
    const caught = (error: unknown) => (this.failure ??= error);
    void caches.run(stop.signal);
    const ended = attacher.run(stop.signal).catch(caught);
    this.#life = { stop, alive, attacher, ended, transport, metrics };
  }

  /** Asks it to end, and tells when it has. */
  stop(): Promise<unknown> {
    this.#running.stop.abort(new Error("SIGTERM"));
    return this.#running.ended;
  }

  /** Another replica leads. */
  depose(): void {
    this.#running.alive.yes = false;
    this.#running.stop.abort(new Error("lost the lease"));
  }

  report(filter: ReportFilter = {}): readonly AttachmentReport[] {
    return this.#running.attacher.report(filter);
  }

  /** `reason Kind/name` of what an attachment waits for. */
  waitOf(attachment: string): string | undefined {
    const wait = this.report({ attachment })[0]?.waitingFor;
    return wait && `${wait.reason} ${wait.object.kind}/${wait.object.name}`;
  }

  /** Ends it between two lines: what is on the wire may still be carried out, no answer arrives. */
  kill(): void {
    if (this.#life !== undefined) this.#life.alive.yes = false;
    this.#life?.transport.kill();
    this.#life?.stop.abort(new Error("killed"));
  }

  get #running() {
    if (this.#life === undefined) throw new Error("no attacher was started in this world");
    return this.#life;
  }

  get transport(): ScriptedTransport {
    return this.#running.transport;
  }

  /** The next `times` requests that begin like this are refused. */
  refuse(line: string, status = 403, times = 1): void {
    this.transport.spoil(line, { kind: "status", status }, times);
  }

  settle(): Promise<void> {
    return this.advance(SETTLE_MS);
  }

  async advance(ms: number): Promise<void> {
    await this.scheduler.runFor(ms);
    if (this.failure !== undefined) throw this.failure as Error;
  }

  /** What happened since the last time. */
  take(): string[] {
    return this.journal.splice(0);
  }

  async metric(name: string, ...labels: readonly string[]): Promise<number | undefined> {
    const lines = (await this.#running.metrics.render()).split("\n");
    const found = lines.filter(
      (line) => line.startsWith(name) && labels.every((label) => line.includes(label)),
    );
    return found.length === 0
      ? undefined
      : found.reduce((sum, line) => sum + valueOf(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }

  async createNode(name: string, drivers: readonly string[] = [DRIVER]): Promise<void> {
    await this.client.create(csiNodes, {
      metadata: { name },
      spec: { drivers: drivers.map((driver) => ({ name: driver, nodeID: `id-${name}` })) },
    });
  }

  async deleteNode(name: string): Promise<void> {
    await this.client.delete(csiNodes, { name });
  }

  /** Held by the driver's finalizer already, as one that was attached before. */
  async createVolume(
    name: string,
    spec: Partial<PersistentVolumeSpec> = {},
    metadata: Partial<ObjectMeta> = { finalizers: [F] },
  ): Promise<void> {
    await this.client.create(persistentVolumes, {
      metadata: { name, ...metadata },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        ...(!hasOtherSource(spec) && { csi: { driver: DRIVER, volumeHandle: `vol-${name}` } }),
        ...spec,
      },
    });
  }

  async createSecret(name: string, data: Readonly<Record<string, string>>): Promise<void> {
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
    await this.client.create(secrets, {
      metadata: { name, namespace: "default" },
      data: Object.fromEntries(encoded) as Record<string, string>,
    });
  }

  async createAttachment(name: string, sketch: AttachmentSketch = {}): Promise<void> {
    const { volume = "pv1", node = "n1", attacher = DRIVER, metadata = {}, status } = sketch;
    const { source = { persistentVolumeName: volume } } = sketch;
    await this.client.create(volumeAttachments, {
      metadata: { name, ...metadata },
      spec: { attacher, nodeName: node, source },
    });
    if (status === undefined) return;
    const value = { status: { attached: false, ...status } };
    await this.client.patch(volumeAttachments, { name }, { type: "merge", value }, { subresource: "status" });
  }

  /** Attached by an attacher of before: finalizer, annotation and status. */
  async createAttached(name: string, sketch: AttachmentSketch = {}): Promise<void> {
    const metadata = { finalizers: [F], annotations: { [NODE_ID]: `id-${sketch.node ?? "n1"}` } };
    await this.createAttachment(name, { metadata, status: { attached: true }, ...sketch });
  }

  /** Behind the server's back, as no server would let it through. */
  async writeRaw(
    resource: string,
    object: { readonly metadata: { readonly name: string; readonly [field: string]: unknown } } & object,
  ): Promise<void> {
    const { name } = object.metadata;
    await this.#server.store.create({ resource, namespace: "", name }, (revision) => {
      const metadata = { ...object.metadata, resourceVersion: String(revision) };
      return JSON.stringify({ ...object, metadata });
    });
  }

  async deleteAttachment(name: string): Promise<void> {
    await this.client.delete(volumeAttachments, { name });
  }

  async deleteVolume(name: string): Promise<void> {
    await this.client.delete(persistentVolumes, { name });
  }

  /** As the server has them at this very moment: a checker must not wait for an answer. */
  attachmentsNow(): VolumeAttachment[] {
    const stored = [...this.#server.store.scan({ resource: resourceName(volumeAttachments) })];
    return stored.map(({ text }) => JSON.parse(text) as VolumeAttachment);
  }

  attachment(name: string): Promise<VolumeAttachment | undefined> {
    return found(this.client.get(volumeAttachments, { name }));
  }

  volume(name: string): Promise<PersistentVolume | undefined> {
    return found(this.client.get(persistentVolumes, { name }));
  }

  #describe(request: TransportRequest): string | undefined {
    const line = describeRequest(request);
    if (line !== undefined) this.journal.push(line);
    return line;
  }
}

/** `hold va1`, `attached va1`, `attachError va1`: a request as what it means. */
function describeRequest({ method, path, body = "" }: TransportRequest): string | undefined {
  const [, plural, name = "", sub] =
    /\/(volumeattachments|persistentvolumes|secrets)\/([^/?]+)(\/status)?/.exec(path) ?? [];
  if (plural === undefined) return undefined;
  if (method === "GET") return `get ${plural === "secrets" ? "secret" : plural} ${name}`;
  if (sub !== undefined) return `${statusWord(body)} ${name}`;
  const releases = body.includes('"op":"remove"');
  return `${releases ? "release" : "hold"} ${name}`;
}

function statusWord(body: string): string {
  const { status } = JSON.parse(body) as { status: Record<string, unknown> };
  if (status["attachError"]) return "attachError";
  if (status["detachError"]) return "detachError";
  return status["attached"] === true ? "attached" : "detached";
}

function valueOf(text: string): number {
  return text === "+Inf" ? Infinity : Number(text);
}

function hasOtherSource(spec: Partial<PersistentVolumeSpec>): boolean {
  return "gcePersistentDisk" in spec || "nfs" in spec || "awsElasticBlockStore" in spec;
}

/** Errors as a log would print them, causes included. */
function textOf(_key: string, value: unknown): unknown {
  return value instanceof Error ? { message: value.message, cause: value.cause } : value;
}

async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { VolumeAttachmentStatus } from "kubernetes-types/storage/v1.js";
import { createLogger, type Logger } from "../base/log.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { secrets } from "../kube/api/secret.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { isKubeError } from "../kube/errors.ts";
import type { TransportRequest } from "../kube/transport/transport.ts";
import type { NetworkFaults } from "../sim/faulty-transport.ts";
import { Harness } from "../sim/harness.ts";
import type { ProgramContext } from "../sim/program.ts";
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
  const world = new AttacherWorld(sketch);
  await world.server.start();
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

export class AttacherWorld extends Harness {
  readonly driver: FakeDriver;
  /** Writes to the API server, reads of secrets and calls to the driver, in the order in which they left. */
  readonly journal: string[] = [];
  readonly log: { level: string; text: string }[] = [];
  readonly #sketch: Sketch;
  #attacher: Attacher | undefined;
  #mayAct = { yes: false };

  constructor(sketch: Sketch) {
    super({ ...sketch, settleMs: SETTLE_MS });
    this.#sketch = sketch;
    this.driver = new FakeDriver(this.clock);
    this.driver.caps = { ...EVERYTHING, ...sketch.driver };
    this.driver.onCall = (line) => this.journal.push(line);
  }

  start(options: Partial<AttacherOptions> = {}): void {
    this.launch(
      "attacher",
      (call) => this.#describe(call),
      (context, signal) => this.#run(context, options, signal),
    );
  }

  async #run(context: ProgramContext, options: Partial<AttacherOptions>, signal: AbortSignal): Promise<void> {
    const { client, clock, log, metrics, life, random } = context;
    const mayAct = (this.#mayAct = { yes: true });
    const { resyncMs } = this.#sketch;
    const caches = createAttacherCaches(
      { client, clock, random: random.fork("caches"), log },
      resyncMs === undefined ? {} : { resyncMs },
    );
    const facts = { name: DRIVER, capabilities: this.driver.caps };
    const driver = measureDriver(life.bind(this.driver), { clock, metrics }, DRIVER);
    this.#attacher = createAttacher(
      { client, caches, driver, facts, clock, log, metrics, mayAct: () => mayAct.yes },
      { ...DEFAULT_ATTACHER_OPTIONS, ...this.#sketch.options, ...options },
    );
    void caches.run(signal);
    await this.#attacher.run(signal);
  }

  protected override logOf(): Logger {
    return createLogger((level, message, fields) =>
      this.log.push({ level, text: `${message} ${JSON.stringify(fields, textOf)}` }),
    );
  }

  /** Asks it to end, and tells when it has. */
  stop(): Promise<void> {
    return this.program.stop();
  }

  /** Another replica leads. */
  depose(): void {
    this.#mayAct.yes = false;
    void this.program.stop();
  }

  report(filter: ReportFilter = {}): readonly AttachmentReport[] {
    return this.#attacher?.report(filter) ?? [];
  }

  /** `reason Kind/name` of what an attachment waits for. */
  waitOf(attachment: string): string | undefined {
    const wait = this.report({ attachment })[0]?.waitingFor;
    return wait && `${wait.reason} ${wait.object.kind}/${wait.object.name}`;
  }

  /** The next `times` requests that begin like this are refused. */
  refuse(line: string, status = 403, times = 1): void {
    this.transport.spoil(line, { kind: "status", status }, times);
  }

  /** What happened since the last time. */
  take(): string[] {
    return this.journal.splice(0);
  }

  metric(name: string, ...labels: readonly string[]): Promise<number | undefined> {
    return this.program.metric(name, labels);
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
    await this.server.store.create({ resource, namespace: "", name }, (revision) => {
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
    return this.list(volumeAttachments);
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

import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { createLogger, silentLogger, type Logger } from "../base/log.ts";
import { createMemoryChannel, type MemoryChannel } from "../csi/memory-channel.ts";
import { createLoopDriver, type LoopDriver } from "../driver/driver.ts";
import { createFakeHost } from "../driver/fake-host.testing.ts";
import { withFaults, type Fault } from "../driver/faults.ts";
import type { DriverOptions } from "../driver/options.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { RecordedEvent } from "../kube/events/events.ts";
import type { TransportRequest } from "../kube/transport/transport.ts";
import type { NetworkFaults } from "../sim/faulty-transport.ts";
import { Harness } from "../sim/harness.ts";
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

/** An API server with its own controllers, the real loop driver on a machine in memory, nodes n1 to n3, class `fast`. */
export async function given(sketch: Sketch = {}): Promise<StorageWorld> {
  const world = new StorageWorld(sketch);
  await world.server.start();
  await world.driver.recover();
  for (const name of ["n1", "n2", "n3"]) await world.createNode(name);
  await world.createClass("fast");
  return world;
}

/** Below the first back-off of 1 s, so that settling never includes a retry. */
const SETTLE_MS = 700;

export class StorageWorld extends Harness {
  readonly driver: LoopDriver;
  /** Writes to the API server and calls to the driver, in the order in which they left. */
  readonly journal: string[] = [];
  /** `Kind/name reason: message`. */
  readonly events: string[] = [];
  readonly log: string[] = [];
  #faults: readonly Fault[] = [];
  #channel: MemoryChannel | undefined;
  /** Told of every call right before the driver sees it, with its request. */
  onCall: (call: string, request: Readonly<Record<string, unknown>>) => void = () => undefined;

  constructor(sketch: Sketch) {
    super({ ...sketch, settleMs: SETTLE_MS, server: { controllers: true } });
    this.driver = createLoopDriver(
      { host: createFakeHost(), clock: this.clock, random: this.random.fork("ids"), log: silentLogger },
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
    const describe = (call: TransportRequest) => this.#describe(call);
    this.launch("companions", describe, (context, signal) => {
      const { clock, life } = context;
      const channel = createMemoryChannel({ clock, log: silentLogger }, this.#served());
      this.#channel = channel;
      life.onKill(() => channel.close());
      const events = { record: (event: RecordedEvent) => this.#tell(event) };
      return createStorageCompanions({ ...context, events }, { channels: [channel] }).run(signal);
    });
  }

  protected override logOf(): Logger {
    return createLogger((level, message, fields) =>
      this.log.push(`${level} ${message} ${JSON.stringify(fields, textOf)}`),
    );
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

  /** How the driver misbehaves from now on. */
  misbehave(faults: readonly Fault[]): void {
    this.#faults = faults;
    this.#channel?.connect(this.#served());
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
    return withFaults({ clock, random: this.random, log: silentLogger }, noted, this.#faults);
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

import { createLogger, silentLogger, type LogFields, type Logger } from "../base/log.ts";
import { chance } from "../base/random.ts";
import type { AttachDetachController } from "../attach-detach/controller.ts";
import { FORCE_AFTER_MS } from "../attach-detach/options.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import type { NodeAgent } from "../processes/node-agent.ts";
import { ByHand } from "./by-hand.ts";
import { Containers } from "./containers.ts";
import { Handover } from "./handover.ts";
import { traceCalls } from "./call-lines.ts";
import { SimCore } from "./core.ts";
import { LOOP_SOCKET, runLoopController, runLoopNode } from "./loop-members.ts";
import { LoopPool } from "./loop-pool.ts";
import { Machine } from "./machine.ts";
import {
  runAttacher,
  runCompanions,
  runController,
  runDriverController,
  runDriverNode,
  runOriginalController,
  SAN_SOCKET,
  type AttacherPage,
} from "./members.ts";
import { runNode } from "./node-member.ts";
import { NodeLifecycle } from "./node-lifecycle.ts";
import type { NodeAbility } from "./san-abilities.ts";
import { San, SAN_DRIVER } from "./san.ts";
import { SanDisks, serveSanNode } from "./san-node.ts";
import type { SocketCall } from "./sockets.ts";
import { traceObjects } from "./object-changes.ts";
import { Storages, type StoredVolume } from "./storage.ts";
import type { Supervisor } from "./supervisor.ts";
import type { About, TraceLine } from "./trace.ts";
import { VolumeData } from "./volume-data.ts";

export interface WorldOptions {
  readonly nodes?: number;
  /** So many more may join later. */
  readonly spareNodes?: number;
  readonly controllers?: number;
  /** How long a silent node keeps a volume that no pod uses any more; as upstream where left out. */
  readonly forceAfterMs?: number;
  /** Whether the loop driver is there, and all machines on one computer with its pool; drawn where left out. */
  readonly loop?: boolean;
  /** Told of every line as it is written. */
  readonly onLine?: (line: TraceLine) => void;
  /** Log lines of the processes become lines of the trace; from `info` on. */
  readonly logs?: boolean;
}

/** A node of the simulated cluster: its machine and what runs on it. */
export interface SimNode {
  readonly name: string;
  readonly machine: Machine;
  readonly disks: SanDisks;
  readonly containers: Containers;
  readonly agentProcess: Supervisor;
  readonly driverProcess: Supervisor;
  /** All of them, in the order in which they start with the machine. */
  readonly processes: readonly Supervisor[];
  /** Under which the storage system knows it; the last is what its driver says now. */
  readonly nodeIds: string[];
  /** What its driver says now. */
  readonly limits: { volumesMax: number };
  /** What its driver's present version cannot do. */
  readonly lacks: Set<NodeAbility>;
  /** Its machine was taken away for good. */
  isGone: boolean;
  /** Of the present life; undefined before the first. */
  agent: NodeAgent | undefined;
}

const POOL_BYTES = 1n << 40n;
/** What a driver says that it takes on a node, unless told otherwise: more than a plan has apps, which may all select one node. */
export const VOLUMES_MAX = 64;
/** Of all seeds. The others have every machine on a computer of its own. */
const LOOP_SHARE = 1 / 3;

/**
 * A whole cluster in one process on one simulated scheduler: production code of the API server, two replicas of the
 * controller, the attacher, the companions, the node agents and, in a part of all seeds, the loop driver, with a storage
 * system, machines and a network that do as the seed says. One seed gives one order of everything.
 */
export class World extends SimCore {
  /** What there is in all storage systems. */
  readonly storages = new Storages();
  readonly san: San;
  /** Undefined in a cluster without the loop driver. */
  readonly loopPool: LoopPool | undefined;
  readonly data = new VolumeData();
  readonly nodes = new Map<string, SimNode>();
  /** Names of nodes that can join. */
  readonly spareNodes: readonly string[];
  readonly infra: Machine;
  readonly lifecycle: NodeLifecycle;
  /** Between our controller and upstream's, which is no part of `processes`: it runs only in place of ours. */
  readonly handover: Handover;
  readonly forceAfterMs: number;
  readonly byHand: ByHand;
  /** Of each controller replica, while it leads. */
  readonly controllers = new Map<string, () => AttachDetachController | undefined>();
  /** What the attacher's attachments wait for; of the present life. */
  attacherPage: (() => AttacherPage) | undefined;
  /** The computer that all machines share. */
  readonly #host: MemoryHost | undefined;
  readonly #logs: boolean;
  readonly #onNode = new Set<(node: SimNode) => void>();
  readonly #onDriverCall = new Set<(call: SocketCall) => void>();

  constructor(seed: number | string, options: WorldOptions = {}) {
    const { nodes = 3, spareNodes = 2, controllers = 2, onLine, logs = true } = options;
    super(seed, { onLine });
    this.forceAfterMs = options.forceAfterMs ?? FORCE_AFTER_MS;
    this.#logs = logs;
    const { clock } = this;
    this.byHand = new ByHand(this.objects, this.storages, (nodeId) => this.nodeOf(nodeId)?.name);
    const onCopy = (from: string, to: string) => this.data.copies.begin(from, to)();
    this.san = new San({ poolBytes: POOL_BYTES, storages: this.storages, clock, onCopy });
    this.san.volumesMaxOn = (nodeId) => this.nodeOf(nodeId)?.limits.volumesMax ?? VOLUMES_MAX;
    const hasLoop = options.loop ?? chance(this.random.fork("loop driver"), LOOP_SHARE);
    this.#host = hasLoop ? createMemoryHost({ clock }) : undefined;
    const { storages, data } = this;
    this.loopPool =
      this.#host &&
      new LoopPool(this.#host, {
        ...{ storages, clock, beginCopy: (from, to, options) => data.copies.begin(from, to, options) },
        reflink: chance(this.random.fork("reflink"), 0.5),
      });
    this.infra = new Machine(this.scheduler, "infra", this.random.fork("infra"), this.#host);
    this.lifecycle = new NodeLifecycle({
      ...{ clock, client: this.client, objects: this.objects, trace: this.trace },
    });
    for (let at = 0; at < controllers; at++) this.#addController(`controller-${at}`);
    const { forceAfterMs } = this;
    const original = this.make("original-controller", (context, signal) =>
      runOriginalController(context, { forceAfterMs }, signal),
    );
    const isOn = () => this.infra.isOn;
    this.handover = new Handover({ clock, ours: [...this.processes.values()], original, isOn });
    const names = Array.from({ length: nodes + spareNodes }, (_, at) => `node-${at + 1}`);
    this.spareNodes = names.slice(nodes);
    this.#addStorage(names);
    for (const name of names.slice(0, nodes)) this.addNode(name);
    this.#traceStorages();
    this.#hearCalls(this.infra);
    this.infra.onPowerOff(() => {
      for (const [process, supervisor] of this.processes)
        if (this.machineOf(process) === this.infra) supervisor.kill();
      this.handover.powerOff();
    });
    this.#watchLosses(this.infra);
  }

  /** Everything is switched on. */
  async start(): Promise<void> {
    await this.server.start();
    traceObjects(this.server.store, this.objects, this.trace);
    this.lifecycle.start();
    for (const process of this.processes.values()) process.start();
  }

  node(name: string): SimNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** By an id under which the storage system knows it. */
  nodeOf(nodeId: string): SimNode | undefined {
    return [...this.nodes.values()].find(({ nodeIds }) => nodeIds.includes(nodeId));
  }

  /** Whether the machine that a process runs on is on, and no other program runs in its place. */
  mayRun(process: string): boolean {
    return this.machineOf(process).isOn && this.handover.mayStart(process);
  }

  /** Everything that is not on a node is on one machine. */
  machineOf(process: string): Machine {
    return this.nodes.get(process.replace(/-(driver|loop)$/, ""))?.machine ?? this.infra;
  }

  /** Everything loses its power at once, the API server included. */
  blackOut(): void {
    this.server.kill();
    for (const { machine } of this.nodes.values()) machine.powerOff();
    this.infra.powerOffAll();
    this.loopPool?.reread();
  }

  /** Calls with every call that a driver took up, once it is known what became of it. */
  onDriverCall(listener: (call: SocketCall) => void): void {
    this.#onDriverCall.add(listener);
  }

  #hearCalls({ name, sockets }: Machine): void {
    const trace = traceCalls(this.trace, name);
    sockets.onCall = (call) => {
      trace(call);
      for (const listener of this.#onDriverCall) listener(call);
    };
  }

  #watchLosses(machine: Machine): void {
    machine.onLoss((disk) => {
      const volume = this.storages.of(disk);
      if (volume !== undefined) this.data.mayHaveLost(volume);
    });
  }

  #addController(name: string): void {
    const onProcess = (current: () => AttachDetachController | undefined) =>
      void this.controllers.set(name, current);
    const { forceAfterMs } = this;
    this.add(name, (context, signal) => runController(context, { onProcess, forceAfterMs }, signal));
  }

  /** The storage systems' controller services, and who calls them. */
  #addStorage(nodes: readonly string[]): void {
    const { infra: machine, loopPool: pool } = this;
    const socketPaths = pool === undefined ? [SAN_SOCKET] : [SAN_SOCKET, LOOP_SOCKET];
    const onPage = (page: () => AttacherPage) => void (this.attacherPage = page);
    this.add("attacher", (context, signal) => runAttacher(context, { machine, socketPaths, onPage }, signal));
    this.add("companions", (context, signal) => runCompanions(context, { machine, socketPaths }, signal));
    const san = { machine, socketPath: SAN_SOCKET, served: this.san.serveController() };
    this.add("san-driver", (context, signal) => runDriverController(context, san, signal));
    if (pool === undefined) return;
    this.add("loop-driver", (context, signal) =>
      runLoopController(context, { machine, pool, nodes }, signal),
    );
  }

  #traceStorages(): void {
    const who = ({ driver }: StoredVolume) => (driver === SAN_DRIVER ? "san" : "loop");
    const tell = (volume: StoredVolume, what: string, about: About = {}) =>
      this.trace.add(who(volume), `${volume.handle} is ${what}`, { volume: volume.handle, ...about });
    this.storages.on({
      published: (volume, node) => tell(volume, `published on ${node}`, { node }),
      unpublished: (volume, node) => tell(volume, `unpublished from ${node}`, { node }),
      deleted: (volume) => {
        this.data.forget(volume.handle);
        tell(volume, "deleted");
      },
    });
  }

  /** Calls with every node that there is and that joins. */
  onNode(listener: (node: SimNode) => void): void {
    this.#onNode.add(listener);
    for (const node of this.nodes.values()) listener(node);
  }

  /** Its processes are not started yet. */
  addNode(name: string): SimNode {
    const machine = new Machine(this.scheduler, name, this.random.fork(name), this.#host);
    const nodeIds = [name];
    const limits = { volumesMax: VOLUMES_MAX };
    const lacks = new Set<NodeAbility>();
    const nodeId = () => nodeIds.at(-1) ?? name;
    const disks = new SanDisks(machine, this, () => nodeIds);
    const served = serveSanNode(machine, { san: this.san, disks }, { nodeId, limits, lacks });
    const containers = new Containers({
      ...{ machine, nodeIds, storages: this.storages, data: this.data, trace: this.trace },
      clock: this.scheduler.createClock(),
      random: this.random.fork(`containers of ${name}`),
      onViolation: (text) => this.violate(text),
    });
    const agentProcess = this.add(name, (context, signal) =>
      runNode(context, { machine, containers, onAgent: (agent) => (node.agent = agent) }, signal),
    );
    const driverProcess = this.add(`${name}-driver`, (context, signal) =>
      runDriverNode(context, { machine, driver: SAN_DRIVER, served }, signal),
    );
    const { loopPool: pool } = this;
    const loopProcess =
      pool && this.add(`${name}-loop`, (context, signal) => runLoopNode(context, { machine, pool }, signal));
    const processes = [driverProcess, ...(loopProcess === undefined ? [] : [loopProcess]), agentProcess];
    const node: SimNode = {
      ...{ name, machine, disks, containers, nodeIds, limits, lacks, agentProcess, driverProcess, processes },
      isGone: false,
      agent: undefined,
    };
    this.#hearCalls(machine);
    this.#watchLosses(machine);
    machine.onPowerOff(() => {
      for (const process of processes.toReversed()) process.kill();
    });
    this.nodes.set(name, node);
    for (const listener of this.#onNode) listener(node);
    return node;
  }

  protected override logOf(name: string): Logger {
    if (!this.#logs) return silentLogger;
    return createLogger((level, message, fields) => {
      if (level !== "debug")
        this.trace.addDetail(name, `${message}${fieldsText(fields)}`, aboutFields(fields), {
          isWarning: level !== "info",
        });
    });
  }
}

/** What a log line is about. */
function aboutFields({ volume, claim, pod, node }: LogFields): About {
  const last = (text: string, before: string) => text.slice(text.lastIndexOf(before) + 1);
  return {
    ...(typeof volume === "string" && { volume: last(volume, "^") }),
    ...(typeof claim === "string" && { claim: last(claim, "/") }),
    ...(typeof pod === "string" && { pod: last(pod, "/") }),
    ...(typeof node === "string" && { node }),
  };
}

/** Of a log line, on one line. */
function fieldsText(fields: LogFields): string {
  const parts = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined || key === "component") return [];
    const text =
      value instanceof Error ? value.message : typeof value === "string" ? value : JSON.stringify(value);
    return [`${key}=${text}`];
  });
  return parts.length === 0 ? "" : ` ${parts.join(" ")}`;
}

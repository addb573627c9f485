import { setMaxListeners } from "node:events";
import { createLogger, silentLogger, type LogFields, type Logger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";
import type { AttachDetachController } from "../attach-detach/controller.ts";
import { FORCE_AFTER_MS } from "../attach-detach/options.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import type { NodeAgent } from "../processes/node-agent.ts";
import { Containers } from "./containers.ts";
import { traceCalls } from "./call-lines.ts";
import { Machine } from "./machine.ts";
import {
  runAttacher,
  runCompanions,
  runController,
  runDriverController,
  runDriverNode,
  type AttacherPage,
} from "./members.ts";
import { runNode } from "./node-member.ts";
import { NodeLifecycle } from "./node-lifecycle.ts";
import { San, SAN_DRIVER } from "./san.ts";
import { SanDisks, serveSanNode } from "./san-node.ts";
import { traceObjects } from "./object-changes.ts";
import { Objects } from "./objects.ts";
import { SimScheduler } from "./scheduler.ts";
import { SimServer } from "./server.ts";
import { Supervisor, type LifeContext, type SupervisorDeps } from "./supervisor.ts";
import { Trace, type About, type TraceLine } from "./trace.ts";
import { VolumeData } from "./volume-data.ts";

export interface WorldOptions {
  readonly nodes?: number;
  readonly controllers?: number;
  /** How long a silent node keeps a volume that no pod uses any more; as upstream where left out. */
  readonly forceAfterMs?: number;
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
  /** Under which the storage system knows it; the last is what its driver says now. */
  readonly nodeIds: string[];
  /** Of the present life; undefined before the first. */
  agent: NodeAgent | undefined;
}

const POOL_BYTES = 1n << 40n;
const VOLUMES_MAX = 8;

/**
 * A whole cluster in one process on one simulated scheduler: production code of the API server, two replicas of the
 * controller, the attacher, the companions and the node agents, with a storage system, machines and a network that do as the
 * seed says. One seed gives one order of everything.
 */
export class World {
  readonly scheduler: SimScheduler;
  readonly random: Random;
  readonly trace: Trace;
  readonly server: SimServer;
  readonly san: San;
  readonly data = new VolumeData();
  readonly nodes = new Map<string, SimNode>();
  /** By name; those of nodes included. */
  readonly processes = new Map<string, Supervisor>();
  readonly infra: Machine;
  readonly lifecycle: NodeLifecycle;
  /** Of somebody with a perfect network and every right: the workload. */
  readonly client: Client;
  readonly objects: Objects;
  readonly forceAfterMs: number;
  readonly violations: string[] = [];
  /** Uids of VolumeAttachments that whoever made them by hand has deleted. */
  readonly letGoByHand = new Set<string>();
  /** Of each controller replica, while it leads. */
  readonly controllers = new Map<string, () => AttachDetachController | undefined>();
  /** What the attacher's attachments wait for; of the present life. */
  attacherPage: (() => AttacherPage) | undefined;
  readonly #deps: SupervisorDeps;
  readonly #logs: boolean;

  constructor(seed: number | string, options: WorldOptions = {}) {
    const { nodes = 3, controllers = 2, onLine, logs = true } = options;
    this.forceAfterMs = options.forceAfterMs ?? FORCE_AFTER_MS;
    // Every request and worker listens to the signal of its process.
    setMaxListeners(0);
    this.#logs = logs;
    this.random = createSeededRandom(seed);
    this.scheduler = new SimScheduler(this.random.fork("scheduler"));
    this.trace = new Trace(() => this.scheduler.nowMs, onLine);
    const clock = this.scheduler.createClock();
    this.server = new SimServer(this.scheduler, this.random.fork("server"));
    this.objects = new Objects(this.server.store);
    this.san = new San({ poolBytes: POOL_BYTES });
    this.infra = new Machine(this.scheduler, "infra", this.random.fork("infra"));
    const { transport } = this.server;
    this.client = createClient({ transport, clock, random: this.random.fork("client") });
    this.#deps = {
      scheduler: this.scheduler,
      server: this.server,
      random: this.random.fork("processes"),
      trace: this.trace,
      log: (name) => this.#logOf(name),
      onDefect: (who, error) =>
        this.violate(`${who}: ${error instanceof Error ? error.stack : String(error)}`),
    };
    this.lifecycle = new NodeLifecycle({
      ...{ clock, client: this.client, objects: this.objects, trace: this.trace },
    });
    for (let at = 0; at < controllers; at++) this.#addController(`controller-${at}`);
    const onPage = (page: () => AttacherPage) => void (this.attacherPage = page);
    this.#add("attacher", (context, signal) => runAttacher(context, { machine: this.infra, onPage }, signal));
    this.#add("companions", (context, signal) => runCompanions(context, this.infra, signal));
    this.#add("san-driver", (context, signal) =>
      runDriverController(context, this.infra, this.san.serveController(), signal),
    );
    for (let at = 1; at <= nodes; at++) this.#addNode(`node-${at}`);
    this.san.on({
      published: ({ handle }, node) =>
        this.trace.add("san", `${handle} is published on ${node}`, { volume: handle, node }),
      unpublished: ({ handle }, node) =>
        this.trace.add("san", `${handle} is unpublished from ${node}`, { volume: handle, node }),
      deleted: ({ handle }) => {
        this.data.forget(handle);
        this.trace.add("san", `${handle} is deleted`, { volume: handle });
      },
    });
    for (const machine of [this.infra, ...[...this.nodes.values()].map((node) => node.machine)])
      machine.sockets.onCall = traceCalls(this.trace, machine.name);
  }

  /** Everything is switched on. */
  async start(): Promise<void> {
    await this.server.start();
    traceObjects(this.server.store, this.objects, this.trace);
    this.lifecycle.start();
    for (const process of this.processes.values()) process.start();
  }

  violate(text: string): void {
    this.violations.push(text);
    this.trace.add("VIOLATION", text);
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

  /** Whether the machine that a process runs on is on. */
  isPowered(process: string): boolean {
    return this.nodes.get(process.replace(/-driver$/, ""))?.machine.isOn ?? true;
  }

  #add(name: string, work: (context: LifeContext, signal: AbortSignal) => Promise<void>): Supervisor {
    const process = new Supervisor(this.#deps, name, work);
    this.processes.set(name, process);
    return process;
  }

  #addController(name: string): void {
    const onProcess = (current: () => AttachDetachController | undefined) =>
      void this.controllers.set(name, current);
    const { forceAfterMs } = this;
    this.#add(name, (context, signal) => runController(context, { onProcess, forceAfterMs }, signal));
  }

  #addNode(name: string): void {
    const machine = new Machine(this.scheduler, name, this.random.fork(name));
    const nodeIds = [name];
    const nodeId = () => nodeIds.at(-1) ?? name;
    const hasDisk = (handle: string) => nodeIds.some((id) => this.san.isPublished(handle, id));
    const disks = new SanDisks(machine, this.san, () => nodeIds);
    const served = serveSanNode(machine, { san: this.san, disks }, { nodeId, volumesMax: VOLUMES_MAX });
    const containers = new Containers({
      ...{ machine, hasDisk, san: this.san, data: this.data, trace: this.trace },
      clock: this.scheduler.createClock(),
      random: this.random.fork(`containers of ${name}`),
      onViolation: (text) => this.violate(text),
    });
    const node: SimNode = {
      ...{ name, machine, disks, containers, nodeIds, agent: undefined },
      agentProcess: this.#add(name, (context, signal) =>
        runNode(context, { machine, containers, onAgent: (agent) => (node.agent = agent) }, signal),
      ),
      driverProcess: this.#add(`${name}-driver`, (context, signal) =>
        runDriverNode(context, { machine, driver: SAN_DRIVER, served }, signal),
      ),
    };
    machine.onPowerOff(() => {
      node.agentProcess.kill();
      node.driverProcess.kill();
    });
    this.nodes.set(name, node);
  }

  #logOf(name: string): Logger {
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

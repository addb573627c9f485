import type { Container, PodSpec, Volume } from "kubernetes-types/core/v1.js";
import { createLogger, type LogFields, type Logger } from "../base/log.ts";
import type { Channel } from "../csi/methods.ts";
import { csiDrivers, type CSIDriver } from "../kube/api/csi-driver.ts";
import { events } from "../kube/api/event.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { createClient } from "../kube/client/api-client.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Transport } from "../kube/transport/transport.ts";
import { createNodeCaches } from "../node/caches.ts";
import type { Host } from "../node/host.ts";
import { createVolumeManager, type VolumeManager } from "../node/manager.ts";
import { createNodeObjects } from "../node/node-objects.ts";
import { createPaths } from "../node/paths.ts";
import type { NodePlugin } from "../node/plugin.ts";
import { createPluginTable } from "../node/plugin-table.ts";
import type { PodStates } from "../node/pod-states.ts";
import { createBuiltInPlugins } from "../node/plugins/built-in.ts";
import { createCsiPlugin } from "../node/plugins/csi.ts";
import { createCsiDrivers, type CsiDrivers } from "../node/plugins/csi-drivers.ts";
import type { Selinux } from "../node/steps/selinux.ts";
import { createTokenCache } from "../node/tokens.ts";
import type { NodeName } from "../volumes/names.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { DRIVER, serviceAccounts } from "./cluster-objects.ts";
import { SimCluster, type VolumeSketch } from "./cluster.ts";
import { NODE_ROOT } from "./machine.ts";
import { SimNodeDriver } from "./node-driver.ts";
import type { ProgramContext } from "./program.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";

export { NODE_ROOT };
export const NODE = "n1";

export interface NodeWorldSketch {
  readonly seed?: number;
  /** By label; those that pods use and that are not named here are ordinary ReadWriteOnce volumes. */
  readonly volumes?: Readonly<Record<string, VolumeSketch>>;
  readonly pods?: Readonly<Record<string, NodePodSketch>>;
  /** The CSIDriver object; none where left out. */
  readonly driver?: CSIDriver["spec"];
  /** False: the test attaches, by `world.attach`. */
  readonly attached?: boolean;
  readonly registered?: boolean;
  /** False leaves the start of the agent to the test. */
  readonly started?: boolean;
  readonly plugins?: readonly NodePlugin[];
  /** The plugins of the node itself beside CSI; without, only what a test needs is there. */
  readonly builtIn?: boolean;
  readonly controllerAttaches?: boolean;
  /** SELinux of the machine; none where left out. */
  readonly selinux?: Selinux;
  readonly selinuxMount?: boolean;
  readonly podStates?: PodStates;
  /** The driver lives in the agent's process; a string is another driver than the one of this world that does. */
  readonly ownDriver?: boolean | string;
}

export interface NodePodSketch {
  readonly uses?: readonly string[];
  readonly inline?: readonly Volume[];
  readonly readOnly?: boolean;
  /** Instead of one container that mounts everything. */
  readonly containers?: readonly Container[];
  readonly spec?: Partial<PodSpec>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Below the first back-off of 500 ms, so that settling never includes a retry. */
const SETTLE_MS = 400;

/** A node with one agent on it, as sketched, after everything has come to rest. */
export async function given(sketch: NodeWorldSketch = {}): Promise<NodeWorld> {
  const world = new NodeWorld(sketch);
  await world.server.start();
  await world.populate();
  if (sketch.started !== false) world.start();
  await world.settle();
  return world;
}

/** The surroundings as one process sees them. */
export interface AgentView {
  readonly host?: Host;
  readonly wrapTransport?: (transport: Transport) => Transport;
  readonly wrapChannel?: (channel: Channel) => Channel;
}

function same<T>(value: T): T {
  return value;
}

export class NodeWorld extends SimCluster {
  readonly machine: MemoryHost;
  readonly driver: SimNodeDriver;
  readonly log: { message: string; fields: LogFields }[] = [];
  /** How often the agent asked a driver anew how much the node can take. */
  refreshed = 0;
  /** Tokens given to pods so far, each good for this long. */
  tokensGiven = 0;
  tokenLifeMs = 3_600_000;
  /** `GET /api/v1/...` of the agent, without those that watch. */
  readonly requests: string[] = [];
  readonly #refusals: { matches: (line: string) => boolean; skip: number; left: number }[] = [];
  readonly #sketch: NodeWorldSketch;
  /** By uid, of all there ever were. */
  readonly #podNames = new Map<string, string>();
  #agent: { readonly manager: VolumeManager; readonly drivers: CsiDrivers } | undefined;

  constructor(sketch: NodeWorldSketch) {
    super({ seed: sketch.seed, settleMs: SETTLE_MS });
    this.#sketch = sketch;
    this.machine = createMemoryHost({ clock: this.clock });
    this.driver = new SimNodeDriver({ clock: this.clock, host: this.machine });
  }

  async populate(): Promise<void> {
    const { volumes = {}, pods: wanted = {}, driver, attached = true } = this.#sketch;
    const used = Object.values(wanted).flatMap(({ uses = [] }) => uses);
    const all = new Map<string, VolumeSketch>(used.map((label) => [label, {}]));
    for (const [label, volume] of Object.entries(volumes)) all.set(label, volume);
    if (driver) await this.client.create(csiDrivers, { metadata: { name: DRIVER }, spec: driver });
    await this.createNode(NODE);
    for (const [label, volume] of all) await this.createVolume(label, volume);
    if (attached) for (const label of all.keys()) await this.attach(label);
    for (const [name, pod] of Object.entries(wanted)) await this.startPod(name, pod);
  }

  /** The claim as the server has it. */
  claim(label: string): PersistentVolumeClaim | undefined {
    return this.read(persistentVolumeClaims, { namespace: "default", name: `claim-${label}` });
  }

  /** What a resizer writes there. */
  async setClaimStatus(label: string, status: object): Promise<void> {
    const ref = { namespace: "default", name: `claim-${label}` };
    const patch = { type: "merge", value: { status } } as const;
    await this.client.patch(persistentVolumeClaims, ref, patch, { subresource: "status" });
  }

  /** What the attach/detach controller and the driver's attacher do. */
  async attach(label: string): Promise<void> {
    const name = this.attachmentOf(label);
    await this.client
      .create(volumeAttachments, {
        metadata: { name },
        spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: `pv-${label}` } },
      })
      .catch((error: unknown) => {
        if (!isKubeError(error, "AlreadyExists")) throw error;
      });
    const value = { status: { attached: true } };
    await this.client.patch(volumeAttachments, { name }, { type: "merge", value }, { subresource: "status" });
    await this.setAttached(NODE, [...new Set([...this.volumesAttached(NODE), label])]);
  }

  attachmentOf(label: string): string {
    return volumeAttachmentName({ driver: DRIVER, volumeHandle: this.labels.handleOf(label) ?? label }, NODE);
  }

  async startPod(name: string, sketch: NodePodSketch = {}): Promise<Pod> {
    const { uses = [], inline = [], readOnly = false, containers, spec, annotations } = sketch;
    const claimed = uses.map((label): Volume => {
      return { name: label, persistentVolumeClaim: { claimName: `claim-${label}`, readOnly } };
    });
    const volumes = [...claimed, ...inline];
    const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/mnt/${volume.name}` }));
    await this.#ensureAccount();
    const pod = await this.client.create(pods, {
      metadata: { name, namespace: "default", ...(annotations && { annotations }) },
      spec: {
        nodeName: NODE,
        containers: [...(containers ?? [{ name: "app", image: "example/app", volumeMounts }])],
        volumes,
        // What the server would add is a volume of its own, which is no part of a scenario.
        automountServiceAccountToken: false,
        ...spec,
      },
    });
    this.#podNames.set(pod.metadata.uid ?? "", name);
    return pod;
  }

  uidOf(name: string): string {
    return this.pod(name)?.metadata.uid ?? "";
  }

  /** Starts the agent on this machine. `host` is the machine as this process sees it: faults, death. */
  start(view: AgentView = {}): void {
    this.launch(
      "agent",
      () => undefined,
      (context, signal) => this.#run(context, view, signal),
    );
    if (this.#sketch.registered !== false) this.registerDriver();
  }

  async #run(context: ProgramContext, view: AgentView, signal: AbortSignal): Promise<void> {
    const { clock, random, log, metrics, life } = context;
    const { host = this.machine, wrapTransport = same, wrapChannel = same } = view;
    const transport = wrapTransport(this.#watched(context.transport));
    const client = createClient({ transport, clock, random: random.fork("agent-client") });
    const caches = createNodeCaches(
      { client, clock, random: random.fork("caches"), log, metrics },
      { nodeName: NODE },
    );
    const recorder = createEventRecorder(
      { client, clock, random, log, metrics },
      { component: "kubelet", host: NODE },
    );
    const paths = createPaths(NODE_ROOT);
    const drivers = createCsiDrivers({ clock, connect: () => life.bind(wrapChannel(this.driver.connect())) });
    const tokens = createTokenCache({ clock, random: random.fork("tokens"), log }, async () => ({
      token: `token-${++this.tokensGiven}`,
      expirationTimestamp: new Date(clock.wall().getTime() + this.tokenLifeMs).toISOString(),
    }));
    const objects = createNodeObjects(caches, {
      nodeName: NODE,
      token: (wanted, signal) => tokens.token(wanted, signal),
    });
    const deps = { host, objects, paths, clock, random: random.fork("plugins"), log, events: recorder };
    const refreshAllocatable = async () => {
      this.refreshed++;
    };
    const csi = createCsiPlugin({ ...deps, drivers, nodeName: NODE }, { refreshAllocatable });
    const { podStates, controllerAttaches, builtIn, plugins = [], selinux, selinuxMount } = this.#sketch;
    const ownDriver = this.#sketch.ownDriver === true ? DRIVER : this.#sketch.ownDriver || undefined;
    const own = builtIn ? createBuiltInPlugins({ ...deps, forgetTokens: (uid) => tokens.forget(uid) }) : [];
    const table = createPluginTable(() => [csi, ...own, ...plugins]);
    const manager = createVolumeManager(
      {
        client,
        caches,
        events: recorder,
        clock,
        random,
        log,
        metrics,
        host,
        paths,
        plugins: table,
        nodeName: NODE as NodeName,
      },
      {
        tokenDueAtMs: (uid) => tokens.refreshAtMs(uid),
        ...(ownDriver !== undefined && { ownDriver }),
        ...(podStates && { podStates }),
        ...(controllerAttaches !== undefined && { controllerAttaches }),
        ...(selinux && { selinux }),
        ...(selinuxMount !== undefined && { selinuxMount }),
      },
    );
    drivers.onChange((name) => manager.changed({ kind: "driver", name }));
    this.#agent = { manager, drivers };
    await Promise.all([caches.run(signal), recorder.run(signal), manager.run(signal)]);
  }

  protected override logOf(): Logger {
    return createLogger((_level, message, fields) => void this.log.push({ message, fields }));
  }

  /** The next requests of the agent that match are forbidden; the first `skip` of them do not. */
  refuse(matches: (line: string) => boolean, { times = 1, skip = 0 } = {}): void {
    this.#refusals.push({ matches, skip, left: times });
  }

  #watched(transport: Transport): Transport {
    return {
      ...transport,
      request: async (request) => {
        const line = `${request.method} ${request.path}`;
        this.requests.push(line);
        const refusal = this.#refusals.find(({ left, matches }) => left > 0 && matches(line));
        if (!refusal || refusal.skip-- > 0) return transport.request(request);
        refusal.left--;
        const message = "refused on request";
        const status = { kind: "Status", status: "Failure", reason: "Forbidden", message, code: 403 };
        return { status: 403, headers: {}, body: JSON.stringify(status) };
      },
      stream: (request) => transport.stream(request),
      close: () => transport.close(),
    };
  }

  registerDriver(): void {
    const { drivers } = this.#running;
    drivers.put(drivers.open({ name: DRIVER, endpoint: "/csi.sock", version: "1.0.0" }));
  }

  get manager(): VolumeManager {
    return this.#running.manager;
  }

  get #running() {
    if (!this.#agent) throw new Error("the agent does not run");
    return this.#agent;
  }

  /** Ends the agent in good order; what it mounted stays. */
  async stop(): Promise<void> {
    const ended = this.program.stop();
    await this.advance(6_000);
    await ended;
    this.#agent = undefined;
  }

  /** The process is dead already: nothing of it is waited for, and its watches end. */
  abandon(): void {
    this.program.kill();
    this.#agent = undefined;
  }

  runFor(ms: number): Promise<void> {
    return this.advance(ms);
  }

  /** Since the last call of this. */
  takeCalls(): string[] {
    return this.driver.calls.splice(0).map((line) => this.#named(line));
  }

  /** Pods by name instead of uid. */
  #named(line: string): string {
    return [...this.#podNames].reduce((text, [uid, name]) => text.replace(uid, name), line);
  }

  /** Labels, as the server has them. */
  inUse(): string[] {
    return [...this.volumesInUse(NODE)].sort();
  }

  /** `reason message` of what the agent told about objects. */
  told(): string[] {
    return this.list(events).map(({ reason, message }) => `${reason} ${message}`);
  }

  async mountPoints(): Promise<string[]> {
    const table = await this.machine.mounts.table();
    return table.below(NODE_ROOT).map(({ path }) => path);
  }

  async setNodeLabels(labels: Readonly<Record<string, string>>): Promise<void> {
    await this.client.patch(nodes, { name: NODE }, { type: "merge", value: { metadata: { labels } } });
  }

  async #ensureAccount(): Promise<void> {
    const account = { name: "default", namespace: "default" };
    if (this.read(serviceAccounts, account) === undefined)
      await this.client.create(serviceAccounts, { metadata: account });
  }
}

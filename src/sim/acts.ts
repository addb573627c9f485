import { unreachable } from "../base/assert.ts";
import { csiDrivers, type CSIDriver } from "../kube/api/csi-driver.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { pods } from "../kube/api/pod.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { NAMESPACE, type Apps } from "./apps.ts";
import { OUT_OF_SERVICE } from "./cluster-objects.ts";
import { NO_FAULTS, type NetworkFaults } from "./faulty-transport.ts";
import { renderAct, type Act } from "./plan.ts";
import { SAN_DRIVER } from "./san.ts";
import { NO_CALL_FAULTS } from "./sockets.ts";
import type { About } from "./trace.ts";
import type { World } from "./world.ts";

const BY_HAND = { "made-by": "hand" };

/** Whether somebody made the VolumeAttachment himself. */
export function isByHand({
  labels,
}: {
  readonly labels?: Readonly<Record<string, string>> | undefined;
}): boolean {
  return labels?.["made-by"] === "hand";
}

/** Carries out the acts of a plan, and takes everything back that they broke. */
export class Acts {
  readonly #world: World;
  readonly #apps: Apps;
  /** Lives of nodes that an operator has declared dead, which he does only once they are. */
  readonly #tainted = new Set<string>();

  constructor(world: World, apps: Apps) {
    this.#world = world;
    this.#apps = apps;
  }

  perform(act: Act): void {
    this.#world.trace.add("plan", renderAct(act), aboutAct(act));
    void this.#perform(act).catch((error: unknown) =>
      this.#world.trace.add("plan", `failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  /** Nothing is broken any more, and nobody breaks anything. */
  async heal(): Promise<void> {
    const { server, processes, nodes: all, infra } = this.#world;
    await server.start();
    for (const { sockets, host } of [infra, ...[...all.values()].map(({ machine }) => machine)]) {
      sockets.faults = NO_CALL_FAULTS;
      for (const { path } of host.tree.mounts) {
        host.heal(path);
        host.release(path);
      }
    }
    await makeDriver(this.#client);
    this.#setFull(false);
    for (const name of all.keys()) await this.#powerOn(name);
    for (const process of processes.values()) {
      process.setLink("up");
      process.setFaults(NO_FAULTS);
      process.start();
    }
    for (const name of all.keys()) await this.#uncordon(name);
    for (const { containers } of all.values()) containers.stuckUntilMs = 0;
    const { items } = await this.#client.list(volumeAttachments);
    for (const { metadata } of items) if (isByHand(metadata)) await this.#letGoByHand(metadata.name ?? "");
  }

  get #client() {
    return this.#world.client;
  }

  async #perform(act: Act): Promise<void> {
    const { server } = this.#world;
    switch (act.kind) {
      case "add-app":
        this.#apps.add({ ...act, name: act.app });
        return;
      case "finish-pod":
        return this.#finish(act.app);
      case "remove-app":
        return this.#apps.remove(act.app);
      case "delete-pod":
        return this.#deletePod(act);
      case "grow":
        return this.#grow(act.app);
      case "drain":
        return this.#drain(act);
      case "delete-node":
        return this.#client.delete(nodes, { name: act.node });
      case "foreign-attachment":
        return this.#attachByHand(act);
      case "power-off":
        return this.#powerOff(act);
      case "kill":
      case "stop":
      case "freeze":
      case "link":
      case "lossy":
        return this.#breakProcess(act);
      case "kill-server":
        server.kill();
        this.#later(act.forMs, () => server.start());
        return;
      case "driver-faults":
        return this.#breakDriver(act);
      case "pool-full":
        this.#setFull(true);
        this.#later(act.forMs, async () => this.#setFull(false));
        return;
      case "rename-node-id": {
        const node = this.#world.node(act.node);
        node.driverProcess.kill();
        node.nodeIds.push(`${act.node}-${node.nodeIds.length}`);
        this.#later(1_000, async () => node.machine.isOn && node.driverProcess.start());
        return;
      }
      case "hang-mount":
      case "hold-mount":
        return this.#breakMount(act);
      case "set-clock":
        this.#world.processes.get(act.process)?.jumpWall(act.byMs);
        return;
      case "delete-csi-driver":
        await this.#client.delete(csiDrivers, { name: SAN_DRIVER });
        this.#later(act.forMs, () => makeDriver(this.#client));
        return;
      case "stuck": {
        const { containers } = this.#world.node(act.node);
        containers.stuckUntilMs = Math.max(containers.stuckUntilMs, this.#world.scheduler.nowMs + act.forMs);
        return;
      }
      default:
        unreachable(act);
    }
  }

  #setFull(isFull: boolean): void {
    const { san, loopPool } = this.#world;
    san.isFull = isFull;
    if (loopPool !== undefined) loopPool.isFull = isFull;
  }

  #later(ms: number, work: () => Promise<unknown>): void {
    const { scheduler } = this.#world;
    scheduler.createClock().after(ms, () => void work().catch(() => undefined));
  }

  async #deletePod({ app: name, force, node }: Extract<Act, { kind: "delete-pod" }>): Promise<void> {
    const app = this.#apps.apps.get(name);
    if (app !== undefined) app.node = node;
    const options = force ? { gracePeriodSeconds: 0 } : {};
    await this.#client.delete(pods, { namespace: NAMESPACE, name: `${name}-0` }, options);
  }

  /** As a kubelet says it: only once no container is left. */
  async #finish(name: string): Promise<void> {
    const pod = this.#apps.podOf({ name });
    const node = this.#world.nodes.get(pod?.spec?.nodeName ?? "");
    const { uid = "" } = pod?.metadata ?? {};
    if (pod === undefined || node?.containers.running.has(uid) !== true) return;
    node.containers.onEnd(uid, () => {
      const value = { metadata: { uid }, status: { phase: "Succeeded" } };
      const ref = { namespace: NAMESPACE, name: `${name}-0` };
      const options = { subresource: "status" } as const;
      // It is said again until somebody hears it, or the pod is another.
      const say = () =>
        void this.#client.patch(pods, ref, { type: "merge", value }, options).catch(() => {
          if (this.#apps.podOf({ name })?.metadata.uid === uid) this.#later(1_000, async () => say());
        });
      say();
    });
    node.containers.end(uid);
  }

  #breakMount({ kind, node, forMs }: Extract<Act, { kind: "hang-mount" | "hold-mount" }>): Promise<void> {
    const { host, mounts } = this.#world.node(node).machine;
    const path = mounts.findLast((mount) => this.#world.storages.at(mount) !== undefined)?.path;
    if (path === undefined) return Promise.resolve();
    if (kind === "hang-mount") host.hang(path);
    else host.hold(path);
    this.#later(forMs, async () => {
      if (kind === "hang-mount") host.heal(path);
      else host.release(path);
    });
    return Promise.resolve();
  }

  async #grow(name: string): Promise<void> {
    const claim = this.#apps.claimOf({ name });
    if (claim === undefined) return;
    const now = Number.parseInt(claim.spec?.resources?.requests?.["storage"] ?? "1", 10);
    const value = { spec: { resources: { requests: { storage: `${now + 1}Gi` } } } };
    await this.#client.patch(
      persistentVolumeClaims,
      { namespace: NAMESPACE, name },
      { type: "merge", value },
    );
  }

  /** `kubectl drain`: cordoned, and its pods deleted. */
  async #drain({ node, forMs }: Extract<Act, { kind: "drain" }>): Promise<void> {
    const value = { spec: { unschedulable: true } };
    await this.#client.patch(nodes, { name: node }, { type: "merge", value });
    this.#later(forMs, () => this.#uncordon(node));
    for (const { metadata, spec } of this.#world.objects.all("pods"))
      if (spec?.nodeName === node)
        await this.#client.delete(pods, { namespace: NAMESPACE, name: metadata.name ?? "" });
  }

  async #uncordon(name: string): Promise<void> {
    const value = { spec: { unschedulable: null } };
    await this.#client.patch(nodes, { name }, { type: "merge", value }).catch(() => undefined);
  }

  /** Somebody makes a VolumeAttachment of his own for the disk of an app, and deletes it again. */
  async #attachByHand(act: Extract<Act, { kind: "foreign-attachment" }>): Promise<void> {
    const { app, node, disguisedFor, forMs } = act;
    const volume = this.#apps.claimOf({ name: app })?.spec?.volumeName;
    if (volume === undefined) return;
    const csi = this.#world.objects.get("persistentvolumes", volume)?.spec?.csi;
    if (csi === undefined) return;
    const name =
      disguisedFor === undefined || disguisedFor === node
        ? `by-hand-${app}-${node}`
        : volumeAttachmentName(csi, disguisedFor);
    const spec = { attacher: csi.driver, nodeName: node, source: { persistentVolumeName: volume } };
    await this.#client.create(volumeAttachments, { metadata: { name, labels: BY_HAND }, spec });
    this.#later(forMs, () => this.#letGoByHand(name));
  }

  async #letGoByHand(name: string): Promise<void> {
    const { metadata } = this.#world.objects.get("volumeattachments.storage.k8s.io", name) ?? {};
    if (metadata === undefined || !isByHand(metadata)) return;
    this.#world.letGoByHand.add(metadata.uid ?? "");
    await this.#client.delete(volumeAttachments, { name }).catch(() => undefined);
  }

  #powerOff({ node: name, forMs, taint }: Extract<Act, { kind: "power-off" }>): Promise<void> {
    const { machine } = this.#world.node(name);
    machine.powerOff();
    if (taint)
      this.#later(Math.min(forMs / 2, 30_000), async () => {
        // An operator looks before he says so.
        if (!machine.isOn) await this.#setTaint(name, true);
      });
    this.#later(forMs, () => this.#powerOn(name));
    return Promise.resolve();
  }

  async #powerOn(name: string): Promise<void> {
    const { machine, disks, processes } = this.#world.node(name);
    // Asked again after an await, which the compiler takes for the same answer.
    const isOn = () => machine.isOn;
    if (isOn()) return;
    // The taint goes first: a node that lives must not be one that nobody has to wait for.
    while (this.#tainted.has(name)) {
      await this.#setTaint(name, false).catch(() => undefined);
      if (this.#tainted.has(name)) await this.#world.scheduler.createClock().sleep(1_000);
    }
    if (isOn()) return;
    machine.powerOn();
    disks.discover();
    this.#world.trace.add(name, "is switched on");
    for (const process of processes) process.start();
  }

  async #setTaint(name: string, on: boolean): Promise<void> {
    const node = this.#world.objects.get("nodes", name);
    if (node === undefined) {
      this.#tainted.delete(name);
      return;
    }
    const others = (node.spec?.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE);
    const taint = { key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" };
    const { resourceVersion } = node.metadata;
    const value = { metadata: { resourceVersion }, spec: { taints: on ? [...others, taint] : others } };
    await this.#client.patch(nodes, { name }, { type: "merge", value });
    if (on) this.#tainted.add(name);
    else this.#tainted.delete(name);
    this.#world.trace.add("operator", `${on ? "taints" : "untaints"} ${name}`, { to: name });
    if (!on) return;
    // Pods of a node out of service are deleted with force by kube-controller-manager.
    for (const { metadata, spec } of this.#world.objects.all("pods"))
      if (spec?.nodeName === name)
        await this.#client
          .delete(pods, { namespace: NAMESPACE, name: metadata.name ?? "" }, { gracePeriodSeconds: 0 })
          .catch(() => undefined);
  }

  async #breakProcess(
    act: Extract<Act, { kind: "kill" | "stop" | "freeze" | "link" | "lossy" }>,
  ): Promise<void> {
    const process = this.#world.processes.get(act.process);
    if (process === undefined) return;
    switch (act.kind) {
      case "freeze":
        process.freezeFor(act.forMs);
        return;
      case "link":
        process.setLink(act.state);
        this.#later(act.forMs, async () => process.setLink("up"));
        return;
      case "lossy":
        process.setFaults(faultsOf(act.rate));
        this.#later(act.forMs, async () => process.setFaults(NO_FAULTS));
        return;
      case "kill":
        process.kill();
        break;
      case "stop":
        process.stop();
    }
    this.#later(act.forMs, async () => {
      if (this.#world.isPowered(act.process)) process.start();
    });
  }

  async #breakDriver({
    machine,
    rate,
    slowMs,
    forMs,
  }: Extract<Act, { kind: "driver-faults" }>): Promise<void> {
    const { sockets } = machine === "infra" ? this.#world.infra : this.#world.node(machine).machine;
    const codes = ["UNAVAILABLE", "INTERNAL", "ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"] as const;
    sockets.faults = { refused: rate / 2, answerLost: rate / 3, hung: rate / 10, takesMsMax: slowMs, codes };
    this.#later(forMs, async () => {
      sockets.faults = NO_CALL_FAULTS;
    });
  }
}

/** Whom it hits: a process, a node, a machine. */
function aboutAct(act: Act): About {
  const { process, node, machine, app } = act as Readonly<Record<string, unknown>>;
  const to = process ?? (app === undefined ? node : undefined) ?? machine;
  return { ...(typeof to === "string" && { to }), ...(typeof app === "string" && { claim: app }) };
}

/** The CSIDriver object; one that is there is fine. */
export async function makeDriver(client: Client): Promise<void> {
  const spec = { attachRequired: true } as CSIDriver["spec"];
  await client.create(csiDrivers, { metadata: { name: SAN_DRIVER }, spec }).catch(() => undefined);
}

/** Everything that can happen to a request or a watch, each with a part of the rate. */
function faultsOf(rate: number): NetworkFaults {
  return {
    ...NO_FAULTS,
    unreachable: rate / 3,
    lostRequest: rate / 10,
    lostAnswer: rate / 2,
    late: rate / 3,
    lateMsMax: 20_000,
    tooMany: rate / 3,
    serverError: rate / 3,
    expired: rate / 20,
    cut: rate / 5,
    silent: rate / 20,
    repeated: rate / 3,
    expiredInStream: rate / 10,
    garbled: rate / 20,
    latencyMsMax: 200,
  };
}

import type { PersistentVolumeSpec, PodSpec, Taint } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { createLogger, type Logger } from "../../base/log.ts";
import { csiDrivers } from "../../kube/api/csi-driver.ts";
import { csiNodes } from "../../kube/api/csi-node.ts";
import { nodes } from "../../kube/api/node.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { RecordedEvent } from "../../kube/events/events.ts";
import type { TransportRequest } from "../../kube/transport/transport.ts";
import { readyConditions, serviceAccounts } from "../../sim/cluster-objects.ts";
import type { NetworkFaults } from "../../sim/faulty-transport.ts";
import { Harness } from "../../sim/harness.ts";
import { storageClasses } from "../kinds.ts";
import { SELECTED_NODE } from "../names.ts";
import { createScheduler } from "./scheduler.ts";

export const DRIVER = "csi.test";

export interface NodeSketch {
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  readonly ready?: "True" | "False" | "Unknown";
  readonly allocatable?: Readonly<Record<string, string>>;
  /** How many volumes of the driver it takes; undefined: no limit. `none`: the driver is not registered. */
  readonly limit?: number | "none" | undefined;
}

export interface ClaimSketch {
  readonly storageClass?: string;
  readonly modes?: readonly string[];
  readonly metadata?: Partial<ObjectMeta>;
}

interface Sketch {
  readonly seed?: number;
  readonly network?: () => NetworkFaults;
}

/** An API server and nothing else; tests make nodes, claims and pods, and play the binder. */
export async function given(sketch: Sketch = {}): Promise<SchedulerWorld> {
  const world = new SchedulerWorld({ ...sketch, settleMs: 300 });
  await world.server.start();
  await world.client.create(serviceAccounts, { metadata: { name: "default", namespace: "default" } });
  await world.client.create(csiDrivers, { metadata: { name: DRIVER }, spec: {} });
  await world.createClass("later", "WaitForFirstConsumer");
  await world.createClass("now", "Immediate");
  return world;
}

export class SchedulerWorld extends Harness {
  readonly events: RecordedEvent[] = [];
  readonly log: string[] = [];
  /** Called for every request of the scheduler, before it is carried out. */
  onRequest: (line: string) => void = () => undefined;

  start(): void {
    const describe = (request: TransportRequest) => {
      const line = toLine(request);
      if (line !== undefined) this.onRequest(line);
      return line;
    };
    const events = { record: (event: RecordedEvent) => void this.events.push(event) };
    this.launch("scheduler", describe, (context, signal) =>
      createScheduler({ ...context, events }).run(signal),
    );
  }

  protected override logOf(): Logger {
    return createLogger((level, message) => this.log.push(`${level} ${message}`));
  }

  /** Writes of the scheduler so far, as `POST pods/binding web`. */
  writes(): string[] {
    return this.transport.requests.map(({ line }) => line);
  }

  /** Events so far, as `Scheduled: ...`. */
  told(): string[] {
    return this.events.map(({ reason, message }) => `${reason}: ${message}`);
  }

  /** How many times a pod was looked at. */
  async plans(): Promise<number> {
    return (await this.program.metric("mooring_scheduler_plans_total", [])) ?? 0;
  }

  pod(name: string): Pod | undefined {
    return this.read(pods, { name, namespace: "default" });
  }

  claim(name: string): PersistentVolumeClaim | undefined {
    return this.read(persistentVolumeClaims, { name, namespace: "default" });
  }

  podsByNode(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { spec } of this.list(pods))
      if (spec?.nodeName) counts[spec.nodeName] = (counts[spec.nodeName] ?? 0) + 1;
    return counts;
  }

  nodeOf(pod: string): string | undefined {
    return this.pod(pod)?.spec?.nodeName;
  }

  selectedNodeOf(claim: string): string | undefined {
    return this.claim(claim)?.metadata.annotations?.[SELECTED_NODE];
  }

  /** `Unschedulable: 0/1 nodes ...` */
  whyNot(pod: string): string | undefined {
    const condition = this.pod(pod)?.status?.conditions?.find(({ type }) => type === "PodScheduled");
    return condition?.status === "False" ? `${condition.reason}: ${condition.message}` : undefined;
  }

  async createNode(name: string, sketch: NodeSketch = {}): Promise<void> {
    const { labels = {}, taints = [], ready = "True", allocatable, limit } = sketch;
    await this.client.create(nodes, {
      metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } },
      ...(taints.length > 0 && { spec: { taints: [...taints] } }),
      status: { conditions: readyConditions(ready), ...(allocatable && { allocatable }) },
    });
    if (limit === "none") return;
    const driver = {
      name: DRIVER,
      nodeID: name,
      ...(limit !== undefined && { allocatable: { count: limit } }),
    };
    await this.client.create(csiNodes, { metadata: { name }, spec: { drivers: [driver] } });
  }

  async createClass(name: string, volumeBindingMode: string, more: object = {}): Promise<void> {
    await this.client.create(storageClasses, {
      metadata: { name },
      provisioner: DRIVER,
      volumeBindingMode,
      ...more,
    });
  }

  async createClaim(name: string, sketch: ClaimSketch = {}): Promise<void> {
    const { storageClass = "now", modes = ["ReadWriteOnce"], metadata = {} } = sketch;
    await this.client.create(persistentVolumeClaims, {
      metadata: { name, namespace: "default", ...metadata },
      spec: {
        accessModes: [...modes],
        storageClassName: storageClass,
        resources: { requests: { storage: "1Gi" } },
      },
    });
  }

  async createVolume(
    name: string,
    spec: Partial<PersistentVolumeSpec> = {},
    { available = true } = {},
  ): Promise<PersistentVolume> {
    const made = await this.client.create(persistentVolumes, {
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        storageClassName: "now",
        csi: { driver: DRIVER, volumeHandle: `handle-${name}` },
        ...spec,
      },
    });
    if (!available) return made;
    const value = { status: { phase: "Available" } };
    return this.client.patch(
      persistentVolumes,
      { name },
      { type: "merge", value },
      { subresource: "status" },
    );
  }

  /** What the binder does: volume and claim name each other, and the claim is Bound. */
  async bind(claimName: string, volumeName: string): Promise<void> {
    const claim = this.claim(claimName);
    const { name, namespace, uid } = claim?.metadata ?? {};
    const claimRef = { kind: "PersistentVolumeClaim", name, namespace, uid };
    const spec = { claimRef };
    await this.client.patch(persistentVolumes, { name: volumeName }, { type: "merge", value: { spec } });
    const ref = { name: claimName, namespace: "default" };
    const named = { spec: { volumeName } };
    await this.client.patch(persistentVolumeClaims, ref, { type: "merge", value: named });
    const status = { status: { phase: "Bound" } };
    await this.client.patch(
      persistentVolumeClaims,
      ref,
      { type: "merge", value: status },
      { subresource: "status" },
    );
  }

  /** What a provisioner and the binder do together. */
  async provision(claimName: string, nodeAffinity?: PersistentVolumeSpec["nodeAffinity"]): Promise<void> {
    const volume = `pv-${claimName}`;
    const storageClassName = this.claim(claimName)?.spec?.storageClassName ?? "";
    await this.createVolume(volume, { storageClassName, ...(nodeAffinity && { nodeAffinity }) });
    await this.bind(claimName, volume);
  }

  async createBoundClaim(name: string, sketch: ClaimSketch = {}): Promise<void> {
    await this.createClaim(name, sketch);
    await this.provision(name);
  }

  async createPod(
    name: string,
    spec: Partial<PodSpec> = {},
    metadata: Partial<ObjectMeta> = {},
  ): Promise<void> {
    await this.client.create(pods, {
      metadata: { name, namespace: "default", ...metadata },
      spec: { containers: [{ name: "app", image: "example/app" }], ...spec },
    });
  }

  /** As a node does when the pod's volumes are gone. */
  async removePod(name: string): Promise<void> {
    await this.client
      .delete(pods, { name, namespace: "default" }, { gracePeriodSeconds: 0 })
      .catch((error: unknown) => {
        if (!isKubeError(error, "NotFound")) throw error;
      });
  }

  async patchNode(name: string, value: object): Promise<void> {
    await this.client.patch(nodes, { name }, { type: "merge", value });
  }

  /** A provisioner that cannot make the volume there. */
  async deselect(claim: string): Promise<void> {
    const value = { metadata: { annotations: { [SELECTED_NODE]: null } } };
    const ref = { name: claim, namespace: "default" };
    await this.client.patch(persistentVolumeClaims, ref, { type: "merge", value });
  }

  async patchNodeStatus(name: string, status: object): Promise<void> {
    await this.client.patch(nodes, { name }, { type: "merge", value: { status } }, { subresource: "status" });
  }

  setReady(name: string, ready: "True" | "False"): Promise<void> {
    return this.patchNodeStatus(name, { conditions: readyConditions(ready) });
  }
}

/** Reads are left out, except of single objects. */
function toLine({ method, path }: TransportRequest): string | undefined {
  const parts = (path.split("?", 1)[0] ?? "").split("/").slice(1);
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  const [plural = "", name = "", sub] = rest[0] === "namespaces" && rest.length > 2 ? rest.slice(2) : rest;
  if (method === "GET" && name === "") return undefined;
  return `${method} ${plural}${sub === undefined ? "" : `/${sub}`} ${name}`.trim();
}

import { csiDrivers } from "../kube/api/csi-driver.ts";
import { csiNodes } from "../kube/api/csi-node.ts";
import { events } from "../kube/api/event.ts";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { pods } from "../kube/api/pod.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { KubeObject, Resource } from "../kube/object.ts";
import { nodePage, nodeWaits } from "../processes/debug-reading.ts";
import { readObjects } from "../processes/reading.ts";
import { SimCore } from "../sim/core.ts";
import { HANDLER_ALONE } from "../sim/server.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { createCluster, type Cluster } from "./cluster.ts";
import type { Fields } from "./objects.testing.ts";
import type { CommandContext } from "./reasons/words.ts";

/*
 * A small cluster on the embedded API server: pod shop/web with claim data, bound to pv-1, of driver csi.example.com, on
 * node-a; node-b has nothing. Everything is written through the server, so that what it would refuse cannot be tried.
 */

export const DRIVER = "csi.example.com";
export const UNIQUE = `kubernetes.io/csi/${DRIVER}^vol-1`;
export const OWN = (node: string) => volumeAttachmentName({ driver: DRIVER, volumeHandle: "vol-1" }, node);
export const CONTEXT: CommandContext = { kubeconfig: "/etc/my cluster/admin.conf", context: "prod" };

const core = (kind: string, plural: string): Resource => ({
  ...{ group: "", version: "v1", kind, plural, namespaced: false },
});
export const KINDS = {
  namespace: core("Namespace", "namespaces"),
  account: { ...core("ServiceAccount", "serviceaccounts"), namespaced: true },
  pod: pods as Resource,
  claim: persistentVolumeClaims as Resource,
  volume: persistentVolumes as Resource,
  attachment: volumeAttachments as Resource,
  node: nodes as Resource,
  csiNode: csiNodes as Resource,
  csiDriver: csiDrivers as Resource,
  event: events as Resource,
  class: {
    ...{ group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" },
    namespaced: false,
  } as Resource,
} as const;
export type Kind = keyof typeof KINDS;

/**
 * `running`: the pod has its volume. `waiting`: everything is attached, and the pod has not started. `unbound`: the claim has
 * no volume yet, and the pod no node.
 */
export type Base = "running" | "waiting" | "unbound";

export class FaultWorld {
  readonly #core = new SimCore(1, { server: HANDLER_ALONE });
  readonly client = this.#core.client;
  /** What `/debug/volumes` of node-a answers; undefined where nobody can ask it. */
  #page: Fields | undefined;

  static async create(base: Base): Promise<FaultWorld> {
    const world = new FaultWorld();
    await world.#core.server.start();
    await world.#build(base);
    await world.later(600);
    return world;
  }

  async #build(base: Base): Promise<void> {
    const bound = base !== "unbound";
    await this.add("namespace", "shop", {});
    await this.add("account", "default", {});
    await this.add("class", "fast", { provisioner: DRIVER, volumeBindingMode: "Immediate" });
    await this.add("csiDriver", DRIVER, { spec: { attachRequired: true } });
    for (const name of ["node-a", "node-b"]) await this.#addNode(name, bound && name === "node-a");
    const spec = {
      ...{ accessModes: ["ReadWriteOnce"], storageClassName: "fast" },
      resources: { requests: { storage: "1Gi" } },
    };
    const claim = await this.add("claim", "data", {
      spec: { ...spec, ...(bound && { volumeName: "pv-1" }) },
    });
    if (bound) await this.#bind(claim.metadata.uid ?? "");
    await this.later(60);
    await this.addPod(bound ? "node-a" : undefined);
    if (bound) await this.attach("node-a");
    await this.later(5);
    if (base === "running") await this.podRuns();
  }

  async #addNode(name: string, uses: boolean): Promise<void> {
    const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
    await this.add("node", name, { metadata: { annotations, labels: { "kubernetes.io/hostname": name } } });
    await this.status("node", name, {
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      ...(uses && { volumesAttached: [{ name: UNIQUE, devicePath: "" }], volumesInUse: [UNIQUE] }),
    });
    await this.add("csiNode", name, {
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys: null }] },
    });
  }

  async #bind(uid: string): Promise<void> {
    await this.addVolume("pv-1", {
      claimRef: { kind: "PersistentVolumeClaim", namespace: "shop", name: "data", uid },
    });
    await this.status("volume", "pv-1", { phase: "Bound" });
    await this.status("claim", "data", {
      ...{ phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } },
    });
  }

  addVolume(name: string, spec: Fields): Promise<KubeObject> {
    return this.add("volume", name, {
      spec: {
        ...{ accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, storageClassName: "fast" },
        ...{ persistentVolumeReclaimPolicy: "Delete", csi: { driver: DRIVER, volumeHandle: "vol-1" } },
        ...spec,
      },
    });
  }

  addPod(nodeName: string | undefined, fields: Fields = {}): Promise<KubeObject> {
    return this.add("pod", "web", {
      spec: {
        containers: [{ name: "app", image: "app", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
        ...(nodeName !== undefined && { nodeName }),
        ...fields,
      },
    });
  }

  async attach(node: string, { name = OWN(node), pv = "pv-1", attached = true, finalizers = true } = {}) {
    await this.add("attachment", name, {
      metadata: { finalizers: finalizers ? ["external-attacher/csi-example-com"] : [] },
      spec: { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: pv } },
    });
    await this.status("attachment", name, { attached });
  }

  podRuns(state: Fields = { running: { startedAt: this.time() } }): Promise<void> {
    const image = { image: "app", imageID: "", ready: true, restartCount: 0 };
    return this.status("pod", "web", {
      ...{ phase: "Running", startTime: this.time() },
      containerStatuses: [{ name: "app", ...image, state }],
    });
  }

  add(kind: Kind, name: string, object: Fields): Promise<KubeObject> {
    const resource = KINDS[kind];
    const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
    const namespace = resource.namespaced ? { namespace: "shop" } : {};
    const metadata = { name, ...namespace, ...(object["metadata"] as Fields | undefined) };
    return this.client.create(resource, {
      apiVersion,
      kind: resource.kind,
      ...object,
      metadata,
    });
  }

  event(
    kind: "Pod" | "PersistentVolumeClaim",
    name: string,
    reason: string,
    message: string,
  ): Promise<KubeObject> {
    return this.add("event", `${name}.${reason.toLowerCase()}`, {
      involvedObject: { kind, name, namespace: "shop", apiVersion: "v1" },
      ...{ type: "Warning", reason, message, lastTimestamp: this.time(), source: { component: "test" } },
    });
  }

  async status(kind: Kind, name: string, status: Fields): Promise<void> {
    await this.#patch(kind, name, { status }, "status");
  }

  async change(kind: Kind, name: string, value: Fields): Promise<void> {
    await this.#patch(kind, name, value);
  }

  async #patch(kind: Kind, name: string, value: Fields, subresource?: "status"): Promise<void> {
    const options = subresource === undefined ? {} : { subresource };
    await this.client.patch(KINDS[kind], this.#ref(kind, name), { type: "merge", value }, options);
  }

  /** As `kubectl delete` does: what has a finalizer stays, and is said to be going. */
  async delete(kind: Kind, name: string, ...finalizers: readonly string[]): Promise<void> {
    if (finalizers.length > 0) await this.change(kind, name, { metadata: { finalizers } });
    await this.client.delete(KINDS[kind], this.#ref(kind, name));
  }

  /** Whatever protects it. */
  async destroy(kind: Kind, name: string): Promise<void> {
    await this.change(kind, name, { metadata: { finalizers: null } });
    await this.client.delete(KINDS[kind], this.#ref(kind, name), { gracePeriodSeconds: 0 });
  }

  #ref(kind: Kind, name: string) {
    return KINDS[kind].namespaced ? { name, namespace: "shop" } : { name };
  }

  /** What node-a itself says of the volume and the pod. The name of a pod whose containers have stopped is not known to it. */
  async nodeSays(ofPod: Fields | undefined): Promise<void> {
    const { metadata } = await this.client.get(KINDS.pod, this.#ref("pod", "web"));
    const pods = ofPod === undefined ? [] : [{ pod: "", uid: metadata.uid, ...ofPod }];
    this.#page = { node: "node-a", synced: true, volumes: [{ volume: UNIQUE, pods }], unresolved: [] };
  }

  later(seconds: number): Promise<void> {
    return this.#core.scheduler.runFor(seconds * 1_000);
  }

  time(): string {
    return `${this.#now().toISOString().slice(0, 19)}Z`;
  }

  #now(): Date {
    return this.#core.clock.wall();
  }

  /** As `mooring why` reads it. */
  async read(): Promise<Cluster> {
    const objects = await readObjects(this.client, { namespace: "shop" });
    const page = this.#page;
    const nowMs = this.#now().getTime();
    const said = page && { waits: nodeWaits(page, nowMs), nodePages: [nodePage(page)] };
    return createCluster({ ...objects, ...said }, nowMs, CONTEXT);
  }
}

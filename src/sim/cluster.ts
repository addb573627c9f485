import type {
  AttachedVolume,
  NodeSystemInfo,
  PersistentVolumeSpec,
  PodStatus,
  Taint,
  Volume,
} from "kubernetes-types/core/v1.js";
import { csiDrivers } from "../kube/api/csi-driver.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import { isKubeError } from "../kube/errors.ts";
import { objectPath, type ObjectRef, type Resource } from "../kube/object.ts";
import {
  claimObject,
  DRIVER,
  MANAGED_ANNOTATION,
  namespaces,
  nodeObject,
  podObject,
  readyConditions,
  serviceAccounts,
  volumeObject,
  type NodeSketch,
  type Ready,
} from "./cluster-objects.ts";
import { Harness } from "./harness.ts";
import { VolumeLabels } from "./volume-labels.ts";

export interface VolumeSketch {
  readonly driver?: string;
  /** Two labels with one handle are one volume behind two claims. */
  readonly handle?: string;
  readonly modes?: readonly string[];
  readonly namespace?: string;
  readonly claim?: "bound" | "pending" | "unnamed" | "missing";
  readonly volume?: "bound" | "unclaimed" | "missing";
  /** Instead of a CSI source; `driver` and `handle` then say what it is translated to. */
  readonly source?: Partial<PersistentVolumeSpec>;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface PodSketch {
  readonly on?: string;
  /** Labels of volumes, used through their claims. */
  readonly uses?: readonly string[];
  /** Written into the pod as they are. */
  readonly inline?: readonly Volume[];
  readonly status?: PodStatus;
}

/**
 * Everybody else in a cluster: whoever creates, schedules and deletes, in words of a test. Pods are named
 * `web`, or `team/web` outside the namespace `default`; volumes by a label, for which claim, PersistentVolume and
 * handle (`claim-v`, `pv-v`, `v`) differ so that code which takes one for the other fails.
 */
export abstract class SimCluster extends Harness {
  readonly labels = new VolumeLabels();
  readonly #sketches = new Map<string, VolumeSketch>();

  async createNode(name: string, { inUse = [], attached = [], ...sketch }: NodeSketch = {}): Promise<void> {
    this.labels.addNode(name);
    const named = { inUse: this.#named(inUse), attached: this.#named(attached) };
    await this.client.create(nodes, nodeObject(name, { ...sketch, ...named }));
  }

  deleteNode(name: string): Promise<void> {
    return this.client.delete(nodes, { name });
  }

  async setReady(name: string, ready: Ready, reason?: string): Promise<void> {
    await this.#patchNodeStatus(name, { conditions: readyConditions(ready, reason) });
  }

  async setTaints(name: string, taints: readonly Taint[]): Promise<void> {
    await this.client.patch(nodes, { name }, { type: "merge", value: { spec: { taints } } });
  }

  /** What the kubelet says after the machine has booted. */
  async setBootId(name: string, bootID: string): Promise<void> {
    await this.#patchNodeStatus(name, { nodeInfo: { bootID } as NodeSystemInfo });
  }

  async setManaged(name: string, managed: boolean): Promise<void> {
    const value = { metadata: { annotations: { [MANAGED_ANNOTATION]: managed ? "true" : null } } };
    await this.client.patch(nodes, { name }, { type: "merge", value });
  }

  /** What the kubelet of that node would write. */
  async setInUse(name: string, volumes: readonly string[]): Promise<void> {
    await this.#patchNodeStatus(name, { volumesInUse: this.#named(volumes) });
  }

  /** What the controller writes otherwise. */
  async setAttached(name: string, volumes: readonly string[]): Promise<void> {
    const volumesAttached = this.#named(volumes).map((volume) => ({ name: volume, devicePath: "" }));
    await this.#patchNodeStatus(name, { volumesAttached });
  }

  /** A word from the kubelet about something else. */
  async heartbeat(name: string): Promise<void> {
    const beats = Number(this.read(nodes, { name })?.metadata.labels?.["beats"] ?? 0) + 1;
    const value = { metadata: { labels: { beats: String(beats) } } };
    await this.client.patch(nodes, { name }, { type: "merge", value });
  }

  /** As it stands in the node's status. */
  attachedOf(name: string): readonly AttachedVolume[] {
    return this.read(nodes, { name })?.status?.volumesAttached ?? [];
  }

  volumesAttached(name: string): string[] {
    return this.attachedOf(name)
      .map((volume) => this.labels.volume(volume.name))
      .sort();
  }

  volumesInUse(name: string): string[] {
    return (this.read(nodes, { name })?.status?.volumesInUse ?? []).map((volume) =>
      this.labels.volume(volume),
    );
  }

  async setDriver(name: string, { attachRequired }: { attachRequired?: boolean | undefined }): Promise<void> {
    const spec = attachRequired === undefined ? {} : { attachRequired };
    // What a driver needs cannot be changed; an administrator deletes the object and creates another.
    if (this.read(csiDrivers, { name }) !== undefined) await this.client.delete(csiDrivers, { name });
    await this.client.create(csiDrivers, { metadata: { name }, spec });
  }

  async createVolume(label: string, sketch: VolumeSketch = {}): Promise<void> {
    const { driver = DRIVER, handle = label, namespace = "default", claim = "bound" } = sketch;
    this.#sketches.set(label, sketch);
    this.labels.addVolume(label, { driver, volumeHandle: handle });
    await this.#ensureNamespace(namespace);
    if (claim !== "missing") {
      const volumeName = claim === "bound" ? `pv-${label}` : undefined;
      await this.createClaim(`${namespace}/claim-${label}`, { volumeName, bound: claim !== "pending" });
    }
    if (sketch.volume !== "missing") await this.createPersistentVolume(label);
  }

  async createClaim(
    path: string,
    { volumeName, bound, owner }: { volumeName?: string | undefined; bound: boolean; owner?: Pod },
  ): Promise<void> {
    const ref = refOf(path);
    await this.client.create(persistentVolumeClaims, claimObject(ref, { volumeName, owner }));
    if (bound) await this.#patchClaimStatus(ref, "Bound");
  }

  async createPersistentVolume(label: string, claimPath = this.#claimOf(label)): Promise<void> {
    const sketch = this.#sketches.get(label) ?? {};
    const { driver = DRIVER, handle = label, modes = ["ReadWriteOnce"], labels, volume } = sketch;
    const source = sketch.source ?? { csi: { driver, volumeHandle: handle } };
    const bound = volume === "unclaimed" ? undefined : this.read(persistentVolumeClaims, refOf(claimPath));
    const object = volumeObject(`pv-${label}`, { source, modes, claim: bound, labels });
    await this.client.create(persistentVolumes, object);
  }

  /** What the volume binder does: claim and volume name each other, then the claim is Bound. */
  async bindClaim(label: string): Promise<void> {
    const ref = refOf(this.#claimOf(label));
    const value = { spec: { volumeName: `pv-${label}` } };
    const claim = await this.client.patch(persistentVolumeClaims, ref, { type: "merge", value });
    const { name = "", namespace = "", uid = "" } = claim.metadata;
    const claimRef = { kind: "PersistentVolumeClaim", name, namespace, uid };
    const volume = { name: `pv-${label}` };
    await this.client.patch(persistentVolumes, volume, { type: "merge", value: { spec: { claimRef } } });
    await this.#patchClaimStatus(ref, "Bound");
  }

  /** What the volume binder does when the PersistentVolume is gone; `bindClaim` takes it back. */
  async loseClaim(label: string): Promise<void> {
    await this.#patchClaimStatus(refOf(this.#claimOf(label)), "Lost");
  }

  async deleteClaim(label: string): Promise<void> {
    await this.#remove(persistentVolumeClaims, refOf(this.#claimOf(label)));
  }

  async deletePersistentVolume(label: string): Promise<void> {
    await this.#remove(persistentVolumes, { name: `pv-${label}` });
  }

  async patchPersistentVolume(label: string, value: Partial<PersistentVolume>): Promise<void> {
    await this.client.patch(persistentVolumes, { name: `pv-${label}` }, { type: "merge", value });
  }

  async createPod(path: string, { on, uses = [], inline = [], status }: PodSketch = {}): Promise<void> {
    const ref = refOf(path);
    await this.#ensureNamespace(ref.namespace);
    const claimed = uses.map((label): Volume => {
      return { name: label, persistentVolumeClaim: { claimName: `claim-${label}` } };
    });
    await this.client.create(pods, podObject(ref, { on, volumes: [...claimed, ...inline] }));
    if (status !== undefined) await this.setPodStatus(path, status);
  }

  pod(path: string): Pod | undefined {
    return this.read(pods, refOf(path));
  }

  async setPodStatus(path: string, status: PodStatus): Promise<void> {
    await this.client.patch(
      pods,
      refOf(path),
      { type: "merge", value: { status } },
      { subresource: "status" },
    );
  }

  /** What a scheduler does. */
  async bindPod(path: string, node: string): Promise<void> {
    const ref = refOf(path);
    const target = { apiVersion: "v1", kind: "Node", name: node };
    const body = { apiVersion: "v1", kind: "Binding", metadata: ref, target };
    const answer = await this.server.transport.request({
      method: "POST",
      path: objectPath(pods, ref, "binding"),
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.status >= 300) throw new Error(`bind ${path} to ${node}: ${answer.body}`);
  }

  /** With its grace period: the object stays until a kubelet removes it. */
  async deletePod(path: string): Promise<void> {
    await this.client.delete(pods, refOf(path));
  }

  /** At once, as `kubectl delete --force`. */
  async removePod(path: string): Promise<void> {
    await this.client.delete(pods, refOf(path), { gracePeriodSeconds: 0 });
  }

  /** Whether several nodes may have it at once. */
  isShared(label: string): boolean {
    const { modes = ["ReadWriteOnce"] } = this.#sketches.get(label) ?? {};
    return modes.some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
  }

  #claimOf(label: string): string {
    return `${this.#sketches.get(label)?.namespace ?? "default"}/claim-${label}`;
  }

  #named(labels: readonly string[]): string[] {
    return labels.map((label) => this.labels.uniqueName(label));
  }

  async #patchNodeStatus(name: string, status: Partial<NonNullable<Node["status"]>>): Promise<void> {
    await this.client.patch(nodes, { name }, { type: "merge", value: { status } }, { subresource: "status" });
  }

  async #patchClaimStatus(ref: ObjectRef, phase: string): Promise<void> {
    const value: Partial<PersistentVolumeClaim> = { status: { phase } };
    await this.client.patch(persistentVolumeClaims, ref, { type: "merge", value }, { subresource: "status" });
  }

  /** Past the protection, whose controller does not run here. */
  async #remove(resource: Resource, ref: ObjectRef): Promise<void> {
    await this.client.patch(resource, ref, { type: "merge", value: { metadata: { finalizers: null } } });
    await this.client.delete(resource, ref);
  }

  async #ensureNamespace(namespace: string): Promise<void> {
    const account = { name: "default", namespace };
    if (this.read(serviceAccounts, account) !== undefined) return;
    await this.client.create(namespaces, { metadata: { name: namespace } }).catch((error: unknown) => {
      if (!isKubeError(error, "AlreadyExists")) throw error;
    });
    await this.client.create(serviceAccounts, { metadata: account });
  }
}

function refOf(path: string): { name: string; namespace: string } {
  const [first = "", second] = path.split("/");
  return second === undefined ? { namespace: "default", name: first } : { namespace: first, name: second };
}

import type { TypedLocalObjectReference } from "kubernetes-types/core/v1.js";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import type { Objects } from "./objects.ts";

export type AccessMode = "ReadWriteOnce" | "ReadWriteOncePod" | "ReadWriteMany";

/** A workload with one replica and a claim, as a StatefulSet has it. */
export interface App {
  readonly name: string;
  readonly mode: AccessMode;
  readonly storageClass: string;
  readonly block: boolean;
  /** What its claim asks for; 1 unless told otherwise. */
  readonly sizeGi?: number;
  /** A snapshot or a claim that its own begins as a copy of. */
  readonly dataSource?: TypedLocalObjectReference;
  /** Where its next pod has to go; undefined leaves it to the scheduler. */
  node: string | undefined;
  /** Its next claim asks for this PersistentVolume and no other. */
  volumeName?: string;
}

export const NAMESPACE = "default";
const LOOK_MS = 3_000;

/**
 * What StatefulSet controllers do, as a model: an app whose pod is gone gets another of the same name, never two at once, and
 * keeps its claim. Also for an app with several pods: those share a claim and have a name each.
 */
export class Apps {
  readonly apps = new Map<string, App>();
  /** Whose pod or claim may still be there: the server was down when they were to be deleted. */
  readonly #removed = new Set<string>();
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #objects: Objects;
  readonly #random: Random;

  constructor(deps: { clock: Clock; client: Client; objects: Objects; random: Random }) {
    this.#clock = deps.clock;
    this.#client = deps.client;
    this.#objects = deps.objects;
    this.#random = deps.random;
  }

  start(): void {
    this.#clock.after(LOOK_MS * (0.5 + this.#random.float()), () => {
      void this.#look().then(() => this.start());
    });
  }

  podOf({ name }: Pick<App, "name">): Pod | undefined {
    return this.#objects.get("pods", `${name}-0`, NAMESPACE);
  }

  claimOf({ name }: Pick<App, "name">): PersistentVolumeClaim | undefined {
    return this.#objects.get("persistentvolumeclaims", name, NAMESPACE);
  }

  add(app: App): void {
    this.apps.set(app.name, app);
  }

  /** With its claim: its data is to be deleted. */
  async remove(name: string): Promise<void> {
    this.apps.delete(name);
    this.#removed.add(name);
    await this.#client.delete(pods, { namespace: NAMESPACE, name: `${name}-0` }).catch(() => undefined);
    await this.#client.delete(persistentVolumeClaims, { namespace: NAMESPACE, name }).catch(() => undefined);
  }

  /** One that is over makes room for the next, which begins where it was left off. */
  async #lookAtPod(app: App): Promise<void> {
    const pod = this.podOf(app);
    const ref = { namespace: NAMESPACE, name: `${app.name}-0` };
    if (pod === undefined) await this.#client.create(pods, podObject(app)).catch(() => undefined);
    else if (pod.status?.phase === "Succeeded" && pod.metadata.deletionTimestamp === undefined)
      if (this.#random.float() < 0.1) await this.#client.delete(pods, ref).catch(() => undefined);
  }

  async #look(): Promise<void> {
    for (const name of [...this.#removed]) {
      const pod = this.podOf({ name });
      const claim = this.claimOf({ name });
      const left = [pod, claim].filter((one) => one && one.metadata.deletionTimestamp === undefined);
      if (left.length > 0) await this.remove(name);
      else if (pod === undefined && claim === undefined) this.#removed.delete(name);
    }
    for (const app of [...this.apps.values()]) {
      if (this.claimOf(app) === undefined)
        await this.#client.create(persistentVolumeClaims, claimObject(app)).catch(() => undefined);
      else await this.#lookAtPod(app);
    }
  }
}

function claimObject(app: App): PersistentVolumeClaim {
  const { name, mode, storageClass, block, volumeName, sizeGi = 1, dataSource } = app;
  return {
    metadata: { namespace: NAMESPACE, name },
    spec: {
      storageClassName: storageClass,
      accessModes: [mode],
      ...(volumeName !== undefined && { volumeName }),
      ...(block && { volumeMode: "Block" }),
      ...(dataSource !== undefined && { dataSource }),
      resources: { requests: { storage: `${sizeGi}Gi` } },
    },
  };
}

function podObject({ name, node, block }: App): Pod {
  const uses = block
    ? { volumeDevices: [{ name: "data", devicePath: "/dev/data" }] }
    : { volumeMounts: [{ name: "data", mountPath: "/data" }] };
  return {
    metadata: { namespace: NAMESPACE, name: `${name}-0`, labels: { app: name } },
    spec: {
      ...(node !== undefined && { nodeSelector: { "kubernetes.io/hostname": node } }),
      // As a StatefulSet's pods outlive the five minutes after which a silent node's pods are evicted.
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "app", image: "app", ...uses }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: name } }],
    },
  };
}

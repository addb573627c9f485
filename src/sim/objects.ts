import type { ObjectStore } from "../apiserver/store/store.ts";
import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { CSINode } from "../kube/api/csi-node.ts";
import type { KubeEvent } from "../kube/api/event.ts";
import type { Lease } from "../kube/api/lease.ts";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { resourceName, type KubeObject, type ObjectRef, type Resource } from "../kube/object.ts";

interface Kinds {
  pods: Pod;
  nodes: Node;
  persistentvolumes: PersistentVolume;
  persistentvolumeclaims: PersistentVolumeClaim;
  "volumeattachments.storage.k8s.io": VolumeAttachment;
  "leases.coordination.k8s.io": Lease;
  "csinodes.storage.k8s.io": CSINode;
  "csidrivers.storage.k8s.io": CSIDriver;
  "storageclasses.storage.k8s.io": KubeObject;
  events: KubeEvent;
}

/**
 * The truth of the API server, read from its store without a request: checkers look at every instant, also while the server
 * is down, and must not disturb what they look at. An object is parsed once a version.
 */
export class Objects {
  readonly #store: ObjectStore;
  readonly #parsed = new Map<string, { readonly revision: number; readonly object: unknown }>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  all<K extends keyof Kinds>(resource: K): Kinds[K][] {
    return [...this.#store.scan({ resource })].map(({ key, revision, text }) =>
      this.#parse<Kinds[K]>(`${resource}/${key.namespace}/${key.name}`, revision, text),
    );
  }

  get<K extends keyof Kinds>(resource: K, name: string, namespace = ""): Kinds[K] | undefined {
    const found = this.#store.get({ resource, namespace, name });
    return found && this.#parse(`${resource}/${namespace}/${name}`, found.revision, found.text);
  }

  /** Of any kind there is. */
  read<T extends KubeObject>(resource: Resource<T>, { name, namespace = "" }: ObjectRef): T | undefined {
    const found = this.#store.get({ resource: resourceName(resource), namespace, name });
    return found && (JSON.parse(found.text) as T);
  }

  list<T extends KubeObject>(resource: Resource<T>): T[] {
    return [...this.#store.scan({ resource: resourceName(resource) })].map(
      ({ text }) => JSON.parse(text) as T,
    );
  }

  #parse<T>(key: string, revision: number, text: string): T {
    const known = this.#parsed.get(key);
    if (known?.revision === revision) return known.object as T;
    const object = JSON.parse(text) as T;
    this.#parsed.set(key, { revision, object });
    return object;
  }
}

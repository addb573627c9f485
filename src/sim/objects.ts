import { parseStored } from "../apiserver/objects.ts";
import type { ObjectStore, StoredObject } from "../apiserver/store/store.ts";
import type { VolumeSnapshot, VolumeSnapshotContent } from "../companions/kinds.ts";
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
  "volumesnapshots.snapshot.storage.k8s.io": VolumeSnapshot;
  "volumesnapshotcontents.snapshot.storage.k8s.io": VolumeSnapshotContent;
  events: KubeEvent;
}

/**
 * The truth of the API server, read from its store without a request: checkers look at every instant, also while the server
 * is down, and must not disturb what they look at. An object is parsed once a version.
 */
export class Objects {
  readonly #store: ObjectStore;
  readonly #parsed = new WeakMap<StoredObject, unknown>();
  /** All of a resource at one revision: several checkers look at one moment, and most moments write nothing. */
  readonly #all = new Map<string, { readonly revision: number; readonly objects: readonly unknown[] }>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  all<K extends keyof Kinds>(resource: K): readonly Kinds[K][] {
    return this.#allOf<Kinds[K]>(resource);
  }

  get<K extends keyof Kinds>(resource: K, name: string, namespace = ""): Kinds[K] | undefined {
    const found = this.#store.get({ resource, namespace, name });
    return found && this.parse(found);
  }

  /** Of any kind there is. */
  read<T extends KubeObject>(resource: Resource<T>, { name, namespace = "" }: ObjectRef): T | undefined {
    const found = this.#store.get({ resource: resourceName(resource), namespace, name });
    return found && this.parse<T>(found);
  }

  list<T extends KubeObject>(resource: Resource<T>): T[] {
    return [...this.#allOf<T>(resourceName(resource))];
  }

  #allOf<T>(resource: string): readonly T[] {
    const { revision } = this.#store;
    const known = this.#all.get(resource);
    if (known?.revision === revision) return known.objects as readonly T[];
    const objects = [...this.#store.scan({ resource })].map((stored) => this.parse<T>(stored));
    this.#all.set(resource, { revision, objects });
    return objects;
  }

  /** A version as the store has it, which is one object as long as somebody has it. */
  parse<T>(stored: StoredObject): T {
    const known = this.#parsed.get(stored);
    if (known !== undefined) return known as T;
    // The server has mostly read it already.
    const object = parseStored(stored) as T;
    this.#parsed.set(stored, object);
    return object;
  }
}

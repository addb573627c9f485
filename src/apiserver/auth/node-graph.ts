import type { ApiObject } from "../objects.ts";
import type { ObjectStore, StoreKey } from "../store/store.ts";
import { createIndexFeed, type IndexTarget } from "./index-feed.ts";
import { referencesOf, volumeSecretsOf, type ReferenceKind } from "./pod-references.ts";
import { readObject, textAt } from "./stored.ts";

type Place = Pick<StoreKey, "namespace" | "name">;

/**
 * What belongs to which node: node <- pod <- secret, config map, claim, account; claim <- volume <-
 * secret. Only the edges that cannot be read off one object are kept, by key; the rest is looked up.
 */
export interface NodeGraph {
  /** Undefined where there is no such pod; empty where it is not scheduled. */
  nodeOfPod(pod: Place): string | undefined;
  nodeOfAttachment(name: string): string | undefined;
  /** A pod of this node names it. */
  isUsedBy(node: string, kind: ReferenceKind, place: Place): boolean;
  /** It is bound to a claim that a pod of this node names. */
  isVolumeUsedBy(node: string, volume: string): boolean;
}

export function createNodeGraph(store: ObjectStore): NodeGraph {
  const uses = new UseIndex();
  const volumeSecrets = new VolumeSecretIndex();
  const pods = createIndexFeed(store, "pods", uses);
  const volumes = createIndexFeed(store, "persistentvolumes", volumeSecrets);

  function isVolumeUsedBy(node: string, volume: string): boolean {
    const object = readObject(store, { resource: "persistentvolumes", namespace: "", name: volume });
    const claim = {
      namespace: textAt(object, "spec", "claimRef", "namespace"),
      name: textAt(object, "spec", "claimRef", "name"),
    };
    pods.sync();
    return claim.name !== "" && uses.has(node, "persistentvolumeclaims", claim);
  }

  return {
    isVolumeUsedBy,
    nodeOfPod(pod) {
      const object = readObject(store, { resource: "pods", ...pod });
      return object === undefined ? undefined : textAt(object, "spec", "nodeName");
    },
    nodeOfAttachment(name) {
      const key = { resource: "volumeattachments.storage.k8s.io", namespace: "", name };
      const object = readObject(store, key);
      return object === undefined ? undefined : textAt(object, "spec", "nodeName");
    },
    isUsedBy(node, kind, place) {
      pods.sync();
      if (uses.has(node, kind, place)) return true;
      if (kind !== "secrets") return false;
      volumes.sync();
      return volumeSecrets.volumesWith(place).some((volume) => isVolumeUsedBy(node, volume));
    },
  };
}

/** How many pods of a node name an object. */
class UseIndex implements IndexTarget {
  readonly #counts = new Map<string, number>();
  readonly #usesOf = new Map<string, readonly string[]>();

  has(node: string, kind: ReferenceKind, { namespace, name }: Place): boolean {
    return this.#counts.has(useKey(node, kind, namespace, name));
  }

  put(key: StoreKey, pod: ApiObject): void {
    this.remove(key);
    const node = textAt(pod, "spec", "nodeName");
    if (node === "") return;
    const uses = [
      ...new Set(referencesOf(pod).map(({ kind, name }) => useKey(node, kind, key.namespace, name))),
    ];
    for (const use of uses) this.#counts.set(use, (this.#counts.get(use) ?? 0) + 1);
    this.#usesOf.set(podKey(key), uses);
  }

  remove(key: StoreKey): void {
    for (const use of this.#usesOf.get(podKey(key)) ?? []) {
      const left = (this.#counts.get(use) ?? 0) - 1;
      if (left > 0) this.#counts.set(use, left);
      else this.#counts.delete(use);
    }
    this.#usesOf.delete(podKey(key));
  }

  clear(): void {
    this.#counts.clear();
    this.#usesOf.clear();
  }
}

/** No part can hold a space: they are names of nodes, resources, namespaces and objects. */
function useKey(node: string, kind: ReferenceKind, namespace: string, name: string): string {
  return `${node} ${kind} ${namespace} ${name}`;
}

function podKey({ namespace, name }: StoreKey): string {
  return `${namespace}/${name}`;
}

/** Volumes by the secrets that a node needs for them. */
class VolumeSecretIndex implements IndexTarget {
  readonly #volumes = new Map<string, Set<string>>();
  readonly #secretsOf = new Map<string, readonly string[]>();

  volumesWith({ namespace, name }: Place): readonly string[] {
    return [...(this.#volumes.get(`${namespace}/${name}`) ?? [])];
  }

  put({ name: volume }: StoreKey, object: ApiObject): void {
    this.#remove(volume);
    const secrets = volumeSecretsOf(object).map(({ namespace, name }) => `${namespace}/${name}`);
    for (const secret of secrets) {
      const held = this.#volumes.get(secret);
      if (held === undefined) this.#volumes.set(secret, new Set([volume]));
      else held.add(volume);
    }
    this.#secretsOf.set(volume, secrets);
  }

  remove({ name }: StoreKey): void {
    this.#remove(name);
  }

  clear(): void {
    this.#volumes.clear();
    this.#secretsOf.clear();
  }

  #remove(volume: string): void {
    for (const secret of this.#secretsOf.get(volume) ?? []) {
      const held = this.#volumes.get(secret);
      held?.delete(volume);
      if (held?.size === 0) this.#volumes.delete(secret);
    }
    this.#secretsOf.delete(volume);
  }
}

import type { ConfigMap } from "../kube/api/config-map.ts";
import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { Node } from "../kube/api/node.ts";
import type { Secret } from "../kube/api/secret.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";

/**
 * What plugins read of the API. Objects of caches: nobody changes them. A read rejects with the KubeError of the
 * server, `NotFound` faithfully, so that "optional" means what it says.
 */
export interface NodeObjects {
  /** Followed from the first read on while a pod of this node refers to it; a change wakes the volumes that use it. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap>;
  /** `live`: by a request of its own, for what must not be an answer of before. */
  attachment(
    name: string,
    signal: AbortSignal,
    options?: { readonly live?: boolean },
  ): Promise<VolumeAttachment>;
  /** From the watched cache; undefined where no such object exists. Throws while the cache has never been complete. */
  csiDriver(name: string): CSIDriver | undefined;
  /** This node, from the watched cache; undefined until it was seen. */
  node(): Node | undefined;
  /** Of the pod's service account, from the cache of tokens where it has a young enough one. */
  token(request: TokenWanted, signal: AbortSignal): Promise<ServiceAccountToken>;
}

export interface TokenWanted {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number | undefined;
  /** The token ends with this pod. */
  readonly pod: { readonly name: string; readonly uid: string };
}

export interface ServiceAccountToken {
  readonly token: string;
  /** RFC 3339. */
  readonly expirationTimestamp: string;
}

import type { Client } from "../kube/client/client.ts";
import type { KubeObject, Resource } from "../kube/object.ts";
import type { ServiceAccountToken, TokenWanted } from "./objects.ts";

interface TokenRequest extends KubeObject {
  readonly spec: {
    readonly audiences: readonly string[];
    readonly expirationSeconds?: number;
    readonly boundObjectRef: {
      readonly kind: string;
      readonly apiVersion: string;
      readonly name: string;
      readonly uid: string;
    };
  };
  readonly status?: ServiceAccountToken;
}

/** One TokenRequest to the server: a token of the pod's service account that ends with the pod. */
export async function requestToken(
  client: Client,
  wanted: TokenWanted,
  signal: AbortSignal,
): Promise<ServiceAccountToken> {
  const { namespace, serviceAccount, audiences, expirationSeconds, pod } = wanted;
  const request: TokenRequest = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { namespace },
    spec: {
      audiences,
      ...(expirationSeconds !== undefined && { expirationSeconds }),
      boundObjectRef: { kind: "Pod", apiVersion: "v1", name: pod.name, uid: pod.uid },
    },
  };
  const { status } = await client.create(tokensOf(serviceAccount), request, { signal });
  if (!status) throw new Error(`the server answered without a token for ${namespace}/${serviceAccount}`);
  const { token, expirationTimestamp } = status;
  return { token, expirationTimestamp: toSeconds(expirationTimestamp) };
}

/** As a kubelet writes it for drivers: RFC 3339 in UTC, whole seconds. What is no time is left for the cache to complain of. */
function toSeconds(written: string): string {
  const ms = Date.parse(written);
  return Number.isNaN(ms) ? written : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** The collection of an account's tokens, to which requests are posted. */
function tokensOf(serviceAccount: string): Resource<TokenRequest> {
  const plural = `serviceaccounts/${encodeURIComponent(serviceAccount)}/token`;
  return { group: "", version: "v1", kind: "TokenRequest", plural, namespaced: true };
}

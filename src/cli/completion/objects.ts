import { nodes } from "../../kube/api/node.ts";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { pods } from "../../kube/api/pod.ts";
import type { Resource } from "../../kube/object.ts";
import { openForReading, type ReadableCluster } from "../../processes/cluster-reading.ts";
import type { WhySubject } from "../commands/why.ts";

/** A person waits for it with a finger on the key. */
const ANSWER_MS_MAX = 2_000;

/** More than a shell would show; a longer list is cut, since names that are typed further come with a new question. */
const NAMES_MAX = 500;

const RESOURCES: Readonly<Record<WhySubject["kind"], Resource>> = {
  pod: pods,
  pvc: persistentVolumeClaims,
  pv: persistentVolumes,
  node: nodes,
};

const NAMESPACES: Resource = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};

export const SUBJECT_KINDS = Object.keys(RESOURCES) as readonly WhySubject["kind"][];

export interface Where {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
}

/** `pod/web`, `pod/db` of the cluster that the flags mean. */
export function objectNames(kind: WhySubject["kind"], where: Where): Promise<readonly string[]> {
  return withCluster(where, async (cluster, signal) => {
    const resource = RESOURCES[kind];
    const namespace = resource.namespaced ? (where.namespace ?? cluster.namespace) : undefined;
    const names = await namesOf(cluster, resource, { namespace, signal });
    return names.map((name) => `${kind}/${name}`);
  });
}

export function namespaceNames(where: Where): Promise<readonly string[]> {
  return withCluster(where, (cluster, signal) =>
    namesOf(cluster, NAMESPACES, { namespace: undefined, signal }),
  );
}

async function withCluster<T>(
  { kubeconfig }: Where,
  use: (cluster: ReadableCluster, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cluster = await openForReading(kubeconfig);
  try {
    return await use(cluster, AbortSignal.timeout(ANSWER_MS_MAX));
  } finally {
    await cluster.close();
  }
}

async function namesOf(
  { client }: ReadableCluster,
  resource: Resource,
  { namespace, signal }: { readonly namespace: string | undefined; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const options = { limit: NAMES_MAX, signal, ...(namespace !== undefined && { namespace }) };
  const { items } = await client.list(resource, options);
  return items.flatMap(({ metadata }) => metadata.name ?? []);
}

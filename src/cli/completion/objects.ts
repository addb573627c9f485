import { withDeadline } from "../../base/clock.ts";
import { createSystemClock } from "../../base/system-clock.ts";
import type { Resource } from "../../kube/object.ts";
import { openForReading, type ReadableCluster } from "../../processes/cluster-reading.ts";
import { READ_RESOURCES } from "../../processes/reading.ts";
import { SUBJECTS, type SubjectKind } from "../../views/subjects.ts";

/** A person waits for it with a finger on the key. */
const ANSWER_MS_MAX = 2_000;

/** More than a shell would show; a longer list is cut, since names that are typed further come with a new question. */
const NAMES_MAX = 500;

const NAMESPACES: Resource = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};

export interface Where {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
}

/** `pod/web`, `pod/db` of the cluster that the flags mean. */
export function objectNames(kind: SubjectKind, where: Where): Promise<readonly string[]> {
  return withCluster(where, async (cluster, signal) => {
    const resource = READ_RESOURCES[SUBJECTS[kind].read];
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

const onDeadline = () => new Error(`no answer within ${ANSWER_MS_MAX} ms`);

async function withCluster<T>(
  { kubeconfig }: Where,
  use: (cluster: ReadableCluster, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cluster = await openForReading(kubeconfig);
  try {
    return await withDeadline(createSystemClock(), { ms: ANSWER_MS_MAX, onDeadline }, (signal) =>
      use(cluster, signal),
    );
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

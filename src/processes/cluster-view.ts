import type { ClusterObjects, MooringWait } from "../views/objects.ts";
import { openForReading, type ReadableCluster } from "./cluster-reading.ts";
import { readAttacherWaits, readControllerWaits } from "./debug-reading.ts";
import { watchObjects } from "./live-reading.ts";
import { readObjects } from "./reading.ts";

export interface ViewOptions {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
  readonly controllerEndpoint: string | undefined;
  readonly attacherEndpoint: string | undefined;
}

/** The objects of a cluster as views want them. */
export interface ClusterView {
  /** The one asked for, else that of the kubeconfig's context. */
  readonly namespace: string;
  readonly server: string;
  nowMs(): number;
  read(): Promise<ClusterObjects>;
  watch(show: (objects: ClusterObjects) => void, signal: AbortSignal): Promise<void>;
}

/** Opens a cluster for as long as `use` takes. */
export async function withClusterView<T>(
  options: ViewOptions,
  use: (view: ClusterView) => Promise<T>,
): Promise<T> {
  const cluster = await openForReading(options.kubeconfig);
  try {
    return await use(createClusterView(cluster, options));
  } finally {
    await cluster.close();
  }
}

function createClusterView(cluster: ReadableCluster, options: ViewOptions): ClusterView {
  const namespace = options.namespace ?? cluster.namespace;
  return {
    namespace,
    server: cluster.server,
    nowMs: () => cluster.clock.wall().getTime(),
    async read() {
      const [objects, waits] = await Promise.all([
        readObjects(cluster.client, { namespace }),
        readWaits(options),
      ]);
      return { ...objects, waits };
    },
    async watch(show, signal) {
      const waits = await readWaits(options);
      await watchObjects({ ...cluster, namespace }, (objects) => show({ ...objects, waits }), signal);
    },
  };
}

async function readWaits({
  controllerEndpoint,
  attacherEndpoint,
}: ViewOptions): Promise<readonly MooringWait[]> {
  const answers = await Promise.all([
    controllerEndpoint === undefined ? [] : readControllerWaits(controllerEndpoint),
    attacherEndpoint === undefined ? [] : readAttacherWaits(attacherEndpoint),
  ]);
  return answers.flat();
}

import type { ClusterObjects, MooringWait } from "../views/objects.ts";
import { localKubeconfig, openForReading, type ReadableCluster } from "./cluster-reading.ts";
import { readWaits, type DebugPage } from "./debug-reading.ts";
import { watchObjects } from "./live-reading.ts";
import { createLocalWorld } from "./local-world.ts";
import { readObjects } from "./reading.ts";
import { findPages } from "./up/endpoints.ts";

export interface ViewOptions {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
  /** Pages that somebody named; each has to answer. */
  readonly pages: readonly DebugPage[];
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
  const file = await kubeconfigFile(options.kubeconfig);
  const cluster = await openForReading(options.kubeconfig);
  try {
    const found = file === undefined ? [] : await findPages(file, cluster.server);
    return await use(createClusterView(cluster, { ...options, found }));
  } finally {
    await cluster.close();
  }
}

/** The one file that is read; undefined for several, or where there is none. */
async function kubeconfigFile(given: string | undefined): Promise<string | undefined> {
  if (given !== undefined) return given;
  const world = createLocalWorld();
  const named = world.env["KUBECONFIG"] ?? "";
  return named !== "" && !named.includes(":") ? named : localKubeconfig(world);
}

interface Sources extends ViewOptions {
  /** Pages of a `mooring up` that nobody named; it may be over. */
  readonly found: readonly DebugPage[];
}

function createClusterView(cluster: ReadableCluster, sources: Sources): ClusterView {
  const namespace = sources.namespace ?? cluster.namespace;
  return {
    namespace,
    server: cluster.server,
    nowMs: () => cluster.clock.wall().getTime(),
    async read() {
      const [objects, said] = await Promise.all([
        readObjects(cluster.client, { namespace }),
        askPages(sources),
      ]);
      return { ...objects, ...said };
    },
    async watch(show, signal) {
      // Who was named has to answer once; later a restart of it is no reason to stop watching.
      let said = await askPages(sources);
      let first = true;
      const pages = [...sources.pages, ...sources.found];
      const again = async (objects: ClusterObjects) => {
        if (!first) said = await askPages({ pages: [], found: pages });
        first = false;
        show({ ...objects, ...said });
      };
      await watchObjects({ ...cluster, namespace }, again, signal);
    },
  };
}

type Said = Pick<ClusterObjects, "waits" | "notes">;

const NAMED_MS_MAX = 10_000;
/** They are on this machine, and answer within milliseconds or not at all. */
const FOUND_MS_MAX = 1_000;

/** Who was named and does not answer is an error; who was found is said to be silent, and done without. */
async function askPages({ pages, found }: Pick<Sources, "pages" | "found">): Promise<Said> {
  const notes: string[] = [];
  const silent = ({ process, url }: DebugPage): readonly MooringWait[] => {
    notes.push(`${url} does not answer, where \`mooring up\` had its ${process}: this is told without it`);
    return [];
  };
  const unnamed = found.filter(
    ({ process }) => process === "node" || !pages.some((page) => page.process === process),
  );
  const waits = await Promise.all([
    ...pages.map((page) => readWaits(page, { timeoutMs: NAMED_MS_MAX })),
    ...unnamed.map((page) => readWaits(page, { timeoutMs: FOUND_MS_MAX }).catch(() => silent(page))),
  ]);
  return { waits: waits.flat(), notes };
}

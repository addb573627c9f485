import type { ClusterObjects, ObjectKind } from "../views/objects.ts";
import type { CommandContext } from "../views/reasons/words.ts";
import { localKubeconfig, openForReading, type ReadableCluster } from "./cluster-reading.ts";
import { readPage, type DebugPage, type PageAnswer } from "./debug-reading.ts";
import { watchObjects } from "./live-reading.ts";
import { createLocalWorld } from "./local-world.ts";
import { readObjects } from "./reading.ts";
import { findPages } from "./up/endpoints.ts";

export interface ViewOptions {
  readonly kubeconfig: string | undefined;
  /** Of the kubeconfig; without it its current one. */
  readonly context?: string | undefined;
  readonly namespace: string | undefined;
  /** How long the server may take for its first answer. */
  readonly answerMs?: number | undefined;
  /** What the question needs; see ReadOptions. */
  readonly kinds?: readonly ObjectKind[] | undefined;
  /** Pages that somebody named; each has to answer. */
  readonly pages: readonly DebugPage[];
}

/** The objects of a cluster as views want them. */
export interface ClusterView {
  /** The one asked for, else that of the kubeconfig's context. */
  readonly namespace: string;
  readonly server: string;
  /** What a command for this cluster has to carry. */
  readonly commands: CommandContext;
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
  const cluster = await openForReading(options.kubeconfig, options.context, options.answerMs);
  try {
    const found = file === undefined ? [] : await findPages(file, cluster.server);
    // kubectl finds what KUBECONFIG names by itself, but knows nothing of the cluster of `mooring up` in this directory.
    const kubeconfig = options.kubeconfig ?? (await localKubeconfig(createLocalWorld()));
    return await use(createClusterView(cluster, { ...options, kubeconfig, found }));
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
  const { kinds, namespace = cluster.namespace } = sources;
  return {
    namespace,
    server: cluster.server,
    commands: { kubeconfig: sources.kubeconfig, context: sources.context },
    nowMs: () => cluster.clock.wall().getTime(),
    async read() {
      const [objects, said] = await Promise.all([
        readObjects(cluster.client, { namespace, kinds }),
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
      await watchObjects({ ...cluster, namespace, kinds }, again, signal);
    },
  };
}

export type Said = Pick<ClusterObjects, "waits" | "nodePages" | "notes">;

const NAMED_MS_MAX = 10_000;
/** They are on this machine, and answer within milliseconds or not at all. */
const FOUND_MS_MAX = 1_000;

/** Who was named and does not answer is an error; who was found is said to be silent, and done without. */
export async function askPages({ pages, found }: Pick<Sources, "pages" | "found">): Promise<Said> {
  const notes: string[] = [];
  const silent = ({ process, url }: DebugPage): PageAnswer => {
    notes.push(`${url} does not answer, where \`mooring up\` had its ${process}: this is told without it`);
    return { waits: [], nodePages: [] };
  };
  const unnamed = found.filter(
    ({ process }) => process === "node" || !pages.some((page) => page.process === process),
  );
  const answers = await Promise.all([
    ...pages.map((page) => readPage(page, { timeoutMs: NAMED_MS_MAX })),
    ...unnamed.map((page) => readPage(page, { timeoutMs: FOUND_MS_MAX }).catch(() => silent(page))),
  ]);
  return {
    waits: answers.flatMap(({ waits }) => waits),
    nodePages: answers.flatMap(({ nodePages }) => nodePages),
    notes,
  };
}

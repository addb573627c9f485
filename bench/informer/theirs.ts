import {
  CoreV1Api,
  KubeConfig,
  makeInformer,
  StorageV1Api,
  type KubernetesObject,
  type ObjectCache,
  type Informer,
} from "@kubernetes/client-node";
import {
  measureGets,
  measureSync,
  type GetResult,
  type Cache,
  type KindName,
  type SyncResult,
  type Task,
} from "./measure.ts";
import { podRefs } from "./pods.ts";

/** The official JavaScript client, used as its README and examples do, with its defaults. */
export async function measureTheirs(task: Task): Promise<SyncResult | GetResult> {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: "bench", server: task.server, caData: Buffer.from(task.ca).toString("base64") }],
    users: [{ name: "bench" }],
    contexts: [{ name: "bench", cluster: "bench", user: "bench" }],
    currentContext: "bench",
  });
  if (task.task === "sync") return measureSync(() => sync(config, task.kinds));
  const core = config.makeApiClient(CoreV1Api);
  const refs = podRefs(task.pods);
  return measureGets(task, (index) => core.readNamespacedPod(refs[index] ?? { namespace: "", name: "" }));
}

async function sync(config: KubeConfig, kinds: readonly KindName[]): Promise<Cache> {
  const caches = kinds.map((kind) => start(config, kind));
  await Promise.all(caches.map(({ started }) => started));
  for (const { informer, told } of caches) {
    const size = informer.list().length;
    if (told() !== size) throw new Error(`told ${told()} of ${size} objects`);
  }
  return {
    *objects() {
      for (const { informer } of caches) yield* informer.list();
    },
  };
}

function start(config: KubeConfig, kind: KindName) {
  const informer = create(config, kind);
  let told = 0;
  informer.on("add", () => {
    told++;
  });
  // A failed list would otherwise leave an empty cache that looks started.
  informer.on("error", (error: unknown) => {
    throw error;
  });
  // Resolves when the list is in the cache, handlers were told, and the watch is open.
  return { informer, told: () => told, started: informer.start() };
}

type AnyInformer = Informer<KubernetesObject> & ObjectCache<KubernetesObject>;

function create(config: KubeConfig, kind: KindName): AnyInformer {
  const core = config.makeApiClient(CoreV1Api);
  const storage = config.makeApiClient(StorageV1Api);
  switch (kind) {
    case "pods":
      return makeInformer(config, "/api/v1/pods", () => core.listPodForAllNamespaces());
    case "nodes":
      return makeInformer(config, "/api/v1/nodes", () => core.listNode());
    case "volumeAttachments":
      return makeInformer(config, "/apis/storage.k8s.io/v1/volumeattachments", () =>
        storage.listVolumeAttachment(),
      );
  }
}

import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { anonymous } from "../../src/kube/transport/access.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import { nodes, trimNode } from "../../src/kube/api/node.ts";
import { pods, trimPod } from "../../src/kube/api/pod.ts";
import { trimVolumeAttachment, volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import { createInformer, type InformerOptions } from "../../src/kube/informer/informer.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import {
  measureGets,
  measureSync,
  type GetResult,
  type KindName,
  type Cache,
  type SyncResult,
  type Task,
} from "./measure.ts";
import { podRefs } from "./pods.ts";

/** Our client and informers, put together as the processes do it. */
export async function measureOurs(task: Task): Promise<SyncResult | GetResult> {
  const clock = createSystemClock();
  const random = createSystemRandom();
  const transport = createHttpTransport({
    server: task.server,
    tls: { ca: task.ca },
    credentials: anonymous,
    impersonation: {},
  });
  const client = createClient({ transport, clock, random });
  if (task.task === "sync") return measureSync(() => sync({ client, clock, random }, task));
  const refs = podRefs(task.pods);
  return measureGets(task, (index) => client.get(pods, refs[index] ?? { name: "" }));
}

type Deps = Parameters<typeof createInformer>[0];

async function sync(
  deps: Deps,
  { kinds, trimmed }: { kinds: readonly KindName[]; trimmed: boolean },
): Promise<Cache> {
  const caches = kinds.map((kind) => start(deps, kind, { trimmed }));
  await Promise.all(caches.map(({ informer }) => informer.whenSynced()));
  for (const { informer, told } of caches) {
    if (told() !== informer.size) throw new Error(`told ${told()} of ${informer.size} objects`);
  }
  return {
    *objects() {
      for (const { informer } of caches) yield* informer.objects();
    },
  };
}

function start(deps: Deps, kind: KindName, { trimmed }: { trimmed: boolean }) {
  switch (kind) {
    case "pods":
      return run(deps, { resource: pods, ...(trimmed && { trim: trimPod }) });
    case "nodes":
      return run(deps, { resource: nodes, ...(trimmed && { trim: trimNode }) });
    case "volumeAttachments":
      return run(deps, { resource: volumeAttachments, ...(trimmed && { trim: trimVolumeAttachment }) });
  }
}

function run<T extends KubeObject>(deps: Deps, options: InformerOptions<T>) {
  const informer = createInformer(deps, options);
  let told = 0;
  informer.addHandler(() => {
    told++;
  });
  // Ends with the process, like everything else here.
  void informer.run(new AbortController().signal);
  return { informer, told: () => told };
}

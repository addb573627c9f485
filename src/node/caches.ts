import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { csiDrivers, type CSIDriver } from "../kube/api/csi-driver.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { createInformer, type Informer } from "../kube/informer/informer.ts";
import { createObjectWatches, type ObjectChanged, type ObjectWatches } from "./objects-watch.ts";

/** What the agent sees of the cluster: its own pods whole, itself, the CSI drivers, and single objects that pods name. */
export interface NodeCaches {
  readonly pods: Informer<Pod>;
  readonly node: Informer<Node>;
  readonly drivers: Informer<CSIDriver>;
  readonly objects: ObjectWatches;
  /** Called for every change of an object that is followed. Set once, before `run`. */
  onObjectChange(listener: ObjectChanged): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface NodeCachesDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export function createNodeCaches(
  deps: NodeCachesDeps,
  { nodeName }: { readonly nodeName: string },
): NodeCaches {
  let listener: ObjectChanged = () => undefined;
  const caches = {
    pods: createInformer(deps, {
      resource: pods,
      fieldSelector: `spec.nodeName=${nodeName}`,
      indexes: { uid: ({ metadata }) => [metadata.uid ?? ""] },
    }),
    node: createInformer(deps, { resource: nodes, fieldSelector: `metadata.name=${nodeName}` }),
    drivers: createInformer(deps, { resource: csiDrivers }),
    objects: createObjectWatches({ ...deps, random: deps.random.fork("objects") }, (resource, ref) =>
      listener(resource, ref),
    ),
  };
  return {
    ...caches,
    onObjectChange: (next) => void (listener = next),
    async run(signal) {
      await Promise.all(Object.values(caches).map((part) => part.run(signal)));
    },
  };
}

import type { Logger } from "../../base/log.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import { resourceName } from "../../kube/object.ts";
import type { VerbDeps } from "../request.ts";
import type { EngineController, Marks } from "./engine-controller.ts";
import { createClusterRoleAggregation } from "./cluster-role-aggregation.ts";
import { createEventExpiry } from "./event-expiry.ts";
import { createGarbageCollector } from "./garbage-collector.ts";
import { createMarkedQueue, type MarkedQueue } from "./marked-queue.ts";
import { createNamespaceController } from "./namespace.ts";
import { createPodGc } from "./pod-gc.ts";
import { createProtection, type ProtectedResource } from "./protection.ts";
import { ALL_CONTROLLERS, type ControllerName } from "./selection.ts";
import { STORED_KINDS } from "./served.ts";
import { createServiceAccounts } from "./service-accounts.ts";
import { createSystemObjects } from "./system-objects.ts";
import { createStoreFeed, type StoreFeed } from "./store-feed.ts";
import { createVacProtection } from "./vac-protection.ts";

export interface EngineControllers {
  /** Works until the signal aborts; may be run again. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when every key marked by the writes so far is done. What failed and waits for its backoff, and what is
   * planned for later, is not waited for. Resolves at once while nothing runs.
   */
  idle(): Promise<void>;
  /** Replaces what every `kube-root-ca.crt` says, and whose clients extension servers trust. */
  useRootCa(bundle: string): void;
  /** Tells where this server is reached, as `host:port`. */
  useAddress(address: string): void;
}

export interface EngineControllerOptions {
  /** The certificates of the authorities to trust, in PEM; without them no namespace gets a `kube-root-ca.crt`. */
  readonly rootCa?: string | undefined;
  /** Those that run; all unless told otherwise. What the server keeps for itself is kept in any case. */
  readonly controllers?: ReadonlySet<ControllerName> | undefined;
}

/**
 * The controllers that a cluster takes for granted and that kube-controller-manager runs there: accounts, namespaces,
 * garbage, protection, expiry. They belong to this server, and not to the product, which would fight the real ones.
 *
 * Callers may rely on: nothing is remembered beyond the store, so a start after a kill at any moment does what is left.
 */
export function createEngineControllers(
  deps: VerbDeps & { readonly log: Logger; readonly metrics?: Metrics },
  { rootCa, controllers = ALL_CONTROLLERS }: EngineControllerOptions = {},
): EngineControllers {
  const { log, metrics = noMetrics, ...rest } = deps;
  const verbs: VerbDeps = { ...rest, random: deps.random.fork("engine-controllers") };
  const loops: Loop[] = [];
  const feed = createStoreFeed(
    { store: deps.store, log },
    STORED_KINDS.map((kind) => resourceName(kind)),
    () => loops.map(({ controller }) => controller),
  );

  function add<C extends EngineController>(name: string, workers: number, create: (marks: Marks) => C): C {
    const queue = createMarkedQueue({ clock: deps.clock, log, metrics }, name);
    const controller = create(queue);
    loops.push({ queue, workers, controller });
    return controller;
  }

  // Workers wait for the disk most of the time; where keys come by the thousand, several share a commit.
  const accounts = add("serviceaccount", 4, (marks) =>
    createServiceAccounts(verbs, marks, {
      rootCa,
      makesAccounts: controllers.has("serviceaccount-controller"),
      publishesRootCa: controllers.has("root-ca-certificate-publisher-controller"),
    }),
  );
  const system = add("system_objects", 1, (marks) => createSystemObjects(verbs, marks, { clientCa: rootCa }));
  if (controllers.has("namespace-controller")) {
    add("namespace", 2, (marks) => createNamespaceController(verbs, marks));
  }
  if (controllers.has("garbage-collector-controller")) {
    add("garbage_collector", 8, (marks) => createGarbageCollector(verbs, marks, feed));
  }
  const resources = protectedResources(controllers);
  if (resources.length > 0)
    add("volume_protection", 4, (marks) => createProtection(verbs, marks, { resources }));
  if (controllers.has("volumeattributesclass-protection-controller")) {
    add("vac_protection", 1, (marks) => createVacProtection(verbs, marks));
  }
  if (controllers.has("pod-garbage-collector-controller")) {
    add("pod_gc", 2, (marks) => createPodGc({ ...verbs, log }, marks));
  }
  if (controllers.has("clusterrole-aggregation-controller")) {
    add("cluster_role_aggregation", 1, (marks) => createClusterRoleAggregation(verbs, marks));
  }
  if (controllers.has("event-expiry")) add("event_expiry", 8, (marks) => createEventExpiry(verbs, marks));
  return {
    run: (signal) => runAll(feed, loops, signal),
    idle: () => settle(feed, loops),
    useRootCa(bundle) {
      accounts.useRootCa(bundle);
      system.useClientCa(bundle);
    },
    useAddress: (address) => system.useAddress(address),
  };
}

function protectedResources(controllers: ReadonlySet<ControllerName>): readonly ProtectedResource[] {
  return [
    ...(controllers.has("persistentvolumeclaim-protection-controller")
      ? ["persistentvolumeclaims" as const]
      : []),
    ...(controllers.has("persistentvolume-protection-controller") ? ["persistentvolumes" as const] : []),
  ];
}

interface Loop {
  readonly queue: MarkedQueue;
  readonly workers: number;
  readonly controller: EngineController;
}

async function runAll(feed: StoreFeed, loops: readonly Loop[], signal: AbortSignal): Promise<void> {
  const following = feed.run(signal);
  const working = loops.map(({ queue, workers, controller }) => {
    const reconcile = (key: string) => {
      feed.sync();
      return controller.reconcile(key);
    };
    return queue.run({ workers, reconcile }, signal);
  });
  await Promise.all([following, ...working]);
  for (const { controller } of loops) controller.stop?.();
}

async function settle(feed: StoreFeed, loops: readonly Loop[]): Promise<void> {
  for (;;) {
    feed.sync();
    const busy = loops.filter(({ queue }) => !queue.isIdle);
    if (!feed.isOpen || busy.length === 0) return;
    await Promise.race(busy.map(({ queue }) => queue.next()));
  }
}

import type { Logger } from "../../base/log.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import { resourceName } from "../../kube/object.ts";
import type { VerbDeps } from "../request.ts";
import type { EngineController, Marks } from "./engine-controller.ts";
import { createEventExpiry } from "./event-expiry.ts";
import { createGarbageCollector } from "./garbage-collector.ts";
import { createMarkedQueue, type MarkedQueue } from "./marked-queue.ts";
import { createNamespaceController } from "./namespace.ts";
import { createProtection } from "./protection.ts";
import { STORED_KINDS } from "./served.ts";
import { createServiceAccounts } from "./service-accounts.ts";
import { createStoreFeed, type StoreFeed } from "./store-feed.ts";

export interface EngineControllers {
  /** Works until the signal aborts; may be run again. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when every key marked by the writes so far is done. What failed and waits for its backoff, and what is
   * planned for later, is not waited for. Resolves at once while nothing runs.
   */
  idle(): Promise<void>;
  /** Replaces what every `kube-root-ca.crt` says. */
  useRootCa(bundle: string): void;
}

export interface EngineControllerOptions {
  /** The certificates of the authorities to trust, in PEM; without them no namespace gets a `kube-root-ca.crt`. */
  readonly rootCa?: string | undefined;
}

/**
 * The controllers that a cluster takes for granted and that kube-controller-manager runs there: accounts, namespaces,
 * garbage, protection, expiry. They belong to this server, and not to the product, which would fight the real ones.
 *
 * Callers may rely on: nothing is remembered beyond the store, so a start after a kill at any moment does what is left.
 */
export function createEngineControllers(
  deps: VerbDeps & { readonly log: Logger; readonly metrics?: Metrics },
  { rootCa }: EngineControllerOptions = {},
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
  const accounts = add("serviceaccount", 4, (marks) => createServiceAccounts(verbs, marks, { rootCa }));
  add("namespace", 2, (marks) => createNamespaceController(verbs, marks));
  add("garbage_collector", 8, (marks) => createGarbageCollector(verbs, marks, feed));
  add("volume_protection", 4, (marks) => createProtection(verbs, marks));
  add("event_expiry", 8, (marks) => createEventExpiry(verbs, marks));
  return {
    run: (signal) => runAll(feed, loops, signal),
    idle: () => settle(feed, loops),
    useRootCa: (bundle) => accounts.useRootCa(bundle),
  };
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

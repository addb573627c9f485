import type { Logger } from "../../base/log.ts";
import { createBell } from "../bell.ts";
import type { ObjectStore, StoredObject, StoreEvent, StoreWatch } from "../store/store.ts";
import type { Change } from "./engine-controller.ts";

/** Who is told. A change that makes one throw is logged, and the others are told all the same. */
export interface Observer {
  clear(): void;
  observe(change: Change): void;
}

/** Tells observers of everything in the store, then of every write. */
export interface StoreFeed {
  readonly isOpen: boolean;
  /** After this the observers know every write committed so far. */
  readonly sync: () => void;
  /** Looks at the whole store, then follows it until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Half of the 1,000 events that a watch keeps for its reader: a store that commits hundreds of writes in one go is
 * followed in between, so that a burst does not end in looking at everything again.
 */
const BEHIND_MAX = 500;

export function createStoreFeed(
  { store, log }: { readonly store: ObjectStore; readonly log: Logger },
  resources: readonly string[],
  observers: () => readonly Observer[],
): StoreFeed {
  const bell = createBell();
  /** Empty before the start and after the end. */
  let watches: readonly StoreWatch[] = [];
  /** Those with something to tell: of some sixty kinds one or two at a time. */
  const rung = new Set<StoreWatch>();
  let behind = 0;

  function tell(type: Change["type"], object: StoredObject): void {
    for (const observer of observers()) {
      try {
        observer.observe({ type, object });
      } catch (error) {
        log.error("cannot understand an object; a controller leaves it alone", { ...object.key, error });
      }
    }
  }

  /** Opens every watch before it looks, and all of it without an await, so that no write falls in between. */
  function start(): void {
    stop();
    for (const observer of observers()) observer.clear();
    watches = resources.map((resource) => {
      const watch: StoreWatch = store.watch({ resource, afterRevision: store.revision }, () => wake(watch));
      return watch;
    });
    // A watch keeps events for its reader from the first time it was asked and had none.
    for (const watch of watches) watch.take();
    for (const resource of resources) {
      for (const object of store.scan({ resource })) tell("found", object);
    }
  }

  function stop(): void {
    for (const watch of watches) watch.close();
    watches = [];
    rung.clear();
  }

  function wake(watch: StoreWatch): void {
    rung.add(watch);
    if (++behind >= BEHIND_MAX) sync();
    else bell.ring();
  }

  function sync(): void {
    behind = 0;
    const told = [...rung];
    rung.clear();
    for (const watch of told) drain(watch);
    // Events were lost, perhaps the end of an owner: only the whole store can tell what is true.
    if (told.some(({ state }) => state !== "open")) start();
  }

  function drain(watch: StoreWatch): void {
    for (let event: StoreEvent | undefined; (event = watch.take()) !== undefined;) {
      tell(event.type, event.object);
    }
  }

  return {
    get isOpen() {
      return watches.length > 0;
    },
    sync,
    async run(signal) {
      const onAbort = () => {
        stop();
        bell.ring();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      if (!signal.aborted) start();
      while (!signal.aborted) {
        await bell.wait();
        sync();
      }
    },
  };
}

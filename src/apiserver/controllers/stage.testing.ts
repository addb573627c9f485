import type { OwnerReference } from "kubernetes-types/meta/v1.js";
import { createLogger } from "../../base/log.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { givenServer, type Answer } from "../scenario.testing.ts";
import type { MemoryStoreOptions } from "../store/memory.ts";
import { StoreError, type ObjectStore } from "../store/store.ts";
import { createEngineControllers, type EngineControllerOptions } from "./engine-controllers.ts";

export const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";
export const CLAIMS = "/api/v1/namespaces/t/persistentvolumeclaims";
export const PODS = "/api/v1/namespaces/t/pods";
export const EVENTS = "/api/v1/namespaces/t/events";
export const MERGE = { type: "application/merge-patch+json" };

/** For tests: a server with its controllers, which every request waits for. They may be stopped and started. */
export async function givenEngine(
  options: MemoryStoreOptions &
    EngineControllerOptions & { wrapStore?: (store: ObjectStore) => ObjectStore } = {},
) {
  const server = await givenServer(options);
  const { scheduler, clock } = server;
  const store = options.wrapStore?.(server.store) ?? server.store;
  const logged: string[] = [];
  const log = createLogger((level, message) => logged.push(`${level} ${message}`));
  let current = start();

  /** As after a restart of the process: nothing is known but the store. */
  function start() {
    const stopping = new AbortController();
    const random = createSeededRandom("engine");
    const controllers = createEngineControllers({ store, clock, log, random }, options);
    return { controllers, stopping, ended: controllers.run(stopping.signal) };
  }

  async function stop(): Promise<void> {
    current.stopping.abort(new Error("stopped by the test"));
    await current.ended;
  }

  async function settle(): Promise<void> {
    await current.controllers.idle();
    await scheduler.runFor(0);
  }

  async function ok(...request: Parameters<typeof server.ok>): Promise<Answer> {
    const answer = await server.ok(...request);
    await settle();
    return answer;
  }

  /** The status of a GET, once everything has settled. */
  async function statusOf(path: string): Promise<number> {
    await settle();
    return (await server.send("GET", path)).status;
  }

  await settle();
  return {
    ...server,
    ok,
    settle,
    statusOf,
    stop,
    start: () => void (current = start()),
    logged,
    idle: () => current.controllers.idle(),
    useRootCa: (bundle: string) => current.controllers.useRootCa(bundle),
    useAddress: (address: string) => current.controllers.useAddress(address),
  };
}

/** A reference to an object as the server answered with it. */
export function ownedBy(
  { apiVersion, kind, metadata }: Answer,
  extra: Partial<OwnerReference> = {},
): OwnerReference {
  return { apiVersion, kind, name: metadata.name ?? "", uid: metadata.uid ?? "", ...extra };
}

export function pod(name: string, spec: object = {}): object {
  return { metadata: { name }, spec: { nodeName: "n", containers: [{ name: "c", image: "i" }], ...spec } };
}

export function claim(name: string, metadata: object = {}): object {
  return {
    metadata: { name, ...metadata },
    spec: {
      storageClassName: "none",
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

/** A store that has no space for deletions while its disk is full. */
export function withDisk(store: ObjectStore, disk: { readonly isFull: boolean }): ObjectStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "delete" && disk.isFull) {
        return () => Promise.reject(new StoreError("Full", "delete: no space left"));
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

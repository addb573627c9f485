import type { OwnerReference } from "kubernetes-types/meta/v1.js";
import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import { forSeeds } from "../../sim/seeds.ts";
import type { ApiObject } from "../objects.ts";
import type { ObjectStore, StoredObject } from "../store/store.ts";
import { resolveOwner } from "./owners.ts";
import { givenEngine, MERGE } from "./stage.testing.ts";

/**
 * Random owners, finalizers, policies and restarts over two namespaces and the cluster's scope, with requests and
 * controllers at work at the same time.
 */
const STEPS = 60;
/** What the controllers may ask of the store in one run; most ask for 300 objects, a loop asks for ever. */
const READS_MAX = 5_000;
const POLICIES = ["Background", "Foreground", "Foreground", "Foreground", "Orphan"];
const FINALIZER = "ex.io/x";
const FOREIGN = {
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  name: "rs",
  uid: "00000000-0000-4000-8000-000000000001",
};
const GHOST = {
  apiVersion: "v1",
  kind: "ConfigMap",
  name: "ghost",
  uid: "00000000-0000-4000-8000-000000000002",
};

const COLLECTIONS = ["/api/v1/namespaces/t/configmaps", "/api/v1/namespaces/u/configmaps", "/api/v1/nodes"];

test("what nobody owns goes, what a living owner owns stays, and all comes to rest", async () => {
  await forSeeds(100, async (random) => {
    const misdeeds: string[] = [];
    const reads = { count: 0 };
    const engine = await givenEngine({
      wrapStore: (store) => observed(store, misdeeds, reads, random.fork("disk")),
      ...(chance(random, 0.3) ? { queueEventsMax: 2 } : {}),
    });
    await engine.ok("POST", "/api/v1/namespaces", { metadata: { name: "u" } });

    for (let step = 0; step < STEPS; step++) await act(engine, random);
    await engine.scheduler.runFor(60_000);
    expectCollected(engine.store);
    for (const path of pathsOf(engine.store)) await release(engine, path);
    await engine.scheduler.runFor(60_000);

    expect(misdeeds).toEqual([]);
    expectCollected(engine.store);
    expect(
      objectsIn(engine.store).filter(({ metadata }) => metadata.deletionTimestamp !== undefined),
    ).toEqual([]);
    expect(reads.count).toBeLessThan(READS_MAX);
    const { revision } = engine.store;
    await engine.scheduler.runFor(600_000);
    expect(engine.store.revision).toBe(revision);
    await engine.stop();
  });
});

type Engine = Awaited<ReturnType<typeof givenEngine>>;

async function act(engine: Engine, random: Random): Promise<void> {
  const { send, stop, start, scheduler, store } = engine;
  const paths = pathsOf(store);
  const path = paths.length === 0 ? undefined : pick(random, paths);
  const draw = random.int(100);
  // Requests are not waited for: the next comes while the controllers are at this one.
  if (draw < 40 || path === undefined) {
    const collection = pick(random, COLLECTIONS);
    void send("POST", collection, newObject(random, store, collection));
  } else if (draw < 65) void send("DELETE", path, { propagationPolicy: pick(random, POLICIES) });
  else if (draw < 71) void release(engine, path);
  else if (draw < 91)
    void send("PATCH", path, { metadata: { ownerReferences: randomOwners(random, store, path) } }, MERGE);
  else if (draw < 94) await stop().then(start);
  else await scheduler.runFor(random.int(50));
  for (let turn = random.int(12); turn > 0; turn--) await Promise.resolve();
}

/** Takes away our finalizer and leaves the collector its own. */
function release({ send }: Engine, path: string): Promise<unknown> {
  const patch = { metadata: { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } };
  return send("PATCH", path, patch, { type: "application/strategic-merge-patch+json" });
}

function newObject(random: Random, store: ObjectStore, collection: string): object {
  return {
    metadata: {
      name: `o${random.int(6)}`,
      ownerReferences: randomOwners(random, store, collection),
      ...(chance(random, 0.2) ? { finalizers: [FINALIZER] } : {}),
    },
  };
}

/** Mostly such as may own what lies at `path`; now and then anything. */
function randomOwners(random: Random, store: ObjectStore, path: string): OwnerReference[] {
  const { namespace } = /namespaces\/(?<namespace>[a-z]+)\//.exec(path)?.groups ?? {};
  const isFitting = ({ metadata }: ApiObject) =>
    metadata.namespace === undefined || metadata.namespace === namespace || chance(random, 0.05);
  const known = objectsIn(store)
    .filter(isFitting)
    .map(({ apiVersion, kind, metadata }) => ({
      apiVersion: apiVersion as string,
      kind: kind as string,
      name: metadata.name ?? "",
      uid: metadata.uid ?? "",
    }));
  const candidates = [...known, ...(chance(random, 0.2) || known.length === 0 ? [GHOST, FOREIGN] : [])];
  const owners = Array.from({ length: random.int(4) }, () => pick(random, candidates));
  const unique = [...new Map(owners.map((owner) => [owner.uid, owner])).values()];
  return unique.map((owner) => ({ ...owner, blockOwnerDeletion: chance(random, 0.6) }));
}

/** The store as the controllers have it: every deletion they begin is judged at the moment it is written. */
function observed(
  store: ObjectStore,
  misdeeds: string[],
  reads: { count: number },
  random: Random,
): ObjectStore {
  const judge = (stored: StoredObject | undefined, text: string) => {
    if (stored === undefined || isMarked(stored) || !text.includes('"deletionTimestamp":')) return;
    if (!isAbandoned(store, stored)) misdeeds.push(`deleted ${stored.text}`);
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "get") reads.count++;
      if (reads.count > READS_MAX) throw new Error("the controllers do not come to rest");
      if (name === "update" || name === "delete") {
        const write: ObjectStore["update"] = async (key, render, condition) => {
          judge(store.get(key), name === "delete" ? '"deletionTimestamp":' : render(0));
          // A disk takes its time; others write meanwhile.
          for (let turn = random.int(8); turn > 0; turn--) await Promise.resolve();
          return store[name](key, render, condition);
        };
        return write;
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function expectCollected(store: ObjectStore): void {
  const left = scan(store).filter((stored) => !isMarked(stored) && isAbandoned(store, stored));
  expect(left.map(({ text }) => text)).toEqual([]);
}

/** It has owners, and none of them is there for it. Written again here, on purpose, from the words of the API. */
function isAbandoned(store: ObjectStore, stored: StoredObject): boolean {
  const { metadata } = parse(stored);
  const references = metadata.ownerReferences ?? [];
  return references.length > 0 && references.every((reference) => isLost(store, stored, reference));
}

function isLost(store: ObjectStore, { key }: StoredObject, reference: OwnerReference): boolean {
  const owner = resolveOwner(key, reference);
  if (owner.key === undefined) return false;
  const stored = store.get(owner.key);
  if (stored === undefined) return true;
  const { uid, deletionTimestamp, finalizers = [] } = parse(stored).metadata;
  return uid !== owner.uid || (deletionTimestamp !== undefined && finalizers.includes("foregroundDeletion"));
}

function isMarked(stored: StoredObject): boolean {
  return parse(stored).metadata.deletionTimestamp !== undefined;
}

function scan(store: ObjectStore): StoredObject[] {
  return [...store.scan({ resource: "configmaps" }), ...store.scan({ resource: "nodes" })];
}

function objectsIn(store: ObjectStore): ApiObject[] {
  return scan(store).map(parse);
}

function pathsOf(store: ObjectStore): string[] {
  return scan(store).map(({ key: { resource, namespace, name } }) =>
    namespace === "" ? `/api/v1/${resource}/${name}` : `/api/v1/namespaces/${namespace}/${resource}/${name}`,
  );
}

function parse(stored: StoredObject): ApiObject {
  return JSON.parse(stored.text) as ApiObject;
}

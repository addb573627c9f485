import { describe, expect, test } from "vitest";
import { createLogger, type LogFields } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { NO_FAULTS, type NetworkFaults } from "../../sim/faulty-transport.ts";
import { startCore } from "../../sim/harness.ts";
import { failure, refusesStreamingLists } from "../../sim/other-servers.ts";
import type { SimServerOptions } from "../../sim/server.ts";
import { configMaps, type ConfigMap } from "../api/config-map.ts";
import { createInformer, type Informer, type InformerOptions } from "./informer.ts";
import type { ObjectKey } from "../object.ts";
import type { Delta } from "./store.ts";

/** An informer of ConfigMaps on the embedded API server, in virtual time. */
async function given(options: Partial<InformerOptions<ConfigMap>> = {}, server: SimServerOptions = {}) {
  const core = await startCore(1, server);
  const { scheduler, client: admin } = core;
  const requests: string[] = [];
  const logged: { message: string; fields: LogFields }[] = [];
  const metrics = createPromMetrics();
  const told: string[] = [];
  let informer!: Informer<ConfigMap>;
  let run: () => void = () => undefined;
  const ends: unknown[] = [];
  const process = core.add(
    "informer",
    async ({ cluster, clock, random }, signal) => {
      const log = createLogger((_, message, fields) => void logged.push({ message, fields }));
      const deps = { client: cluster.client, clock, random, metrics, log };
      informer = createInformer<ConfigMap>(deps, { resource: configMaps, ...options });
      informer.addHandler((delta) => void told.push(inShort(delta)));
      await new Promise<void>((resolve) => (run = resolve));
      await informer.run(signal);
    },
    {
      ...{ rate: 1, restarts: false, onEnd: (error) => ends.push(error) },
      through: (wire) => ({
        ...wire,
        request: (call) => (requests.push(call.path), wire.request(call)),
        stream: (call) => (requests.push(call.path), wire.stream(call)),
      }),
    },
  );
  process.start();

  async function write(work: Promise<unknown>): Promise<void> {
    await scheduler.runFor(0);
    await work;
    await scheduler.runFor(1_000);
  }
  return {
    ...{ scheduler, admin, store: core.server.store, informer, told, requests, logged, metrics, ends, run },
    stop: () => process.stop(),
    suffer: (faults: Partial<NetworkFaults>) => process.setFaults({ ...NO_FAULTS, ...faults }),
    create: (name: string, labels: Record<string, string> = {}) =>
      write(admin.create(configMaps, { metadata: { namespace: "default", name, labels } })),
    change: (name: string) =>
      write(
        admin.patch(
          configMaps,
          { namespace: "default", name },
          { type: "merge", value: { data: { x: String(scheduler.nowMs) } } },
        ),
      ),
    remove: (name: string) => write(admin.delete(configMaps, { namespace: "default", name })),
  };
}

function inShort(delta: Delta<ConfigMap>): string {
  const kind = delta.kind === "deleted" && delta.tombstone ? "tombstone" : delta.kind;
  return `${kind} ${delta.object.metadata.name ?? ""}`;
}

test("one request syncs and watches; changes arrive as they happen", async () => {
  const world = await given();
  await world.create("a");

  world.run();
  await world.scheduler.runFor(100);
  expect(world.informer.hasSynced()).toBe(true);
  await world.create("b");
  await world.change("b");
  await world.remove("a");

  expect(world.told).toEqual(["added a", "added b", "updated b", "deleted a"]);
  expect(world.requests).toHaveLength(1);
  expect(world.requests[0]).toContain("sendInitialEvents=true");
});

test("a server that does not know streaming lists is listed in pages, consistently", async () => {
  const world = await given({}, { behaves: refusesStreamingLists });
  await world.create("a");

  world.run();
  await world.scheduler.runFor(1_000);
  await world.create("b");

  expect(world.told).toEqual(["added a", "added b"]);
  expect(world.requests[1]).toMatch(/configmaps\?limit=500$/);
  expect(world.requests[2]).toMatch(/resourceVersion=\d+/);
});

test("pages that expire before the last one is read come again, four times as large", async () => {
  let expirations = 2;
  const world = await given(
    {},
    {
      behaves: (handler) => {
        const paged = refusesStreamingLists(handler);
        return async (request) => {
          if (!request.path.includes("limit=") || expirations-- <= 0) return paged(request);
          return failure(410, "Expired");
        };
      },
    },
  );

  world.run();
  await world.scheduler.runFor(5_000);

  expect(world.informer.hasSynced()).toBe(true);
  const limits = world.requests.flatMap((path) => /limit=(\d+)/.exec(path)?.[1] ?? []);
  expect(limits).toEqual(["500", "2000", "8000"]);
});

test("a silent connection is noticed after 90 s, and what happened meanwhile is told without a relist", async () => {
  const world = await given();
  world.run();
  await world.scheduler.runFor(1_000);
  world.suffer({ silent: 1 });
  await world.create("a");
  expect(world.told).toEqual([]);

  world.suffer({});
  await world.scheduler.runFor(91_000);

  expect(world.told).toEqual(["added a"]);
  expect(world.requests).toHaveLength(2);
  expect(world.requests[1]).toMatch(/resourceVersion=\d+/);
});

test("staleness is the time since the server last spoke, and an idle server speaks once a minute", async () => {
  const world = await given();
  expect(world.informer.stalenessMs()).toBe(Infinity);

  world.run();
  await world.scheduler.runFor(1_000);
  expect(world.informer.stalenessMs()).toBeLessThanOrEqual(1_000);
  await world.scheduler.runFor(600_000);

  expect(world.informer.stalenessMs()).toBeLessThanOrEqual(61_000);
});

test("a deletion that nobody saw arrives as a tombstone with the last known object", async () => {
  const world = await given();
  await world.create("kept");
  await world.create("gone");
  world.run();
  await world.scheduler.runFor(100);

  world.suffer({ unreachable: 1 });
  await world.scheduler.runFor(700_000); // the watch ends by its own timeout and cannot be opened again
  await world.remove("gone");
  await world.store.compact(world.store.revision);
  world.suffer({});
  await world.scheduler.runFor(60_000);

  expect(world.told.slice(2)).toEqual(["tombstone gone"]);
  expect(world.informer.get("default/gone" as ObjectKey)).toBeUndefined();
  expect(world.logged.map(({ message }) => message)).toEqual([
    "informer synced",
    "informer lost contact; it goes on trying",
    "informer is back in contact",
    "informer fell behind; it takes the whole state",
  ]);
});

describe("gaps in the history", () => {
  const gapsOf = (world: Awaited<ReturnType<typeof given>>) => {
    const gaps: string[] = [];
    world.informer.onGap(() => {
      throw new Error("a handler that always fails must not matter");
    });
    world.informer.onGap(({ fromVersion, toVersion }) => {
      world.told.push("gap");
      gaps.push(`${fromVersion} to ${toVersion}`);
    });
    return gaps;
  };

  test("the first state is none, nor are resumed watches and a resync", async () => {
    const world = await given({ resyncMs: 600_000 });
    const gaps = gapsOf(world);
    await world.create("a");
    world.run();
    // Watches end after 5 to 10 minutes.
    await world.scheduler.runFor(3_600_000);
    await world.create("b");

    expect(gaps).toEqual([]);
    expect(world.requests.length).toBeGreaterThan(5);
  });

  for (const behaves of [undefined, refusesStreamingLists])
    test(`a list after a lost position is told first, with both versions${behaves ? ", where lists come in pages" : ""}`, async () => {
      const world = await given({}, { behaves });
      const gaps = gapsOf(world);
      await world.create("kept");
      world.run();
      await world.scheduler.runFor(700_000);
      const before = world.informer.version();
      expect(world.informer.watchedMs()).toBeGreaterThan(0);

      world.suffer({ unreachable: 1 });
      await world.scheduler.runFor(700_000);
      expect(world.informer.watchedMs()).toBe(0);
      await world.create("came");
      await world.create("came-and-went");
      await world.remove("came-and-went");
      await world.store.compact(world.store.revision);
      world.suffer({});
      await world.scheduler.runFor(60_000);

      expect(world.told).toEqual(["added kept", "gap", "added came"]);
      expect(gaps).toEqual([`${before ?? ""} to ${world.store.revision}`]);
    });
});

describe("handlers", () => {
  test("one that comes late is told of everything there is", async () => {
    const world = await given();
    await world.create("a");
    world.run();
    await world.scheduler.runFor(100);

    const late: string[] = [];
    const leave = world.informer.addHandler((delta) => void late.push(inShort(delta)));
    await world.create("b");
    leave();
    await world.create("c");

    expect(late).toEqual(["added a", "added b"]);
  });

  test("one that throws, or rejects, is counted and hurts nobody else", async () => {
    const world = await given();
    world.informer.addHandler(() => {
      throw new Error("broken");
    });
    world.informer.addHandler(() => Promise.reject(new Error("broken later")));
    const after: string[] = [];
    world.informer.addHandler((delta) => void after.push(inShort(delta)));

    world.run();
    await world.scheduler.runFor(100);
    await world.create("a");

    expect(world.told).toEqual(["added a"]);
    expect(after).toEqual(["added a"]);
    expect(await world.metrics.render()).toContain(
      'mooring_informer_handler_errors_total{resource="configmaps"} 2',
    );
  });

  test("a resync tells every object again, unchanged", async () => {
    const world = await given({ resyncMs: 600_000 });
    await world.create("a");
    const same: boolean[] = [];
    world.informer.addHandler(
      (delta) => delta.kind === "updated" && void same.push(delta.old === delta.object),
    );

    world.run();
    await world.scheduler.runFor(1_300_000);

    expect(same).toEqual([true, true]);
  });
});

describe("what is kept", () => {
  test("managed fields and kubectl's copy are dropped before anything is kept", async () => {
    const world = await given();
    world.run();
    await world.scheduler.runFor(10);
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}", keep: "me" };
    const metadata = { namespace: "default", name: "a", annotations, managedFields: [{ manager: "m" }] };
    void world.admin.create(configMaps, { metadata });
    await world.scheduler.runFor(1_000);

    const kept = world.informer.get("default/a" as ObjectKey);

    expect(kept?.metadata.annotations).toEqual({ keep: "me" });
    expect(kept?.metadata.managedFields).toBeUndefined();
  });

  test("an object that cannot be read is left out and counted; the rest go on", async () => {
    const world = await given({
      trim: (object) => {
        if (object.metadata.name === "bad") throw new TypeError("no spec");
        return object;
      },
    });
    await world.create("bad");
    await world.create("good");

    world.run();
    await world.scheduler.runFor(100);
    await world.change("bad");

    expect(world.told).toEqual(["added good"]);
    expect(await world.metrics.render()).toContain(
      'mooring_informer_bad_objects_total{resource="configmaps"} 2',
    );
  });

  test("a selector is the server's work; objects that leave it are deleted here", async () => {
    const world = await given({
      labelSelector: "app=db",
      indexes: { app: ({ metadata }) => [metadata.labels?.["app"] ?? ""] },
    });
    await world.create("a", { app: "db" });
    await world.create("b", { app: "web" });
    world.run();
    await world.scheduler.runFor(100);
    expect(world.informer.byIndex("app", "db").map(({ metadata }) => metadata.name)).toEqual(["a"]);

    void world.admin.patch(
      configMaps,
      { namespace: "default", name: "a" },
      { type: "merge", value: { metadata: { labels: { app: "web" } } } },
    );
    await world.scheduler.runFor(100);

    expect(world.told).toEqual(["added a", "deleted a"]);
    expect(world.informer.size).toBe(0);
  });
});

test("waiting for sync ends with the sync, or with the caller's patience", async () => {
  const world = await given();
  const patience = new AbortController();
  const waited = world.informer.whenSynced().then(() => "synced");
  const gaveUp = world.informer
    .whenSynced(patience.signal)
    .catch((error: unknown) => (error as Error).message);

  patience.abort(new Error("shutting down"));
  world.run();
  await world.scheduler.runFor(100);

  expect(await waited).toBe("synced");
  expect(await gaveUp).toBe("shutting down");
  await world.informer.whenSynced();
});

test("it ends when told to, whatever it is doing, and not before", async () => {
  const world = await given({ resyncMs: 1_000 });
  world.suffer({ unreachable: 1 });
  world.run();
  await world.scheduler.runFor(3_600_000);
  expect(world.ends).toEqual([]);

  world.stop();
  await world.scheduler.runFor(0);

  expect(world.ends).toEqual([undefined]);
});

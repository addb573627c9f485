import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createHandler } from "../../src/apiserver/handler.ts";
import { createSystemNamespaces } from "../../src/apiserver/namespaces.ts";
import { startServer } from "../../src/apiserver/server.ts";
import { createMemoryStore } from "../../src/apiserver/store/memory.ts";
import { silentLogger } from "../../src/base/log.ts";
import { noMetrics } from "../../src/base/metrics.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import { configMaps, type ConfigMap } from "../../src/kube/api/config-map.ts";
import { createInformer } from "../../src/kube/informer/informer.ts";
import type { Delta } from "../../src/kube/informer/store.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import {
  cutBeforeHeaders,
  cutWatch,
  duplicateEvents,
  expiredInStream,
  garbageLine,
  halfLine,
  reorderedEvents,
  silentWatch,
  status,
  tooManyRequests,
  type Behaviour,
} from "../contract/faults.ts";
import { createLoopback, type Loopback } from "../contract/loopback.ts";
import { createRelay } from "../contract/relay.ts";

/** The informer over real sockets: the seeds run in `src/kube`, this shows that the wire is the same. */

const PATH = "/api/v1/configmaps";
const event = (type: string, name: string, resourceVersion: number) =>
  JSON.stringify({
    type,
    object: {
      metadata: { namespace: "n", name, uid: `uid-${name}`, resourceVersion: String(resourceVersion) },
    },
  });
const endOfState = (resourceVersion: number) =>
  JSON.stringify({
    type: "BOOKMARK",
    object: {
      metadata: {
        resourceVersion: String(resourceVersion),
        annotations: { "k8s.io/initial-events-end": "true" },
      },
    },
  });

/** What a bad day looks like, from the first connection to the quiet after it. */
const badDay: readonly [Behaviour, ...Behaviour[]] = [
  cutBeforeHeaders(),
  status(500, "InternalError"),
  tooManyRequests(1),
  // Three failures make it fall back to a list, which it asks for with `limit`.
  (reply, request) =>
    request.path.includes("limit=")
      ? listOf(["a", 1], ["b", 2])(reply, request)
      : status(500, "InternalError")(reply, request),
  cutWatch(event("MODIFIED", "a", 3)),
  duplicateEvents(event("MODIFIED", "a", 3), event("MODIFIED", "a", 4)),
  garbageLine(event("ADDED", "c", 5), event("ADDED", "d", 6)),
  halfLine(event("ADDED", "d", 6), event("ADDED", "e", 7)),
  reorderedEvents(event("ADDED", "f", 8), event("ADDED", "e", 7)),
  expiredInStream(),
  watchThenSilence(event("ADDED", "a", 4), event("ADDED", "f", 8), endOfState(20)),
];

let loopback: Loopback;
beforeEach(async () => {
  loopback = await createLoopback();
});
afterEach(() => loopback.close());

function follow(transport: Transport) {
  const clock = createSystemClock();
  const client = createClient({ transport, clock, random: createSeededRandom(1) });
  const informer = createInformer<ConfigMap>(
    { client, clock, random: createSeededRandom(2) },
    { resource: configMaps },
  );
  const told: string[] = [];
  const waiting = new Set<() => void>();
  informer.addHandler((delta: Delta<ConfigMap>) => {
    const kind = delta.kind === "deleted" && delta.tombstone ? "tombstone" : delta.kind;
    told.push(`${kind} ${delta.object.metadata.name ?? ""}`);
    for (const check of waiting) check();
  });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  const until = (line: string) =>
    new Promise<void>((resolve) => {
      const check = () => {
        if (told.includes(line)) resolve();
      };
      waiting.add(check);
      check();
    });
  const end = async () => {
    stop.abort();
    await running;
  };
  return { client, informer, told, until, end };
}

for (const protocol of ["http/1.1", "https/1.1", "https/2"] as const) {
  test(`over ${protocol}: a bad day ends with the server's state, every change told once`, async () => {
    const server = await loopback.serve({ protocol });
    server.on(PATH, ...badDay);
    const { told, until, informer, end } = follow(loopback.connect(server.url));

    await until("tombstone e");
    await end();

    expect(told.slice(0, 8)).toEqual([
      "added a",
      "added b",
      "updated a",
      "updated a",
      "added c",
      "added d",
      "added e",
      "added f",
    ]);
    expect(told.slice(8).sort()).toEqual(["tombstone b", "tombstone c", "tombstone d", "tombstone e"]);
    expect([...informer.objects()].map(({ metadata }) => metadata.name).sort()).toEqual(["a", "f"]);
  });
}

describe("the embedded API server, through a network that dies without a word", () => {
  test("a frozen HTTP/2 connection is noticed by ping, and the watch goes on over a new one", async () => {
    const { transport, relay, stopServer } = await serveThroughRelay();
    const { told, until, client, end } = follow(transport);
    const create = (name: string) => client.create(configMaps, { metadata: { namespace: "default", name } });
    await create("before");
    await until("added before");

    const frozen = relay.freeze();
    // Swallowed by the dead connection: the caller's deadline frees it, and the next try takes another.
    await create("during").catch(() => undefined);
    await frozen;
    await create("after").catch(() => create("after"));
    await until("added after");
    await end();
    await stopServer();

    expect(told.filter((line) => line === "added after")).toHaveLength(1);
    expect(relay.accepted).toBeGreaterThan(1);
  });
});

async function serveThroughRelay() {
  const clock = createSystemClock();
  const random = createSeededRandom(3);
  const store = createMemoryStore({ clock });
  await createSystemNamespaces({ store, clock, random });
  const handler = createHandler({ store, clock, random, log: silentLogger, metrics: noMetrics });
  const validForMs = 3_600_000;
  const { certificate, key } = await loopback.authority.issueServer({
    names: [],
    addresses: ["127.0.0.1"],
    validForMs,
  });
  const clientCertificate = await loopback.authority.issueClient({
    user: "admin",
    groups: ["system:masters"],
    validForMs,
  });
  const tls = { certificate, key, clientCa: loopback.authority.certificate };
  const server = await startServer(
    { handler, clock, log: silentLogger },
    { host: "127.0.0.1", port: 0, tls },
  );
  const relay = await createRelay(server.address.port);
  loopback.alsoClose(relay);
  const credentials = { current: async () => ({ clientCertificate }), rejected: () => false };
  const health = { pingEveryMs: 200, pingTimeoutMs: 300 };
  const transport = loopback.connect(`https://127.0.0.1:${relay.port}`, { credentials }, { health });
  return { transport, relay, stopServer: () => server.stop() };
}

function listOf(...items: readonly (readonly [string, number])[]): Behaviour {
  const body = JSON.stringify({
    kind: "ConfigMapList",
    metadata: { resourceVersion: "2" },
    items: items.map(([name, version]) => ({
      metadata: { namespace: "n", name, uid: `uid-${name}`, resourceVersion: String(version) },
    })),
  });
  return async (reply) => {
    reply.head(200, { "content-type": "application/json" });
    await reply.write(body);
    reply.end();
  };
}

function watchThenSilence(...lines: readonly string[]): Behaviour {
  return async (reply, request) => {
    reply.head(200, { "content-type": "application/json" });
    for (const line of lines) await reply.write(`${line}\n`);
    await silentWatch()({ ...reply, head: () => undefined }, request);
  };
}

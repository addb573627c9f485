import { setMaxListeners } from "node:events";
import { silentLogger } from "../../src/base/log.ts";
import { noMetrics } from "../../src/base/metrics.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createHandler } from "../../src/apiserver/handler.ts";
import { createMemoryStore } from "../../src/apiserver/store/memory.ts";
import { createAttacherCaches } from "../../src/attacher/caches.ts";
import { createAttacher } from "../../src/attacher/controller.ts";
import { DriverError, type CallOptions, type ControllerDriver } from "../../src/attacher/driver.ts";
import { DEFAULT_ATTACHER_OPTIONS } from "../../src/attacher/options.ts";
import { csiNodes } from "../../src/kube/api/csi-node.ts";
import { persistentVolumes } from "../../src/kube/api/persistent-volume.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import type { Client } from "../../src/kube/client/client.ts";
import { createInformer } from "../../src/kube/informer/informer.ts";
import { createMemoryTransport } from "../../src/kube/transport/memory-transport.ts";
import { percentilesOf } from "../attach-detach/percentiles.ts";

/**
 * The attacher at its defaults, the embedded API server in memory and an instant driver, all in one process: what is left is
 * the attacher itself. First how many volumes it attaches a second, then how long attaches take beside detaches that
 * hang, against how long they take alone.
 */
export async function attacher({ tiny }: { tiny: boolean }): Promise<boolean> {
  const { attaches, few, hung } = tiny ? TINY : FULL;
  const throughput = await measure({ attaches, hung: 0 });
  const alone = await measure({ attaches: few, hung: 0 });
  const beside = await measure({ attaches: few, hung });
  const ratio = beside.p99Ms / alone.p99Ms;
  const perSecond = Math.round((attaches / throughput.tookMs) * 1_000);
  const ok = tiny || (ratio <= RATIO_MAX && perSecond >= PER_SECOND_MIN);
  process.stdout.write(
    `attached a second, of ${attaches}:          ${perSecond}  (upstream's default rate allows about 2.5)\n` +
      `${few} attaches alone:                p99 ${alone.p99Ms.toFixed(1)} ms\n` +
      `${few} beside ${hung} hung detaches:  p99 ${beside.p99Ms.toFixed(1)} ms  (${ratio.toFixed(2)} times)\n`,
  );
  process.stdout.write(
    `${JSON.stringify({ bench: "attacher", tiny, ok, ratio, perSecond, alone, beside })}\n`,
  );
  return ok;
}

const FULL = { attaches: 2_000, few: 100, hung: 1_000 };
const TINY = { attaches: 50, few: 20, hung: 40 };
const RATIO_MAX = 2;
/** Forty times upstream's default. */
const PER_SECOND_MIN = 100;

const DRIVER = "bench.test";
const FINALIZER = "external-attacher/bench-test";
const NODES = 20;
const CAPABILITIES = {
  publishes: true,
  publishReadonly: false,
  singleNodeMultiWriter: false,
  listsPublishedNodes: false,
};

interface Measured {
  readonly tookMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function measure({ attaches, hung }: { attaches: number; hung: number }): Promise<Measured> {
  const clock = createSystemClock();
  const random = createSeededRandom(1);
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const store = createMemoryStore({ clock });
  const handler = createHandler({ store, clock, random, log: silentLogger, metrics: noMetrics });
  const clientFor = (name: string) =>
    createClient({ transport: createMemoryTransport(handler), clock, random: random.fork(name) });
  const load = clientFor("load");
  await givenCluster(load, { attaches, hung });

  const client = clientFor("attacher");
  const caches = createAttacherCaches({ client, clock, random });
  const facts = { name: DRIVER, capabilities: CAPABILITIES };
  const work = createAttacher(
    {
      client,
      caches,
      driver: instantDriver(),
      facts,
      clock,
      log: silentLogger,
      metrics: noMetrics,
      mayAct: () => true,
    },
    DEFAULT_ATTACHER_OPTIONS,
  );
  const running = [caches.run(stop.signal), work.run(stop.signal)];
  await caches.whenSynced(stop.signal);
  // Let the detaches take what they can get before the first attach comes.
  await clock.sleep(200);
  const measured = await attachAll(load, attaches, stop.signal);
  stop.abort(new Error("the measurement is over"));
  await Promise.allSettled(running);
  return measured;
}

async function givenCluster(
  client: Client,
  { attaches, hung }: { attaches: number; hung: number },
): Promise<void> {
  for (let node = 0; node < NODES; node++) {
    const drivers = [{ name: DRIVER, nodeID: `id-${node}` }];
    await client.create(csiNodes, { metadata: { name: `n${node}` }, spec: { drivers } });
  }
  for (let n = 0; n < attaches; n++) await createVolume(client, `attach-${n}`);
  for (let n = 0; n < hung; n++) {
    await createVolume(client, `hung-${n}`);
    await createAttachment(client, `hung-${n}`, n, [FINALIZER]);
    await client.delete(volumeAttachments, { name: `hung-${n}` });
  }
}

async function createVolume(client: Client, name: string): Promise<void> {
  await client.create(persistentVolumes, {
    metadata: { name, finalizers: [FINALIZER] },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      csi: { driver: DRIVER, volumeHandle: name },
    },
  });
}

async function createAttachment(
  client: Client,
  name: string,
  n: number,
  finalizers: string[] = [],
): Promise<void> {
  await client.create(volumeAttachments, {
    metadata: { name, finalizers },
    spec: { attacher: DRIVER, nodeName: `n${n % NODES}`, source: { persistentVolumeName: name } },
  });
}

/** All at once, as after a rollout; each is timed from its creation to `attached: true` in a watch. */
async function attachAll(client: Client, count: number, signal: AbortSignal): Promise<Measured> {
  const clock = createSystemClock();
  const startedMs = new Map<string, number>();
  const took: number[] = [];
  const informer = createInformer(
    { client, clock, random: createSeededRandom(2) },
    { resource: volumeAttachments },
  );
  const begunMs = clock.now();
  await new Promise<void>((resolve, reject) => {
    informer.addHandler(({ key, object }) => {
      const sinceMs = startedMs.get(key);
      if (sinceMs === undefined || !object.status?.attached) return;
      startedMs.delete(key);
      took.push(clock.now() - sinceMs);
      if (took.length === count) resolve();
    });
    void informer.run(signal);
    const create = async (n: number) => {
      startedMs.set(`attach-${n}`, clock.now());
      await createAttachment(client, `attach-${n}`, n);
    };
    Promise.all(Array.from({ length: count }, (_, n) => create(n))).catch(reject);
  });
  const { p50Ms, p99Ms } = percentilesOf(took);
  return { tookMs: clock.now() - begunMs, p50Ms, p99Ms };
}

/** Publishes at once, and never answers an unpublish before its deadline. */
function instantDriver(): ControllerDriver {
  const clock = createSystemClock();
  return {
    probe: () => Promise.resolve(true),
    pluginName: () => Promise.resolve(DRIVER),
    capabilities: () => Promise.resolve(CAPABILITIES),
    publish: () => Promise.resolve({}),
    async unpublish(_request, { timeoutMs, signal }: CallOptions) {
      await clock.sleep(timeoutMs, signal);
      throw new DriverError(4, "context deadline exceeded");
    },
    listVolumes: () => Promise.resolve({ entries: [], nextToken: "" }),
  };
}

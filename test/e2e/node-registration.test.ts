import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { Node } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { serve } from "../../src/csi/methods.ts";
import { serveRegistration, type RegistrationOutcome } from "../../src/csi/registration.ts";
import { createCsiServer } from "../../src/csi/server.ts";
import { csiNodes } from "../../src/kube/api/csi-node.ts";
import { nodes } from "../../src/kube/api/node.ts";
import { createInformer } from "../../src/kube/informer/informer.ts";
import { createCsiDrivers } from "../../src/node/plugins/csi-drivers.ts";
import { createCsiNodeWriter } from "../../src/node/registration/csi-node-writer.ts";
import { createLinuxSockets } from "../../src/node/registration/linux-sockets.ts";
import { createOwnObjects } from "../../src/node/registration/own-objects.ts";
import { createRegistrar } from "../../src/node/registration/registrar.ts";
import type { Sockets } from "../../src/node/registration/sockets.ts";
import { startCore } from "../../src/sim/harness.ts";

const clock = createSystemClock();
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function openFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "moor-reg-"));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Values of something that changes, and waiting for one of them. */
function createTrail<T>() {
  const seen: T[] = [];
  const waiting = new Set<() => void>();
  return {
    seen,
    push: (value: T) => {
      seen.push(value);
      for (const look of [...waiting]) look();
    },
    until: (matches: (value: T) => boolean) =>
      new Promise<T>((resolve) => {
        const look = () => {
          const found = seen.find(matches);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}

async function listen(socketPath: string, served = serve(Node, {})) {
  const server = createCsiServer({ clock, log: silentLogger }, { socketPath, served });
  await server.start();
  cleanUps.push(() => server.stop({ graceMs: 0 }));
  return server;
}

describe("registration sockets on a real filesystem", () => {
  test("scenario 104: sockets are found when they are there, come, move in, go and are made anew; nothing else is", async () => {
    const folder = join(await openFolder(), "registry");
    await mkdir(folder);
    await listen(join(folder, "old.sock"));
    await listen(join(folder, ".hidden.sock"));
    await writeFile(join(folder, "file.sock"), "");
    const trail = createTrail<Sockets>();
    const stop = new AbortController();
    const running = createLinuxSockets({ clock, log: silentLogger }, { folder }).run(trail.push, stop.signal);
    cleanUps.push(async () => {
      stop.abort();
      await running;
    });
    const names = (sockets: Sockets) =>
      [...sockets.keys()].map((path) => path.slice(folder.length + 1)).join(" ");

    await trail.until((sockets) => names(sockets) === "old.sock");
    await mkdir(join(folder, "deep"));
    const server = await listen(join(folder, "deep", "new.sock"));
    const first = await trail.until((sockets) => names(sockets) === "deep/new.sock old.sock");
    await rename(join(folder, "old.sock"), join(folder, "renamed.sock"));
    await trail.until((sockets) => names(sockets) === "deep/new.sock renamed.sock");
    await server.stop({ graceMs: 0 });
    await trail.until((sockets) => names(sockets) === "renamed.sock");
    await listen(join(folder, "deep", "new.sock"));
    const path = join(folder, "deep", "new.sock");
    const again = await trail.until(
      (sockets) => sockets.get(path) !== undefined && sockets.get(path) !== first.get(path),
    );

    expect(again.get(path)).not.toBe(first.get(path));
    await rm(folder, { recursive: true });
    await trail.until((sockets) => sockets.size === 0);
  });
});

describe("a driver on real sockets", () => {
  test("registers, restarts and registers anew, over inotify and gRPC; CSINode is written once", async () => {
    const folder = await openFolder();
    const registry = join(folder, "plugins_registry");
    const endpoint = join(folder, "csi.sock");
    const { client } = await startCore();
    await client.create(nodes, { metadata: { name: "n1" } });
    const connect = (socketPath: string) => createGrpcChannel({ clock }, { socketPath });
    const drivers = createCsiDrivers({ clock, connect });
    const deps = { client, clock, random: createSeededRandom(1), log: silentLogger, nodeName: "n1" };
    const node = createInformer(deps, { resource: nodes, fieldSelector: "metadata.name=n1" });
    const seen = createOwnObjects({ ...deps, node }, { nodeName: "n1" });
    const registrar = createRegistrar({
      clock,
      random: deps.random,
      seen,
      log: silentLogger,
      sockets: createLinuxSockets({ clock, log: silentLogger }, { folder: registry }),
      connect,
      drivers,
      csiNode: createCsiNodeWriter(deps),
      allocatablePeriodMsOf: () => undefined,
      driverInUse: () => false,
    });
    const stop = new AbortController();
    const running = Promise.all([registrar, node, seen].map((part) => part.run(stop.signal)));
    cleanUps.push(async () => {
      stop.abort();
      await running;
      drivers.close();
    });
    await listen(
      endpoint,
      serve(Node, { nodeGetInfo: async () => ({ nodeId: "id-1", maxVolumesPerNode: 7n }) }),
    );
    const outcomes = createTrail<RegistrationOutcome & { readonly at: number }>();
    await mkdir(registry, { recursive: true });
    const announce = (at: number) =>
      listen(
        join(registry, "d-reg.sock"),
        serveRegistration({ driverName: "d", endpoint }, (outcome) => outcomes.push({ ...outcome, at })),
      );

    const first = await announce(1);
    await outcomes.until(({ at, kind }) => at === 1 && kind === "registered");
    const written = await client.get(csiNodes, { name: "n1" });
    await first.stop({ graceMs: 0 });
    await announce(2);
    await outcomes.until(({ at, kind }) => at === 2 && kind === "registered");

    expect(written.spec.drivers).toMatchObject([{ name: "d", nodeID: "id-1", allocatable: { count: 7 } }]);
    expect((await client.get(csiNodes, { name: "n1" })).metadata.resourceVersion).toBe(
      written.metadata.resourceVersion,
    );
    expect(outcomes.seen.map(({ kind }) => kind)).toEqual(["registered", "registered"]);
    expect(drivers.get("d")?.endpoint).toBe(endpoint);
  });
});

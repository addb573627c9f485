import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { Controller, Identity, Node } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { createClient } from "../../src/csi/methods.ts";
import { askPlugin, tellPlugin } from "../../src/csi/registration.ts";
import { mountCapability } from "../../src/driver/stage.testing.ts";
import { openRealWorld, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";
import { mooring, Running } from "../e2e/mooring.ts";

const reason = await whyNoDevices();
const MINUTE = { timeoutMs: 60_000 };

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function given(): Promise<RealWorld> {
  const world = await openRealWorld();
  cleanups.push(() => world.close());
  return world;
}

const flags = (world: RealWorld, name: string, ...more: string[]) => [
  "driver",
  "--endpoint",
  `unix://${world.path(`${name}.sock`)}`,
  "--nodeid",
  name,
  "--statedir",
  world.state,
  "--http-endpoint",
  "",
  ...more,
];

async function start(world: RealWorld, name: string, ...more: string[]) {
  const running = new Running(...flags(world, name, ...more));
  cleanups.push(async () => {
    running.kill("SIGKILL");
    await running.exit();
  });
  await running.says(/"started"/);
  const channel = createGrpcChannel(
    { clock: createSystemClock() },
    { socketPath: world.path(`${name}.sock`) },
  );
  cleanups.push(() => channel.close());
  return {
    running,
    identity: createClient(Identity, channel),
    controller: createClient(Controller, channel),
    node: createClient(Node, channel),
  };
}

describe.skipIf(reason !== undefined)("mooring driver", () => {
  test("45: killed with a volume published, a new process finds it, and the data in it; a second one beside it refuses", async () => {
    const world = await given();
    const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
    const volumeCapability = mountCapability();
    const first = await start(world, "node-1");
    const { volume } = await first.controller.createVolume(
      { name: "a", volumeCapabilities: [volumeCapability], capacityRange: { requiredBytes: 32n << 20n } },
      MINUTE,
    );
    const volumeId = volume?.volumeId ?? "";
    await first.controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability }, MINUTE);
    await first.node.nodeStageVolume(
      { volumeId, stagingTargetPath: paths.stagingTargetPath, volumeCapability },
      MINUTE,
    );
    await first.node.nodePublishVolume({ volumeId, ...paths, volumeCapability }, MINUTE);
    await writeFile(join(paths.targetPath, "diary"), "precious", { flush: true });
    const beside = mooring(...flags(world, "node-1b"));
    expect(beside).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is used by process \d+; .* with --statedir/),
    });

    first.running.kill("SIGKILL");
    await first.running.exit();
    const second = await start(world, "node-1");

    expect((await second.identity.probe({}, MINUTE)).ready).toBe(true);
    expect(await readFile(join(paths.targetPath, "diary"), "utf8")).toBe("precious");
    await second.node.nodeUnpublishVolume({ volumeId, targetPath: paths.targetPath }, MINUTE);
    await second.node.nodeUnstageVolume({ volumeId, stagingTargetPath: paths.stagingTargetPath }, MINUTE);
    await second.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" }, MINUTE);
    await second.controller.deleteVolume({ volumeId }, MINUTE);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
    second.running.kill("SIGTERM");
    expect(await second.running.exit()).toMatchObject({ code: 0 });
  });

  test("two nodes share one pool: a file written on one is read on the other", async () => {
    const world = await given();
    const one = await start(world, "node-1", "--nodes", "node-2");
    const two = await start(world, "node-2", "--serve", "node");
    await mkdir(world.path("stage-2"));
    const volumeCapability = mountCapability();
    const { volume } = await one.controller.createVolume(
      { name: "a", volumeCapabilities: [volumeCapability] },
      MINUTE,
    );
    const volumeId = volume?.volumeId ?? "";

    for (const [nodeId, { node }, stage] of [
      ["node-1", one, "stage"],
      ["node-2", two, "stage-2"],
    ] as const) {
      const paths = { stagingTargetPath: world.path(stage), targetPath: world.path("pods", nodeId) };
      await one.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability }, MINUTE);
      await node.nodeStageVolume(
        { volumeId, stagingTargetPath: paths.stagingTargetPath, volumeCapability },
        MINUTE,
      );
      await node.nodePublishVolume({ volumeId, ...paths, volumeCapability }, MINUTE);
      if (nodeId === "node-1") await writeFile(join(paths.targetPath, "diary"), "precious", { flush: true });
      else expect(await readFile(join(paths.targetPath, "diary"), "utf8")).toBe("precious");
      await node.nodeUnpublishVolume({ volumeId, targetPath: paths.targetPath }, MINUTE);
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath: paths.stagingTargetPath }, MINUTE);
      await one.controller.controllerUnpublishVolume({ volumeId, nodeId }, MINUTE);
    }

    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });
});

describe.skipIf(reason !== undefined)("mooring driver beside a kubelet", () => {
  test("registers itself, tells of its health and its disk; refused, it ends and its sockets are gone", async () => {
    const world = await given();
    const socketPath = world.path("loop.csi.mooring.dev-reg.sock");
    const registry = [
      "--kubelet-registration-path",
      "/seen/csi.sock",
      "--plugin-registration-path",
      world.root,
    ];
    const { running, controller } = await start(
      world,
      "node-1",
      ...registry,
      "--http-endpoint",
      "127.0.0.1:0",
    );
    await controller.createVolume({ name: "a", volumeCapabilities: [mountCapability()] }, MINUTE);
    const url = (await running.says(/"url":"(http[^"]+)"/))[1] ?? "";

    expect(await (await fetch(`${url}/readyz`)).text()).toBe("ok");
    expect(await (await fetch(`${url}/metrics`)).text()).toContain(
      'mooring_driver_bytes{kind="promised"} 1073741824',
    );
    const channel = createGrpcChannel({ clock: createSystemClock() }, { socketPath });
    cleanups.push(() => channel.close());
    expect(await askPlugin(channel, { ...MINUTE, socketPath })).toEqual({
      driverName: "loop.csi.mooring.dev",
      endpoint: "/seen/csi.sock",
      version: "1.0.0",
    });
    await tellPlugin(channel, { kind: "refused", error: "another one is registered" }, MINUTE);

    expect(await running.exit()).toMatchObject({ code: 1 });
    expect(await readdir(world.root)).not.toContain("node-1.sock");
    expect(await readdir(world.root)).not.toContain("loop.csi.mooring.dev-reg.sock");
  });
});

test("a command line that makes no sense is refused before anything starts", () => {
  for (const [bad, said] of [
    [["--endpoint", "tcp://x"], "not an absolute path"],
    [["--endpoint", "/x.sock", "--drivername", "1st"], "Letters at both ends"],
    [["--endpoint", "/x.sock", "--capacity", "fast"], "KIND=QUANTITY"],
    [["--endpoint", "/x.sock", "--faults", "A=explode"], "is not RPC="],
  ] as const) {
    expect(mooring("driver", "--nodeid", "n", "--statedir", "/nowhere", ...bad)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(said),
    });
  }
});

import { describe, expect, test } from "vitest";
import { csiNodes } from "../../kube/api/csi-node.ts";
import type { Client } from "../../kube/client/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { NODE_ID_ANNOTATION } from "./csi-node.ts";
import { givenRegistrar, plugin } from "./stage.testing.ts";

const SOCKET = "/registry/d-reg.sock";

describe("registration", () => {
  test("scenario 104: a driver that is there becomes usable, told and visible in CSINode and Node", async () => {
    const world = await givenRegistrar();
    const driver = plugin({ topology: { zone: "z1" }, maxVolumes: 10n });

    await world.appears(SOCKET, driver);

    expect(driver.told).toEqual(["registered"]);
    expect(world.drivers.get("d")).toMatchObject({ endpoint: "/csi/d.sock", version: "1.0.0" });
    expect(await world.entries()).toEqual([{ name: "d", nodeID: "id-1", topologyKeys: ["zone"], count: 10 }]);
    const { metadata } = await world.node();
    expect(metadata.annotations?.[NODE_ID_ANNOTATION]).toBe('{"d":"id-1"}');
    expect(metadata.labels?.["zone"]).toBe("z1");
    expect((await world.csiNodeObject()).metadata.ownerReferences).toEqual([
      { apiVersion: "v1", kind: "Node", name: "n1", uid: metadata.uid },
    ]);
    await world.stop();
  });

  for (const [versions, accepted] of [
    [["0.2.0", "v1.2.3", "2.0.1", "boo"], "v1.2.3"],
    [["0.3.0"], undefined],
    [[], undefined],
    [["2.0.1"], undefined],
    [["foo"], undefined],
  ] as const) {
    test(`scenario 105: versions [${versions.join(", ")}] give ${accepted ?? "a refusal"}`, async () => {
      const world = await givenRegistrar();
      const driver = plugin({ versions: [...versions] });

      await world.appears(SOCKET, driver);

      expect(world.drivers.get("d")?.version).toBe(accepted);
      const told =
        accepted === undefined
          ? /^RegisterPlugin error -- plugin validation failed with err: /
          : /^registered$/;
      expect(driver.told[0]).toMatch(told);
      await world.stop();
    });
  }

  test("scenario 106: a second socket needs a higher version, and then takes over", async () => {
    const world = await givenRegistrar();
    await world.appears(SOCKET, plugin({ versions: ["1.1.0"] }));
    const [same, higher] = [
      plugin({ versions: ["1.1.0"], endpoint: "/csi/same" }),
      plugin({ versions: ["1.2.0"], endpoint: "/csi/new" }),
    ];

    await world.appears("/registry/same.sock", same);
    expect(same.told[0]).toContain("is registered already by /registry/d-reg.sock");
    expect(world.drivers.get("d")?.endpoint).toBe("/csi/d.sock");
    await world.appears("/registry/new.sock", higher);

    expect(world.drivers.get("d")?.endpoint).toBe("/csi/new");
    await world.stop();
  });

  test("FIX 24: removing a socket that no longer serves the driver changes nothing; removing the one that does brings the other back", async () => {
    const world = await givenRegistrar();
    await world.appears(SOCKET, plugin());
    await world.appears("/registry/new.sock", plugin({ versions: ["1.2.0"], endpoint: "/csi/new" }));

    await world.vanishes("/registry/new.sock");
    expect(world.drivers.get("d")?.endpoint).toBe("/csi/d.sock");
    await world.appears("/registry/new.sock", plugin({ versions: ["1.2.0"], endpoint: "/csi/new" }));
    await world.vanishes(SOCKET);
    await world.scheduler.runFor(120_000);

    expect(world.drivers.get("d")?.endpoint).toBe("/csi/new");
    expect(await world.entries()).toHaveLength(1);
    await world.stop();
  });

  test("scenario 107: an unknown type is refused and tried again, later each time", async () => {
    const world = await givenRegistrar();
    const other = plugin({ type: "Mystery" });

    await world.appears(SOCKET, other);
    expect(other.told).toEqual([
      `RegisterPlugin error -- no handler registered for plugin type: Mystery at socket ${SOCKET}`,
    ]);
    await world.scheduler.runFor(500);
    expect(other.told).toHaveLength(2);
    await world.scheduler.runFor(600);
    expect(other.told).toHaveLength(2);

    await world.scheduler.runFor(600_000);
    expect(other.told.length).toBeLessThan(15);
    await world.stop();
  });

  test("plugins of other components are left alone: a refusal would make them exit", async () => {
    const world = await givenRegistrar();
    const device = plugin({ type: "DRAPlugin" });

    await world.appears(SOCKET, device);
    await world.scheduler.runFor(600_000);

    expect(device.told).toEqual([]);
    await world.stop();
  });

  for (const [claim, fault] of [
    ["scenario 108: NodeGetInfo fails", { infoFails: true }],
    ["scenario 109: the node id is empty", { nodeId: "" }],
  ] as const) {
    test(`${claim}: not usable, not in CSINode, told so; tried again until it works`, async () => {
      const world = await givenRegistrar();
      const driver = plugin(fault);

      await world.appears(SOCKET, driver);
      expect(driver.told[0]).toMatch(/^RegisterPlugin error -- plugin registration failed with err: /);
      expect(world.drivers.get("d")).toBeUndefined();
      expect(await world.entries()).toEqual([]);
      Object.assign(driver, { infoFails: false, nodeId: "id-1" });
      await world.scheduler.runFor(5_000);

      expect(driver.told.at(-1)).toBe("registered");
      expect(await world.entries()).toHaveLength(1);
      await world.stop();
    });
  }

  test("a driver that cannot be told is not kept", async () => {
    const world = await givenRegistrar({ graceMs: 1_000 });
    const driver = plugin({ notifyFails: true });

    await world.appears(SOCKET, driver);

    expect(world.drivers.get("d")).toBeUndefined();
    await world.vanishes(SOCKET);
    await world.scheduler.runFor(5_000);
    expect(await world.entries()).toEqual([]);
    await world.stop();
  });

  test("topology that contradicts a label of the node is refused, and nothing is written", async () => {
    const world = await givenRegistrar();
    await world.appears(SOCKET, plugin({ topology: { zone: "z1" } }));
    const other = plugin({ name: "e", endpoint: "/csi/e", topology: { zone: "z2" } });

    await world.appears("/registry/e.sock", other);

    expect(other.told[0]).toContain(
      'detected topology value collision: driver reported "zone":"z2" but existing label is "zone":"z1"',
    );
    expect((await world.node()).metadata.annotations?.[NODE_ID_ANNOTATION]).toBe('{"d":"id-1"}');
    await world.stop();
  });
});

describe("a driver that leaves", () => {
  test("scenario 111: after its grace it is out of CSINode and the annotation; labels stay", async () => {
    const world = await givenRegistrar();
    await world.appears(SOCKET, plugin({ topology: { zone: "z1" } }));

    await world.vanishes(SOCKET);
    await world.scheduler.runFor(59_000);
    expect(await world.entries()).toHaveLength(1);
    await world.scheduler.runFor(2_000);

    expect(world.drivers.get("d")).toBeUndefined();
    expect(await world.entries()).toEqual([]);
    const { metadata } = await world.node();
    expect(metadata.annotations?.[NODE_ID_ANNOTATION]).toBeUndefined();
    expect(metadata.labels?.["zone"]).toBe("z1");
    await world.stop();
  });

  test("scenario 112: a restart within seconds writes nothing, and the driver stays usable (FIX 24)", async () => {
    const world = await givenRegistrar();
    await world.appears(SOCKET, plugin());
    const before = [
      (await world.csiNodeObject()).metadata.resourceVersion,
      (await world.node()).metadata.resourceVersion,
    ];

    await world.vanishes(SOCKET);
    await world.scheduler.runFor(5_000);
    expect(world.drivers.get("d")).toBeDefined();
    const again = plugin();
    await world.appears(SOCKET, again);
    await world.scheduler.runFor(300_000);

    expect(again.told).toEqual(["registered"]);
    expect([
      (await world.csiNodeObject()).metadata.resourceVersion,
      (await world.node()).metadata.resourceVersion,
    ]).toEqual(before);
    await world.stop();
  });

  test("a socket made anew registers anew, and only what differs is written", async () => {
    const world = await givenRegistrar();
    const changes: string[] = [];
    world.drivers.onChange((name) => changes.push(name));
    await world.appears(SOCKET, plugin({ maxVolumes: 10n }));

    await world.appears(SOCKET, plugin({ maxVolumes: 20n, nodeId: "id-2" }));

    expect(changes).toEqual(["d", "d"]);
    expect(await world.entries()).toEqual([{ name: "d", nodeID: "id-2", count: 20 }]);
    await world.stop();
  });

  test("FIX 24: an entry nobody came back for is pruned after 10 minutes, unless a volume is in use", async () => {
    for (const [inUse, left] of [
      [[], []],
      [["old"], ["old"]],
    ] as const) {
      const world = await givenRegistrar({ inUse });
      await world.scheduler.runFor(100);
      await world.csiNode.install(
        { name: "old", nodeId: "x", maxVolumes: 0n, topology: {} },
        new AbortController().signal,
      );

      await world.scheduler.runFor(590_000);
      expect((await world.entries()).map(({ name }) => name)).toEqual(["old"]);
      await world.scheduler.runFor(20_000);

      expect((await world.entries()).map(({ name }) => name)).toEqual(left);
      await world.stop();
    }
  });

  test("an API server that is down when the grace ends hears of it later", async () => {
    let down = false;
    const behaves = (client: Client): Client => ({
      ...client,
      update: (...args) =>
        down ? Promise.reject(new KubeError("Unreachable", "down")) : client.update(...args),
    });
    const world = await givenRegistrar({ behaves });
    await world.appears(SOCKET, plugin());
    down = true;

    await world.vanishes(SOCKET);
    await world.scheduler.runFor(62_000);
    expect(await world.entries()).toHaveLength(1);
    down = false;
    await world.scheduler.runFor(30_000);

    expect(await world.entries()).toEqual([]);
    await world.stop();
  });
});

describe("the CSINode object", () => {
  test("scenario 110: one of an earlier node of this name is deleted and made again", async () => {
    const world = await givenRegistrar();
    await world.scheduler.runFor(300);
    const stale = await world.csiNodeObject();
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "older" }];
    await world.client.update(csiNodes, { ...stale, metadata: { ...stale.metadata, ownerReferences } });

    await world.appears(SOCKET, plugin());

    const { metadata } = await world.csiNodeObject();
    expect(metadata.uid).not.toBe(stale.metadata.uid);
    expect(metadata.ownerReferences?.[0]?.uid).toBe((await world.node()).metadata.uid);
    expect(metadata.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"]).toContain(
      "kubernetes.io/aws-ebs,",
    );
    await world.stop();
  });

  test("FIX 33: an API server that refuses for minutes ends nothing; it is tried until it works", async () => {
    let down = true;
    const behaves = (client: Client): Client => ({
      ...client,
      create: (...args) => (down ? Promise.reject(new KubeError("Forbidden", "no")) : client.create(...args)),
    });
    const world = await givenRegistrar({ behaves });

    await world.scheduler.runFor(600_000);
    expect(world.csiNode.isInitialised).toBe(false);
    down = false;
    await world.scheduler.runFor(60_000);

    expect(world.csiNode.isInitialised).toBe(true);
    await world.stop();
  });

  for (const [maxVolumes, count] of [
    [2n ** 31n, 2_147_483_647],
    [2n ** 31n - 1n, 2_147_483_647],
    [1n, 1],
    [0n, undefined],
    [-1n, undefined],
  ] as const) {
    test(`scenario 109: ${maxVolumes} volumes a node are a count of ${count ?? "nothing"}`, async () => {
      const world = await givenRegistrar();

      await world.appears(SOCKET, plugin({ maxVolumes }));

      expect(await world.entries()).toEqual([
        { name: "d", nodeID: "id-1", ...(count === undefined ? {} : { count }) },
      ]);
      await world.stop();
    });
  }

  test("scenario 113: the limit is asked for every 60 s, while driver and period are there", async () => {
    const world = await givenRegistrar();
    const driver = plugin({ maxVolumes: 10n });
    world.periods.set("d", 60_000);
    await world.appears(SOCKET, driver);
    driver.maxVolumes = 20n;

    await world.scheduler.runFor(61_000);
    expect(driver.infos).toBe(2);
    expect(await world.entries()).toMatchObject([{ count: 20 }]);
    driver.infoFails = true;
    await world.scheduler.runFor(120_000);
    expect(driver.infos).toBe(4);

    world.periods.delete("d");
    world.registrar.driverObjectChanged("d");
    await world.scheduler.runFor(600_000);
    expect(driver.infos).toBe(4);
    world.periods.set("d", 60_000);
    world.registrar.driverObjectChanged("d");
    await world.scheduler.runFor(61_000);
    expect(driver.infos).toBe(5);
    await world.vanishes(SOCKET);
    await world.scheduler.runFor(600_000);

    expect(driver.infos).toBeLessThanOrEqual(6);
    await world.stop();
  });

  test("scenario 15: asked at once on demand", async () => {
    const world = await givenRegistrar();
    const driver = plugin({ maxVolumes: 10n });
    await world.appears(SOCKET, driver);
    driver.maxVolumes = 5n;

    await world.registrar.refreshAllocatable("d", new AbortController().signal);

    expect(await world.entries()).toMatchObject([{ count: 5 }]);
    await expect(world.registrar.refreshAllocatable("x", new AbortController().signal)).rejects.toThrow(
      "not registered",
    );
    await world.stop();
  });
});

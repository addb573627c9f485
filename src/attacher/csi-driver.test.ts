import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { CsiError } from "../csi/errors.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  PluginCapability_Service_Type as Service,
} from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { serve, type Handlers } from "../csi/methods.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createCsiDriver } from "./csi-driver.ts";
import { SecretValues } from "./secrets.ts";

const OPTIONS = { timeoutMs: 1_000 };

function driverOf(identity: Handlers<typeof Identity>, controller: Handlers<typeof Controller> = {}) {
  const clock = new SimScheduler(createSeededRandom(1)).createClock();
  const served = [...serve(Identity, identity), ...serve(Controller, controller)];
  return createCsiDriver({ channel: createMemoryChannel({ clock, log: silentLogger }, served), clock });
}

for (const [answer, ready] of [
  [{}, true],
  [{ ready: true }, true],
  [{ ready: false }, false], // an object that is there and says no
] as const) {
  test(`a probe that answers ${JSON.stringify(answer)} means ready: ${ready}`, async () => {
    expect(await driverOf({ probe: async () => answer }).probe(OPTIONS)).toBe(ready);
  });
}

const rpc = (type: Rpc) => ({ type: { case: "rpc" as const, value: { type } } });

test("capabilities decide, and a plugin without a controller is not asked for those of one", async () => {
  const service = { type: { case: "service" as const, value: { type: Service.CONTROLLER_SERVICE } } };
  const full = driverOf(
    { getPluginCapabilities: async () => ({ capabilities: [{}, service] }) },
    {
      controllerGetCapabilities: async () => ({
        capabilities: [{}, rpc(Rpc.PUBLISH_UNPUBLISH_VOLUME), rpc(Rpc.LIST_VOLUMES)],
      }),
    },
  );
  const bare = driverOf({ getPluginCapabilities: async () => ({ capabilities: [] }) });

  expect(await full.capabilities(OPTIONS)).toMatchObject({ publishes: true, listsPublishedNodes: false });
  expect(await bare.capabilities(OPTIONS)).toMatchObject({ publishes: false });
});

test("a publish says everything, and an error keeps its code in Go's words", async () => {
  const seen: unknown[] = [];
  const driver = driverOf(
    {},
    {
      controllerPublishVolume: async (request) => {
        seen.push(request);
        if (request.nodeId === "full") throw new CsiError("RESOURCE_EXHAUSTED", "no slot left");
        return { publishContext: { devicePath: "/dev/x" } };
      },
    },
  );
  const request = {
    volumeId: "v",
    nodeId: "n",
    readonly: true,
    capability: {
      accessMode: "SINGLE_NODE_MULTI_WRITER",
      access: { kind: "mount", fsType: "xfs", mountFlags: ["b", "a"] },
    },
    volumeContext: { foo: "bar" },
    secrets: new SecretValues({ key: "s3cr3t" }),
  } as const;

  expect(await driver.publish(request, OPTIONS)).toEqual({ devicePath: "/dev/x" });
  expect(seen[0]).toMatchObject({
    volumeId: "v",
    nodeId: "n",
    readonly: true,
    volumeContext: { foo: "bar" },
    secrets: { key: "s3cr3t" },
    volumeCapability: {
      accessMode: { mode: 7 },
      accessType: { case: "mount", value: { fsType: "xfs", mountFlags: ["b", "a"] } },
    },
  });
  await expect(driver.publish({ ...request, nodeId: "full" }, OPTIONS)).rejects.toMatchObject({
    grpcCode: 8,
    message: "rpc error: code = ResourceExhausted desc = no slot left",
  });
});

test("entries without a volume or a status are left out of the list", async () => {
  const driver = driverOf(
    {},
    {
      listVolumes: async () => ({
        entries: [
          { volume: { volumeId: "a" }, status: { publishedNodeIds: ["n1"] } },
          { volume: { volumeId: "b" } },
          { status: { publishedNodeIds: ["n1"] } },
        ],
        nextToken: "t",
      }),
    },
  );

  expect(await driver.listVolumes({ maxEntries: 0, startingToken: "" }, OPTIONS)).toEqual({
    entries: [{ volumeId: "a", publishedNodeIds: ["n1"] }],
    nextToken: "t",
  });
});

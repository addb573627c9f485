import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createCapabilities } from "./capabilities.ts";
import { CsiError } from "./errors.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  Node,
  NodeServiceCapability_RPC_Type as NodeRpc,
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as Expansion,
} from "./gen/csi_pb.ts";
import { createMemoryChannel } from "./memory-channel.ts";
import { serve } from "./methods.ts";

const deps = { clock: createSystemClock(), log: silentLogger };
const within = { timeoutMs: 1_000 };

const controllerWith = (...types: Rpc[]) => {
  const seen = { calls: 0 };
  const served = serve(Controller, {
    controllerGetCapabilities: async () => {
      seen.calls++;
      return { capabilities: types.map((type) => ({ type: { case: "rpc" as const, value: { type } } })) };
    },
  });
  return { seen, served };
};

/** What a newer driver may say. */
const unknown = JSON.parse("[99]") as Rpc[];

test("asked once, however many want to know at once", async () => {
  const { seen, served } = controllerWith(Rpc.LIST_VOLUMES, ...unknown);
  const capabilities = createCapabilities(createMemoryChannel(deps, served));

  const answers = await Promise.all([1, 2, 3].map(() => capabilities.controller(within)));
  await capabilities.controller(within);

  expect(answers[0]).toEqual(new Set([Rpc.LIST_VOLUMES, 99]));
  expect(seen.calls).toBe(1);
});

test("forgotten when the connection is lost: the next driver may be another one", async () => {
  const first = controllerWith(Rpc.LIST_VOLUMES);
  const second = controllerWith(Rpc.GET_CAPACITY);
  const channel = createMemoryChannel(deps, first.served);
  const capabilities = createCapabilities(channel);
  await capabilities.controller(within);

  channel.disconnect();
  channel.connect(second.served);

  expect(await capabilities.controller(within)).toEqual(new Set([Rpc.GET_CAPACITY]));
});

test("an answer of the old connection that comes late is not kept", async () => {
  let release = () => {};
  const old = serve(Controller, {
    controllerGetCapabilities: () => new Promise((resolve) => (release = () => resolve({}))),
  });
  const next = controllerWith(Rpc.GET_CAPACITY);
  const channel = createMemoryChannel(deps, old);
  const capabilities = createCapabilities(channel);
  const asked = capabilities.controller(within).catch((error: unknown) => error);

  channel.disconnect();
  channel.connect(next.served);
  const known = await capabilities.controller(within);
  release();

  expect(await asked).toMatchObject({ code: "UNAVAILABLE" });
  expect(known).toEqual(new Set([Rpc.GET_CAPACITY]));
  expect(await capabilities.controller(within)).toBe(known);
});

test("a failure is not remembered", async () => {
  let calls = 0;
  const served = serve(Node, {
    nodeGetCapabilities: async () => {
      if (++calls === 1) throw new CsiError("UNAVAILABLE", "starting");
      return {
        capabilities: [{ type: { case: "rpc", value: { type: NodeRpc.STAGE_UNSTAGE_VOLUME } } }],
      };
    },
  });
  const capabilities = createCapabilities(createMemoryChannel(deps, served));

  await expect(capabilities.node(within)).rejects.toMatchObject({ code: "UNAVAILABLE" });

  expect(await capabilities.node(within)).toEqual(new Set([NodeRpc.STAGE_UNSTAGE_VOLUME]));
});

test("services and expansion are told apart, and a kind nobody knows is skipped", async () => {
  const served = serve(Identity, {
    getPluginCapabilities: async () => ({
      capabilities: [
        { type: { case: "service", value: { type: Service.CONTROLLER_SERVICE } } },
        { type: { case: "volumeExpansion", value: { type: Expansion.ONLINE } } },
        {},
      ],
    }),
  });
  const capabilities = createCapabilities(createMemoryChannel(deps, served));

  expect(await capabilities.plugin(within)).toEqual({
    services: new Set([Service.CONTROLLER_SERVICE]),
    expansion: new Set([Expansion.ONLINE]),
  });
});

test("a driver without groups says UNIMPLEMENTED, and that is what callers get", async () => {
  const capabilities = createCapabilities(createMemoryChannel(deps, []));

  await expect(capabilities.groupController(within)).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
  capabilities.close();
});

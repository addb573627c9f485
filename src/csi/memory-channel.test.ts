import { expect, test } from "vitest";
import { csiTransportContract } from "../../test/contract/csi-transport.ts";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { SnapshotMetadata } from "./gen/csi_pb.ts";
import { createMemoryChannel } from "./memory-channel.ts";
import { createClient, serve, type CallRecord } from "./methods.ts";

csiTransportContract("in memory", async (served) => {
  const channel = createMemoryChannel({ clock: createSystemClock(), log: silentLogger }, served);
  return {
    channel,
    disconnect: async () => channel.disconnect(),
    reconnect: async () => channel.connect(),
    close: async () => channel.close(),
  };
});

test("a stream that nobody reads to its end counts as cancelled, once", async () => {
  const calls: CallRecord[] = [];
  const served = serve(SnapshotMetadata, {
    getMetadataAllocated: async function* () {
      for (;;) yield {};
    },
  });
  const channel = createMemoryChannel(
    { clock: createSystemClock(), log: silentLogger, observe: (call) => calls.push(call) },
    served,
  );

  const within = { timeoutMs: 10_000 };
  for await (const _ of createClient(SnapshotMetadata, channel).getMetadataAllocated({}, within)) break;
  await new Promise((resolve) => setImmediate(resolve));

  expect(calls.map(({ code, unexpected }) => [code, unexpected])).toEqual([["CANCELLED", false]]);
});

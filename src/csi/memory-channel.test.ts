import { csiTransportContract } from "../../test/contract/csi-transport.ts";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createMemoryChannel } from "./memory-channel.ts";

csiTransportContract("in memory", async (served) => {
  const channel = createMemoryChannel({ clock: createSystemClock(), log: silentLogger }, served);
  return {
    channel,
    disconnect: async () => channel.disconnect(),
    reconnect: async () => channel.connect(),
    close: async () => channel.close(),
  };
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { csiTransportContract } from "../../test/contract/csi-transport.ts";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { createCsiServer } from "./server.ts";

csiTransportContract("gRPC on a unix socket", async (served) => {
  const deps = { clock: createSystemClock(), log: silentLogger };
  const folder = await mkdtemp(join(tmpdir(), "csi-"));
  const socketPath = join(folder, "csi.sock");
  let server = createCsiServer(deps, { socketPath, served });
  await server.start();
  const channel = createGrpcChannel(deps, { socketPath });
  return {
    channel,
    async disconnect() {
      await server.stop({ graceMs: 0 });
    },
    async reconnect() {
      server = createCsiServer(deps, { socketPath, served });
      await server.start();
    },
    async close() {
      channel.close();
      await server.stop({ graceMs: 0 });
      await rm(folder, { recursive: true });
    },
  };
});

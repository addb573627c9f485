import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { Identity } from "./gen/csi_pb.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { createClient, serve } from "./methods.ts";
import { createCsiServer, type CsiServer } from "./server.ts";

/** Kubelet opens a connection for every call: nothing of them may stay, on either side. */

const clock = createSystemClock();
let folder: string;
let socketPath: string;
let server: CsiServer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "csi-"));
  socketPath = join(folder, "csi.sock");
  const served = serve(Identity, { probe: async () => ({ ready: true }) });
  server = createCsiServer({ clock, log: silentLogger }, { socketPath, served });
  await server.start();
});
afterEach(async () => {
  await server.stop({ graceMs: 0 });
  await rm(folder, { recursive: true });
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Twice, a turn of the loop apart: the first only finds out which finalizers are due. */
async function heapBytes(): Promise<number> {
  for (let again = 0; again < 3; again++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

async function probes(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const channel = createGrpcChannel({ clock }, { socketPath });
    await createClient(Identity, channel).probe({}, { timeoutMs: 10_000 });
    channel.close();
  }
}

async function silent(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const socket = connect(socketPath);
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("connect", resolve));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.destroy();
    await closed;
  }
}

/** `npm run bench -- csi` makes 10,000. A session or a channel that is kept takes 5 KB and more: 2 MB after these. */
test("44: 500 short connections, some without a word, leave the heap where it was", async () => {
  await probes(100);
  await silent(50);
  const before = await heapBytes();

  await probes(400);
  await silent(100);

  expect(await heapBytes()).toBeLessThan(before + 1_000_000);
}, 30_000);

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { Controller, Identity } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { createClient } from "../../src/csi/methods.ts";

/** A driver in a process of its own: killed, replaced, stopped. */

const within = { timeoutMs: 30_000 };
const clock = createSystemClock();
const children: ChildProcess[] = [];
let folder: string;
let socketPath: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "csi-e2e-"));
  socketPath = join(folder, "csi.sock");
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

async function startDriver(): Promise<{ child: ChildProcess; lines: Interface; said: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "csi-driver.mjs"), socketPath], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines = createInterface(child.stdout);
  const [said] = (await once(lines, "line")) as [string];
  return { child, lines, said };
}

test("a driver killed in the middle of a call: the outcome is open, and the next driver is found by itself", async () => {
  const { child, lines } = await startDriver();
  const channel = createGrpcChannel({ clock }, { socketPath });
  const called = once(lines, "line");
  const call = createClient(Controller, channel)
    .controllerPublishVolume({ volumeId: "v" }, within)
    .catch((error: unknown) => error);
  await called;
  const lost = new Promise<void>((resolve) => channel.onLost(resolve));

  child.kill("SIGKILL");

  expect(await call).toMatchObject({ code: "UNAVAILABLE", class: "uncertain" });
  await lost;
  expect(existsSync(socketPath)).toBe(true);
  await startDriver();
  await channel.ready(within);
  expect((await createClient(Identity, channel).probe({}, within)).ready).toBe(true);
  channel.close();
});

test("the socket is its owner's alone whatever the mask, which is as it was; a stop removes it", async () => {
  const { child, said } = await startDriver();

  expect(said).toBe("listens umask=0");
  expect(lstatSync(socketPath).mode & 0o777).toBe(0o600);

  child.kill("SIGTERM");
  await once(child, "exit");

  expect(existsSync(socketPath)).toBe(false);
});

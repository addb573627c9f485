import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { Registration } from "./gen/pluginregistration_pb.ts";
import { serve, type ServedMethod } from "./methods.ts";
import { registrationHealth } from "./registration-health.ts";
import { serveRegistration } from "./registration.ts";
import { createCsiServer } from "./server.ts";

const clock = createSystemClock();
const driverName = "loop.example.com";
let folder: string;
let socketPath: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reg-"));
  socketPath = join(folder, "reg.sock");
});
afterEach(() => rmSync(folder, { recursive: true }));

const health = () => registrationHealth({ clock }, { socketPath, driverName });

async function healthWith(served: ServedMethod[]) {
  const server = createCsiServer({ clock, log: silentLogger }, { socketPath, served });
  await server.start();
  try {
    return await health();
  } finally {
    await server.stop({ graceMs: 0 });
  }
}

test("200 while the right driver answers", async () => {
  const served = serveRegistration({ driverName, endpoint: "/csi.sock" }, () => undefined);

  expect(await healthWith(served)).toEqual({ status: 200, message: "ok" });
});

test("404 when the socket is gone, or was never one", async () => {
  expect((await health()).status).toBe(404);
  writeFileSync(socketPath, "");
  expect((await health()).status).toBe(404);
});

test("500 when another driver, another kind of plugin, or nobody with an answer is there", async () => {
  const other = await healthWith(
    serveRegistration({ driverName: "other.example.com", endpoint: "/csi.sock" }, () => undefined),
  );
  const device = await healthWith(
    serve(Registration, { getInfo: async () => ({ type: "DevicePlugin", name: driverName }) }),
  );
  const mute = await healthWith([]);

  expect(other).toMatchObject({
    status: 500,
    message: expect.stringContaining("other.example.com") as string,
  });
  expect(device.status).toBe(500);
  expect(mute.status).toBe(500);
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger, silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { CsiError } from "./errors.ts";
import { Controller, Identity } from "./gen/csi_pb.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { createClient, serve } from "./methods.ts";
import { createCsiServer } from "./server.ts";

/** A driver that repeats, in every later error and answer, the first secret it was ever given. */
test("what a driver was once told is in no later error and in no line of the log, at any verbosity", async () => {
  const clock = createSystemClock();
  const folder = await mkdtemp(join(tmpdir(), "controller-b-csi-"));
  const socketPath = join(folder, "csi.sock");
  let told = "";
  const gossip = () =>
    [told, Buffer.from(told).toString("base64"), JSON.stringify({ login: told })].join(" ");
  const served = [
    ...serve(Identity, {
      getPluginInfo: () => Promise.resolve({ name: "gossip", manifest: { [gossip()]: gossip() } }),
    }),
    ...serve(Controller, {
      controllerPublishVolume: (request) => {
        told ||= request.secrets["password"] ?? "";
        return Promise.resolve({ publishContext: { session: `for ${told}` } });
      },
      controllerUnpublishVolume: () => Promise.reject(new CsiError("INTERNAL", `backend: ${gossip()}`)),
      listVolumes: () => Promise.reject(new CsiError("UNAVAILABLE", `cannot list: ${gossip()}`)),
    }),
  ];
  const server = createCsiServer({ clock, log: silentLogger }, { socketPath, served });
  await server.start();
  const lines: string[] = [];
  const log = createLogger((...line) => lines.push(JSON.stringify(line)));
  const channel = createGrpcChannel({ clock, log, logCalls: true }, { socketPath });
  try {
    const controller = createClient(Controller, channel);
    const options = { timeoutMs: 5_000 };
    const secrets = (password: string) => ({ volumeId: "v", nodeId: "n", secrets: { password } });
    await controller.controllerPublishVolume(secrets('old "pass"-word/1'), options);
    const errors = await Promise.all(
      [
        controller.controllerUnpublishVolume(secrets("rotated-password"), options),
        controller.listVolumes({}, options),
        createClient(Identity, channel).getPluginInfo({}, options),
      ].map((call) =>
        call.then(
          () => "",
          (error: unknown) => `${String(error)} ${String((error as Error).cause)}`,
        ),
      ),
    );

    const everything = [...errors, ...lines].join("\n");
    expect(lines.length).toBeGreaterThan(7);
    expect(everything).toContain("cannot list: ***stripped***");
    expect(everything).not.toContain(Buffer.from('old "pass"-word/1').toString("base64").slice(0, 20));
    expect(everything).not.toContain("rotated-password");
    expect(everything).not.toContain("-word/1");
  } finally {
    channel.close();
    await server.stop({ graceMs: 0 });
    await rm(folder, { recursive: true });
  }
});

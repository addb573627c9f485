import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  Identity,
  Node,
  NodeServiceCapability_RPC_Type as NodeRpc,
  PluginCapability_Service_Type as Service,
} from "../../src/csi/gen/csi_pb.ts";
import { serve } from "../../src/csi/methods.ts";
import { serveRegistration } from "../../src/csi/registration.ts";
import { createCsiServer } from "../../src/csi/server.ts";

export const DRIVER = "bench.test";
/** Volumes whose handle begins so are staged by calls that never end. */
export const HUNG = "hung";

export type Step = "publish" | "unpublish" | "detach";

/** A driver that answers at once, and tells of every call when it has been answered. */
export interface InstantDriver {
  /** Resolves with the clock's time at which the step of this volume was answered last; at once where it was. */
  done(step: Step, volumeId: string): Promise<number>;
  /** How often it was answered. */
  times(step: Step, volumeId: string): number;
  stop(): Promise<void>;
}

export interface DriverOptions {
  readonly socketPath: string;
  readonly registry: string;
  /** A tmpfs at every target, as a real driver leaves a mount there; a few ms of `mount` each. */
  readonly mounts: boolean;
}

export async function startDriver({ socketPath, registry, mounts }: DriverOptions): Promise<InstantDriver> {
  const clock = createSystemClock();
  const answered = new Map<string, number>();
  const counts = new Map<string, number>();
  const waiting = new Map<string, (atMs: number) => void>();
  const note = (step: Step, volumeId: string) => {
    const key = `${step} ${volumeId}`;
    const atMs = clock.now();
    answered.set(key, atMs);
    counts.set(key, (counts.get(key) ?? 0) + 1);
    waiting.get(key)?.(atMs);
    waiting.delete(key);
    return {};
  };
  const deps = { clock, log: silentLogger };
  const served = [
    ...serve(Identity, identity()),
    ...serve(Controller, controller(note)),
    ...serve(Node, node(note, mounts)),
  ];
  const announced = serveRegistration({ driverName: DRIVER, endpoint: socketPath }, () => undefined);
  const servers = [
    createCsiServer(deps, { socketPath, served }),
    createCsiServer(deps, { socketPath: join(registry, `${DRIVER}-reg.sock`), served: announced }),
  ];
  for (const server of servers) await server.start();
  return {
    done: (step, volumeId) =>
      new Promise((resolve) => {
        const key = `${step} ${volumeId}`;
        const atMs = answered.get(key);
        if (atMs === undefined) waiting.set(key, resolve);
        else resolve(atMs);
      }),
    times: (step, volumeId) => counts.get(`${step} ${volumeId}`) ?? 0,
    async stop() {
      for (const server of servers) await server.stop({ graceMs: 0 });
    },
  };
}

type Note = (step: Step, volumeId: string) => object;

function identity() {
  return {
    probe: async () => ({ ready: true }),
    getPluginInfo: async () => ({ name: DRIVER, vendorVersion: "1" }),
    getPluginCapabilities: async () => ({
      capabilities: [{ type: { case: "service" as const, value: { type: Service.CONTROLLER_SERVICE } } }],
    }),
  };
}

function controller(note: Note) {
  const type = ControllerRpc.PUBLISH_UNPUBLISH_VOLUME;
  return {
    controllerGetCapabilities: async () => ({
      capabilities: [{ type: { case: "rpc" as const, value: { type } } }],
    }),
    controllerPublishVolume: async () => ({ publishContext: {} }),
    controllerUnpublishVolume: async ({ volumeId }: { volumeId: string }) => note("detach", volumeId),
  };
}

function node(note: Note, mounts: boolean) {
  const type = NodeRpc.STAGE_UNSTAGE_VOLUME;
  const mounted = new Set<string>();
  return {
    nodeGetInfo: async () => ({ nodeId: "bench-machine" }),
    nodeGetCapabilities: async () => ({
      capabilities: [{ type: { case: "rpc" as const, value: { type } } }],
    }),
    nodeStageVolume: ({ volumeId }: { volumeId: string }) =>
      volumeId.startsWith(HUNG) ? new Promise<never>(() => undefined) : Promise.resolve({}),
    nodeUnstageVolume: async () => ({}),
    async nodePublishVolume({ volumeId, targetPath }: { volumeId: string; targetPath: string }) {
      await mkdir(mounts ? targetPath : dirname(targetPath), { recursive: true });
      if (mounts && !mounted.has(targetPath)) {
        mounted.add(targetPath);
        await run("mount", ["-t", "tmpfs", "-o", "size=64k", "bench", targetPath]);
      }
      return note("publish", volumeId);
    },
    async nodeUnpublishVolume({ volumeId, targetPath }: { volumeId: string; targetPath: string }) {
      if (mounted.delete(targetPath)) {
        await run("umount", [targetPath]);
        await rmdir(targetPath);
      }
      return note("unpublish", volumeId);
    },
  };
}

export async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${code ?? "a signal"}`);
}

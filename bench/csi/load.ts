import { createSystemClock } from "../../src/base/system-clock.ts";
import { Controller, Identity, VolumeCapability_AccessMode_Mode } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { createClient } from "../../src/csi/methods.ts";
import { percentilesOf, type Percentiles } from "../attach-detach/percentiles.ts";

export type Task =
  | { readonly kind: "calls"; readonly inFlight: number; readonly seconds: number }
  | { readonly kind: "connections"; readonly count: number };

export interface RateResult extends Percentiles {
  readonly perSecond: number;
}

const clock = createSystemClock();
const WITHIN = { timeoutMs: 30_000 };

export async function runLoad({ socketPath, task }: { socketPath: string; task: Task }): Promise<RateResult> {
  return task.kind === "calls" ? call(socketPath, task) : connect(socketPath, task.count);
}

/** The request of an attacher with everything in it, on one connection. */
async function call(
  socketPath: string,
  { inFlight, seconds }: { inFlight: number; seconds: number },
): Promise<RateResult> {
  const channel = createGrpcChannel({ clock }, { socketPath });
  const client = createClient(Controller, channel);
  const publish = (volumeId: string) =>
    client.controllerPublishVolume(
      {
        volumeId,
        nodeId: "worker-17",
        volumeCapability: {
          accessType: { case: "mount", value: { fsType: "ext4", mountFlags: ["noatime"] } },
          accessMode: { mode: VolumeCapability_AccessMode_Mode.SINGLE_NODE_WRITER },
        },
        secrets: { user: "u", password: "p" },
        volumeContext: { "storage.kubernetes.io/csiProvisionerIdentity": "1", pool: "fast" },
      },
      WITHIN,
    );
  // Connected and compiled before the clock starts.
  for (let warm = 0; warm < 2_000; warm++) await publish("warm");
  const tookMs: number[] = [];
  const startedAtMs = clock.now();
  const endsAtMs = startedAtMs + seconds * 1_000;
  const worker = async (name: number) => {
    for (let index = 0; clock.now() < endsAtMs; index++) {
      const atMs = clock.now();
      await publish(`pvc-${name}-${index}`);
      tookMs.push(clock.now() - atMs);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, name) => worker(name)));
  const took = clock.now() - startedAtMs;
  channel.close();
  return { perSecond: (tookMs.length / took) * 1_000, ...percentilesOf(tookMs) };
}

/** What a kubelet does: a connection for every call, closed again behind it. */
async function connect(socketPath: string, count: number): Promise<RateResult> {
  const tookMs: number[] = [];
  const startedAtMs = clock.now();
  for (let index = 0; index < count; index++) {
    const atMs = clock.now();
    const channel = createGrpcChannel({ clock }, { socketPath });
    await createClient(Identity, channel).probe({}, WITHIN);
    channel.close();
    tookMs.push(clock.now() - atMs);
  }
  return { perSecond: (count / (clock.now() - startedAtMs)) * 1_000, ...percentilesOf(tookMs) };
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { Identity } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { createClient } from "../../src/csi/methods.ts";
import { ask, startChild } from "../child.ts";
import type { RateResult, Task } from "./load.ts";

/**
 * Unary calls on a unix socket, client and server each in a process of its own; then many short connections, after
 * which the server's heap must be where it was. Only a heap that grows fails; figures alone fail nobody.
 */
export async function csi({ tiny }: { tiny: boolean }): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "mooring-bench-"));
  const socketPath = join(folder, "csi.sock");
  const server = startChild<{ pid: number }>({ role: "csi-server", input: { socketPath }, ...CHILD });
  try {
    await server.answer;
    const findings = await measure(socketPath, tiny ? TINY : FULL);
    process.stdout.write(table(findings));
    const ok = findings.growthBytes <= GROWTH_BYTES_MAX;
    if (!ok) process.stdout.write(`missed: the server's heap grew by ${findings.growthBytes} bytes\n`);
    process.stdout.write(`${JSON.stringify({ bench: "csi", tiny, ok, ...findings })}\n`);
    return ok;
  } finally {
    await server.end();
    await rm(folder, { recursive: true, force: true });
  }
}

const FULL = { seconds: 5, connections: 10_000, before: 1_000 };
const TINY = { seconds: 0.2, connections: 200, before: 100 };
const CHILD = { heapMb: 512, deadlineMs: 300_000 };

/** Below 240 bytes for each of 9,000 connections: nothing that is kept for a connection is that small. */
const GROWTH_BYTES_MAX = 2 << 20;

interface Findings {
  readonly alone: RateResult;
  readonly inFlight64: RateResult;
  readonly connections: RateResult;
  readonly heapBeforeBytes: number;
  readonly heapAfterBytes: number;
  readonly growthBytes: number;
  readonly resourcesBefore: number;
  readonly resourcesAfter: number;
}

async function measure(socketPath: string, sizes: typeof FULL): Promise<Findings> {
  const load = (task: Task) => ask<RateResult>({ role: "csi-load", input: { socketPath, task }, ...CHILD });
  const alone = await load({ kind: "calls", inFlight: 1, seconds: sizes.seconds });
  const inFlight64 = await load({ kind: "calls", inFlight: 64, seconds: sizes.seconds });
  await load({ kind: "connections", count: sizes.before });
  const before = await weigh(socketPath);
  const connections = await load({ kind: "connections", count: sizes.connections - sizes.before });
  const after = await weigh(socketPath);
  return {
    alone,
    inFlight64,
    connections,
    heapBeforeBytes: before.heapBytes,
    heapAfterBytes: after.heapBytes,
    growthBytes: after.heapBytes - before.heapBytes,
    resourcesBefore: before.resources,
    resourcesAfter: after.resources,
  };
}

/** The server's own words about its heap and open handles. */
async function weigh(socketPath: string): Promise<{ heapBytes: number; resources: number }> {
  const channel = createGrpcChannel({ clock: createSystemClock() }, { socketPath });
  try {
    const { manifest } = await createClient(Identity, channel).getPluginInfo({}, { timeoutMs: 30_000 });
    return { heapBytes: Number(manifest["heapBytes"]), resources: Number(manifest["resources"]) };
  } finally {
    channel.close();
  }
}

function table(findings: Findings): string {
  const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(2)} MiB`;
  const rate = (name: string, { perSecond, p50Ms, p99Ms, count }: RateResult) =>
    `${name.padEnd(38)}${perSecond.toFixed(0).padStart(8)}/s   p50 ${p50Ms.toFixed(3)} ms   p99 ${p99Ms.toFixed(3)} ms   of ${count}\n`;
  return (
    rate("ControllerPublishVolume, alone", findings.alone) +
    rate("ControllerPublishVolume, 64 at once", findings.inFlight64) +
    rate("short connections with a Probe", findings.connections) +
    `${"server heap before and after".padEnd(38)}${mib(findings.heapBeforeBytes)} -> ${mib(findings.heapAfterBytes)}\n` +
    `${"open handles before and after".padEnd(38)}${findings.resourcesBefore} -> ${findings.resourcesAfter}\n`
  );
}

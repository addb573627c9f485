import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { CsiError } from "../csi/errors.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createFakeHost, type FakeHost, type OpenDevice } from "./fake-host.testing.ts";
import type { Host } from "./host.ts";
import { MIB } from "./options.ts";
import { blockCapability, createdVolume, openPeer, STATE, type Peer } from "./stage.testing.ts";

/**
 * Somebody opens every device there is before the n-th look or step of the driver and closes them a while later, for
 * each n: a raw volume goes up, down and up again, and then a second one comes, which gets the numbers that are free.
 */

const clock = new SimScheduler(createSeededRandom("clock")).createClock();
const capability = blockCapability();
const FIRST = { stagingTargetPath: "/kubelet/stage-1", targetPath: "/kubelet/pods/1" };
const SECOND = { stagingTargetPath: "/kubelet/stage-2", targetPath: "/kubelet/pods/2" };

interface Run {
  readonly host: FakeHost;
  readonly peer: Peer;
  readonly first: string;
  readonly second: string;
  /** Looks and steps of the driver so far. */
  moments(): number;
  closeAll(): void;
}

async function begin(opensAt: number, closesAt: number): Promise<Run> {
  const host = createFakeHost();
  for (const path of ["/kubelet/stage-1", "/kubelet/stage-2", "/kubelet/pods"]) host.makePath(path);
  let moments = 0;
  const holders: OpenDevice[] = [];
  const closeAll = () => {
    for (const holder of holders.splice(0)) holder.close();
  };
  const watched = watch(host, async () => {
    if (moments === opensAt)
      for (const { path } of await host.loops.list()) holders.push(host.openDevice(path));
    if (moments === closesAt) closeAll();
    moments++;
  });
  const maker = openPeer(host, clock, {}, "maker");
  await maker.driver.recover();
  const volume = (name: string) => createdVolume(maker, name, { capability, sizeBytes: MIB });
  const [first, second] = [await volume("first"), await volume("second")];
  for (const volumeId of [first, second])
    await maker.controller.controllerPublishVolume({
      volumeId,
      nodeId: "node-1",
      volumeCapability: capability,
    });
  const peer = openPeer(watched, clock, {}, "node");
  await peer.driver.recover();
  moments = 0;
  return { host, peer, first, second, moments: () => moments, closeAll };
}

function watch(host: FakeHost, before: () => Promise<void>): Host {
  const wrap = <K extends keyof Host>(part: K): Host[K] => {
    const real = host[part] as unknown as Record<string, (...args: unknown[]) => unknown>;
    const wrapped = Object.keys(real).map((name) => [
      name,
      ["offered", "missingTool"].includes(name)
        ? real[name]
        : async (...args: unknown[]) => {
            await before();
            return real[name]?.(...args);
          },
    ]);
    return Object.fromEntries(wrapped) as Host[K];
  };
  return {
    files: wrap("files"),
    images: wrap("images"),
    loops: wrap("loops"),
    filesystems: wrap("filesystems"),
    mounts: wrap("mounts"),
  };
}

/** A refusal is an answer; what counts is what an OK promises. */
async function accepted(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof CsiError) return false;
    throw error;
  }
}

async function live({ peer: { node }, first }: Run, readonly: boolean): Promise<boolean> {
  const request = { volumeId: first, ...FIRST, volumeCapability: capability };
  const up = async () =>
    (await accepted(node.nodeStageVolume(request))) &&
    (await accepted(node.nodePublishVolume({ ...request, readonly })));
  await up();
  await accepted(node.nodeUnpublishVolume({ volumeId: first, targetPath: FIRST.targetPath }));
  await accepted(node.nodeUnstageVolume({ volumeId: first, stagingTargetPath: FIRST.stagingTargetPath }));
  return up();
}

function outcomeOf({ host, first, second }: Run): string {
  try {
    host.writeData(FIRST.targetPath, "token", "mine");
  } catch (error) {
    return String(error).includes("EROFS") ? "EROFS" : String(error);
  }
  const has = (id: string) => host.image(`${STATE}/volumes/${id}/image.raw`).data.get("token") === "mine";
  return has(second) ? "in the other volume" : has(first) ? "in its volume" : "nowhere";
}

async function secondComes({ peer: { node }, second }: Run): Promise<void> {
  const request = { volumeId: second, ...SECOND, volumeCapability: capability };
  await node.nodeStageVolume(request);
  await node.nodePublishVolume(request);
}

describe.each([false, true])("a raw volume published with readonly %s", (readonly) => {
  test("is itself whenever devices are opened and closed", async () => {
    const measured = await begin(Infinity, Infinity);
    expect(await live(measured, readonly)).toBe(true);
    const moments = measured.moments();
    let promises = 0;

    for (let opensAt = 0; opensAt < moments; opensAt++) {
      for (const later of [1, 8, 40, Infinity]) {
        const run = await begin(opensAt, opensAt + later);
        if (!(await live(run, readonly))) continue;
        promises++;
        run.closeAll();
        await secondComes(run);
        expect(outcomeOf(run), `opened before moment ${opensAt}, closed ${later} later`).toBe(
          readonly ? "EROFS" : "in its volume",
        );
      }
    }

    // Nobody was refused but for the few that asked for an unpublish which the holder kept from ending.
    expect(promises / (4 * moments)).toBeGreaterThan(0.9);
  });
});

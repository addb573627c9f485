import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { CsiError } from "../csi/errors.ts";
import { DRIVER_VIEW, mapCalls } from "../sim/host-calls.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createFakeHost, type FakeHost, type OpenDevice } from "./fake-host.testing.ts";
import { boundDevice } from "./devices.ts";
import type { Host, HostErrorCode } from "./host.ts";
import { MIB } from "./options.ts";
import {
  blockCapability,
  createdVolume,
  mountCapability,
  openPeer,
  STATE,
  type Peer,
} from "./stage.testing.ts";

/**
 * Somebody opens every device there is before the n-th look or step of the driver and closes them a while later, for
 * each n: a raw volume goes up, down and up again, and then a second one comes, which gets the numbers that are free.
 */

const clock = new SimScheduler(createSeededRandom("clock")).createClock();
const raw = blockCapability();
const FIRST = { stagingTargetPath: "/kubelet/stage-1", targetPath: "/kubelet/pods/1" };
const SECOND = { stagingTargetPath: "/kubelet/stage-2", targetPath: "/kubelet/pods/2" };

const FOREIGN = "/kubelet/foreign";

interface Run {
  readonly host: FakeHost;
  readonly peer: Peer;
  readonly capability: ReturnType<typeof blockCapability>;
  readonly first: string;
  readonly second: string;
  /** Looks and steps of the driver so far. */
  moments(): number;
  /** When devices were detached, was the target bound already? It names a number from then on, and nobody can help that. */
  boundBefore(): boolean;
  closeAll(): void;
}

/** Opens and closes, or, with `detachesAt`, detaches all devices by hand and attaches a file of its own in their place. */
async function begin(
  { opensAt = Infinity, closesAt = Infinity, detachesAt = Infinity },
  capability: ReturnType<typeof blockCapability> = raw,
): Promise<Run> {
  const host = createFakeHost();
  for (const path of ["/kubelet/stage-1", "/kubelet/stage-2", "/kubelet/pods"]) host.makePath(path);
  let moments = 0;
  let boundBefore = false;
  const holders: OpenDevice[] = [];
  const closeAll = () => {
    for (const holder of holders.splice(0)) holder.close();
  };
  const watched = watch(host, async () => {
    if (moments === opensAt)
      for (const { path } of await host.loops.list()) holders.push(host.openDevice(path));
    if (moments === closesAt) closeAll();
    if (moments === detachesAt) {
      boundBefore = (await host.mounts.list()).some(({ path }) => path === FIRST.targetPath);
      for (const device of await host.loops.list()) await host.loops.detach(device).catch(() => undefined);
      await host.loops.attach(FOREIGN, { readonly: false });
    }
    moments++;
  });
  await host.images.create(FOREIGN, MIB, { thick: false });
  const maker = openPeer(host, clock, {}, "maker");
  await maker.driver.recover();
  const volume = (name: string) => createdVolume(maker, name, { capability, sizeBytes: 16n * MIB });
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
  return {
    host,
    peer,
    capability,
    first,
    second,
    moments: () => moments,
    boundBefore: () => boundBefore,
    closeAll,
  };
}

function watch(host: FakeHost, before: () => Promise<void>): Host {
  return mapCalls<Host, HostErrorCode>(host, DRIVER_VIEW, async (_call, work) => {
    await before();
    return work();
  });
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

async function live({ peer: { node }, capability, first }: Run, readonly: boolean): Promise<boolean> {
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

async function secondComes({ peer: { node }, capability, second }: Run): Promise<void> {
  const request = { volumeId: second, ...SECOND, volumeCapability: capability };
  await node.nodeStageVolume(request);
  await node.nodePublishVolume(request);
}

describe.each([false, true])("a raw volume published with readonly %s", (readonly) => {
  test("is itself whenever devices are opened and closed", async () => {
    const measured = await begin({});
    expect(await live(measured, readonly)).toBe(true);
    const moments = measured.moments();
    let promises = 0;

    for (let opensAt = 0; opensAt < moments; opensAt++) {
      for (const later of [8, Infinity]) {
        const run = await begin({ opensAt, closesAt: opensAt + later });
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
    expect(promises / (2 * moments)).toBeGreaterThan(0.9);
  });
});

describe.each([
  ["raw", raw],
  ["filesystem", mountCapability()],
] as const)("a %s volume whose device is detached by hand", (_, capability) => {
  test("at any moment, and its number taken at once: what took it is not formatted, mounted, bound or detached", async () => {
    const measured = await begin({}, capability);
    await live(measured, false);

    for (let detachesAt = 0; detachesAt < measured.moments(); detachesAt++) {
      const run = await begin({ detachesAt }, capability);
      const { host } = run;
      const promised = await live(run, false);

      const moment = `detached before moment ${detachesAt}`;
      const foreign = (await host.files.stat(FOREIGN))?.identity;
      const device = (await host.loops.list()).find(({ backing }) => backing === foreign);
      expect(device, moment).toMatchObject({ autoclear: false });
      expect(host.image(FOREIGN), moment).toMatchObject({ content: { kind: "blank" } });
      const uses = (await host.mounts.list()).filter(
        (mount) => mount.deviceNumber === device?.deviceNumber || boundDevice(mount) === device?.path,
      );
      if (!promised || run.boundBefore()) continue;
      expect(uses, moment).toEqual([]);
      expect(outcomeOf(run), moment).toBe("in its volume");
    }
  });
});

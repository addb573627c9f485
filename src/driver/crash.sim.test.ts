import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createDyingHost, type DyingHost } from "./dying-host.testing.ts";
import { createFakeHost, type FakeHost } from "./fake-host.testing.ts";
import { lifeOf, type Life } from "./life.testing.ts";
import { openPeer, STAGING, STATE, TARGET, type Peer } from "./stage.testing.ts";

/**
 * kill -9 at every step, enumerated: a process dies before its n-th change of the machine (or in the middle of it),
 * another starts, recovers and carries on with the call that was cut off.
 */

const clock = new SimScheduler(createSeededRandom("clock")).createClock();

/** Steps that are not one instant on a real machine: files half written, copies half done, mkfs cut off. */
function tornOn(host: FakeHost) {
  return async (step: string, args: readonly unknown[]) => {
    const [first, second] = args as [string, string];
    if (step === "files.writeDurable")
      await host.files.writeDurable(first, second.slice(0, second.length / 2));
    if (step === "images.create") await host.images.create(first, 4_096n, { thick: false });
    if (step === "images.copy") await host.images.create(second, 4_096n, { thick: false });
    if (step === "filesystems.format")
      Object.assign(host.image(await imageOf(host, first)), {
        content: { kind: "other", what: "half a filesystem" },
      });
  };
}

async function imageOf(host: FakeHost, device: string): Promise<string> {
  const { backing } = (await host.loops.list()).find(({ path }) => path === device)!;
  for (const path of host.tree(STATE)) if ((await host.files.stat(path))?.identity === backing) return path;
  throw new Error(`${device} has no image`);
}

interface Run {
  readonly host: FakeHost;
  readonly life: Life;
  next: number;
}

function begin(access: "mount" | "block"): Run {
  const host = createFakeHost();
  host.makePath(STAGING);
  host.makePath("/kubelet/pods");
  host.makePath(STATE);
  const place = {
    stagingTargetPath: STAGING,
    targetPath: TARGET,
    write: async (path: string) => host.writeData(path, "diary", "precious"),
    verify: async (path: string) => expect(host.readData(path, "diary")).toBe("precious"),
  };
  return { host, life: lifeOf(place, access), next: 0 };
}

/** Goes on until the life is over or the process dies. */
async function proceed(run: Run, peer: Peer, dying: DyingHost): Promise<void> {
  try {
    await peer.driver.recover();
    for (; run.next < run.life.calls.length; run.next++) await run.life.calls[run.next]!.run(peer);
  } catch (error) {
    if (!dying.isDead()) throw error;
  }
}

let processes = 0;

async function processThatDies(run: Run, atStep: number, torn: boolean): Promise<DyingHost> {
  const dying = createDyingHost(run.host, { atStep, ...(torn ? { torn: tornOn(run.host) } : {}) });
  await proceed(run, openPeer(dying.host, clock, {}, `process ${processes++}`), dying);
  return dying;
}

/** After recovery: no intent is left open, nothing exists that no record knows. */
async function expectConsistent({ host }: Run): Promise<void> {
  const records = host.tree(STATE).filter((path) => path.endsWith(".json"));
  const texts = await Promise.all(
    records.map(
      async (path) => JSON.parse((await host.files.read(path)) ?? "") as { phase: string; id: string },
    ),
  );
  expect(texts.map(({ phase }) => phase).filter((phase) => !["ready", "staged"].includes(phase))).toEqual([]);
  const staged = texts.filter(({ phase }) => phase === "staged").length;
  const writable = (await host.loops.list()).filter(({ readonly }) => !readonly);
  expect(writable.length).toBeLessThanOrEqual(staged);
  expect(host.frozen()).toEqual([]);
  expect(host.tree(`${STATE}/tmp/controller`)).toEqual([]);
}

async function expectNothingLeft({ host }: Run): Promise<void> {
  expect(await host.loops.list()).toEqual([]);
  expect(await host.mounts.list()).toEqual([]);
  expect(host.tree("/kubelet")).toEqual(["/kubelet/pods", STAGING]);
  expect(host.tree(STATE).filter((path) => /vol-|eph-|snap-|\.json|\.raw/.test(path))).toEqual([]);
}

async function recovered(run: Run): Promise<Peer> {
  const peer = openPeer(run.host, clock, {}, `process ${processes++}`);
  await peer.driver.recover();
  return peer;
}

async function finish(run: Run): Promise<void> {
  const peer = await recovered(run);
  await expectConsistent(run);
  for (; run.next < run.life.calls.length; run.next++) await run.life.calls[run.next]!.run(peer);
  await expectNothingLeft(run);
}

async function stepsOfLife(access: "mount" | "block"): Promise<number> {
  const run = begin(access);
  const dying = await processThatDies(run, Infinity, false);
  await expectNothingLeft(run);
  return dying.steps();
}

describe.each(["mount", "block"] as const)("a %s volume", (access) => {
  for (const torn of [false, true]) {
    test(`38: the driver dies ${torn ? "in the middle of" : "before"} any step: no data is lost and nothing leaks`, async () => {
      const steps = await stepsOfLife(access);
      expect(steps).toBeGreaterThan(100);

      for (let step = 0; step < steps; step++) {
        const run = begin(access);
        const dying = await processThatDies(run, step, torn);
        try {
          await finish(run);
        } catch (error) {
          throw new Error(
            `killed at step ${step}: ${dying.lastStep()}, in "${run.life.calls[run.next]?.name}"`,
            { cause: error },
          );
        }
      }
    });
  }

  test("the driver dies, and its successor at any step of recovery", async () => {
    const steps = await stepsOfLife(access);

    // Every fourth first death, each with every second one: 4 s instead of 16.
    for (let step = 0; step < steps; step += 4) {
      for (let second = 0; ; second++) {
        const run = begin(access);
        await processThatDies(run, step, true);
        const dying = createDyingHost(run.host, { atStep: second, torn: tornOn(run.host) });
        const peer = openPeer(dying.host, clock, {}, `process ${processes++}`);
        await peer.driver.recover().catch(() => undefined);

        await finish(run);

        if (!dying.isDead()) break;
      }
    }
  });
});

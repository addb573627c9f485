import { afterAll, describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { CsiError } from "../csi/errors.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createFakeHost, type FakeHost } from "./fake-host.testing.ts";
import { createFaultyHost, LIES, type Fault, type FaultAt } from "./faulty-host.testing.ts";
import { lifeOf, type Life } from "./life.testing.ts";
import { openPeer, STAGING, STATE, TARGET, type Peer } from "./stage.testing.ts";

/**
 * Every call that the driver makes of its machine, over the whole life of a volume, goes wrong in every way: it fails, it
 * takes too long, it happens and its answer is lost, or it lies. Then the orchestrator repeats what it was told had failed.
 * What a workload wrote is there at every look; nothing is left in the end; every refusal names its cause.
 */

const CAUSE = "the disk is on fire";

const FAULTS: readonly Fault[] = [
  { kind: "fails", code: "Failed", text: `EIO, ${CAUSE}` },
  { kind: "fails", code: "Failed", text: `EROFS, ${CAUSE}` },
  { kind: "fails", code: "Failed", text: `ENODEV, ${CAUSE}` },
  { kind: "fails", code: "NoSpace", text: `ENOSPC, ${CAUSE}` },
  { kind: "fails", code: "Busy", text: `EBUSY, ${CAUSE}` },
  { kind: "fails", code: "NotFound", text: `ENOENT, ${CAUSE}` },
  { kind: "fails", code: "TimedOut", text: `took longer than 60000 ms, ${CAUSE}` },
  { kind: "late" },
];

/** One fault a call by default, another at the next: each kind of call meets most of them. */
const EVERY = process.env.MOORING_EVERY_STEP === "1";

/** The faults of one call of the machine, once and for as long as it is tried; a late answer is late once. */
function faultsOf(call: number): readonly FaultAt[] {
  const all = FAULTS.flatMap((fault) =>
    (fault.kind === "fails" ? [false, true] : [false]).map((lasting) => ({ call, fault, lasting })),
  );
  return EVERY ? all : [all[call % all.length] as FaultAt];
}

/** All of them take 3 minutes. */
const TIMEOUT_MS = 600_000;

const clock = new SimScheduler(createSeededRandom("clock")).createClock();
let cases = 0;
let processes = 0;
afterAll(() => void process.stdout.write(`io-faults: ${cases} cases\n`));

interface Run {
  readonly host: FakeHost;
  readonly life: Life;
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
  return { host, life: lifeOf(place, access) };
}

const peerOf = (host: Parameters<typeof openPeer>[0]) => openPeer(host, clock, {}, `process ${processes++}`);

async function callsOfLife(access: "mount" | "block"): Promise<readonly string[]> {
  const { host, life } = begin(access);
  const faulty = createFaultyHost(host);
  const peer = peerOf(faulty.host);
  await peer.driver.recover();
  for (const call of life.calls) await call.run(peer);
  return faulty.calls;
}

/** Codes that say something of the storage; the others would blame the caller, or say nothing. */
const SENSIBLE = ["INTERNAL", "FAILED_PRECONDITION", "ABORTED", "RESOURCE_EXHAUSTED", "NOT_FOUND"];

function expectSensible(error: unknown, { fault }: FaultAt): void {
  if (!(error instanceof CsiError)) throw error;
  expect(SENSIBLE).toContain(error.code);
  if (fault.kind === "fails") expect(error.message).toContain(CAUSE);
  expect(error.message.length).toBeGreaterThan(30);
}

/** Calls that bring a volume up, to be begun again where a later one finds an earlier one undone, as kubelet does. */
const BEGINNINGS = /^(?:attach|unpublish) /;

/** One life with one fault in it. Odd cases have the driver restarted after it. */
async function liveWith(run: Run, at: FaultAt, isRestarted: boolean): Promise<string | undefined> {
  const { host, life } = run;
  const faulty = createFaultyHost(host, at);
  let peer: Peer = peerOf(faulty.host);
  const restart = async () => {
    faulty.heal();
    peer = peerOf(host);
    await peer.driver.recover();
  };
  try {
    await peer.driver.recover();
  } catch {
    // A process that cannot recover does not serve; the next one does.
    await restart();
  }
  let failures = 0;
  let furthest = 0;
  for (let next = 0; next < life.calls.length; next++) {
    try {
      await life.calls[next]?.run(peer);
      furthest = Math.max(furthest, next);
    } catch (error) {
      if (failures === 0 || next > furthest + 1) expectSensible(error, at);
      if (++failures > 8) throw error;
      if (failures === 2) faulty.heal();
      if (failures === 2 && isRestarted) await restart();
      const refused = error instanceof CsiError && ["FAILED_PRECONDITION", "NOT_FOUND"].includes(error.code);
      if (failures > 2 && refused) while (next > 0 && !BEGINNINGS.test(life.calls[next]?.name ?? "")) next--;
      next--;
    }
  }
  return faulty.hit();
}

async function expectNothingLeft({ host }: Run): Promise<void> {
  const last = peerOf(host);
  await last.driver.recover();
  // The orchestrator removes what is empty and its own: where a look said that there is nothing, the driver did not.
  await host.machine.mounts.cleanUp(TARGET);
  expect(await host.loops.list()).toEqual([]);
  expect(await host.mounts.list()).toEqual([]);
  expect(host.frozen()).toEqual([]);
  expect(host.tree("/kubelet")).toEqual(["/kubelet/pods", STAGING]);
  expect(host.tree(STATE).filter((path) => /vol-|eph-|snap-|\.json|\.raw/.test(path))).toEqual([]);
}

/** Undefined where all was well. */
async function runCase(access: "mount" | "block", at: FaultAt, kind: string): Promise<string | undefined> {
  const run = begin(access);
  cases++;
  try {
    await liveWith(run, at, cases % 2 === 1);
    await expectNothingLeft(run);
    return undefined;
  } catch (error) {
    const { fault, lasting, call } = at;
    const what = `${JSON.stringify(fault)}${lasting ? ", lasting" : ""} at call ${call} (${kind})`;
    return `${what}: ${error instanceof Error ? (error.stack ?? "").slice(0, 600) : String(error)}`;
  }
}

describe.each(["mount", "block"] as const)("a %s volume", (access) => {
  test(
    "every call of the machine fails, once or for as long as it is tried, or its answer is lost",
    async () => {
      const calls = await callsOfLife(access);
      expect(calls.length).toBeGreaterThan(300);

      const broken: (string | undefined)[] = [];
      for (const [call, kind] of calls.entries()) {
        for (const at of faultsOf(call)) broken.push(await runCase(access, at, kind));
      }

      expect(broken.filter((one) => one !== undefined).slice(0, 10)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "every look lies, and every program says that it did what it did not do",
    async () => {
      const calls = await callsOfLife(access);
      const broken: (string | undefined)[] = [];

      for (const [call, kind] of calls.entries()) {
        for (const which of (LIES[kind] ?? []).keys())
          broken.push(await runCase(access, { call, fault: { kind: "lies", which }, lasting: false }, kind));
      }

      expect(broken.filter((one) => one !== undefined).slice(0, 10)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

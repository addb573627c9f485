import { expect, test } from "vitest";
import { configMaps } from "../kube/api/config-map.ts";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";
import { createIscsiPlugin } from "../volumes/plugins/iscsi.ts";
import { TIMERS_NAME } from "./detach-timers.ts";

/**
 * The time a volume has been unwanted outlives the process that counted it, but only as far as the API server can show that
 * it stayed unwanted: a force must never come sooner after the last pod than the policy says, whoever leads, whatever
 * their clocks say, and whatever happened while nobody watched.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const FORCE_AFTER_MS = 6 * MINUTE;

/** `v` is in use on a node that is not ready; `web` still wants it. */
async function onDeadNode(sketch: WorldSketch = {}): Promise<AttachDetachWorld> {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, ...sketch });
  await world.setInUse("n1", ["v"]);
  await world.setReady("n1", "Unknown");
  await world.settle();
  world.forget();
  return world;
}

const deletes = (world: AttachDetachWorld) =>
  world.timedRequests().filter(({ line }) => line.startsWith("DELETE va v@n1"));

const pods = {
  returns: (world: AttachDetachWorld) => world.createPod("web", { on: "n1", uses: ["v"] }),
  goes: (world: AttachDetachWorld) => world.removePod("web"),
};

const timersOf = (world: AttachDetachWorld) =>
  world.read(configMaps, { namespace: "kube-system", name: TIMERS_NAME })?.data?.["timers"] ?? "";

test("a pod that came back just before the process died: its volume gets the full time when it goes again", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  await world.advance(2 * MINUTE);
  expect(timersOf(world)).toContain("v");

  await pods.returns(world);
  await world.advance(SECOND);
  await world.restartController();
  await pods.goes(world);
  await world.advance(FORCE_AFTER_MS - SECOND);
  expect(deletes(world)).toEqual([]);
  await world.advance(2 * SECOND);

  expect(deletes(world)).toHaveLength(1);
});

test("a pod that came and went while nobody of ours led: the time before it does not count", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  await world.advance(2 * MINUTE);

  world.controller.kill();
  await pods.returns(world);
  await world.advance(MINUTE);
  await pods.goes(world);
  world.startController();
  await world.advance(FORCE_AFTER_MS - SECOND);

  expect(deletes(world)).toEqual([]);
});

for (const ms of [2 * SECOND, 20 * SECOND])
  test(`a pod that comes and goes while the Lease is read for ${ms / SECOND} s: the time before it does not count`, async () => {
    const world = await onDeadNode();
    await pods.goes(world);
    await world.advance(5 * MINUTE);

    world.controller.kill();
    world.lease.readInMs = ms;
    world.startController();
    await world.advance(SECOND);
    await pods.returns(world);
    await world.advance(200);
    await pods.goes(world);
    await world.advance(FORCE_AFTER_MS - SECOND);

    expect(deletes(world)).toEqual([]);
  });

test("so does a pod that names a disk itself, without a claim: it may have been this one", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  await world.advance(4 * MINUTE);

  world.controller.kill();
  const disk = { name: "disk", awsElasticBlockStore: { volumeID: "vol-1" } };
  await world.createPod("direct", { on: "n1", inline: [disk] });
  await world.advance(MINUTE);
  await world.removePod("direct");
  world.startController();
  await world.advance(FORCE_AFTER_MS - SECOND);

  expect(deletes(world)).toEqual([]);
});

for (const [claim, minutes] of [
  ["ahead", 10],
  ["behind", -10],
] as const)
  test(`a successor whose clock is ten minutes ${claim} counts the same time`, async () => {
    const world = await onDeadNode();
    await pods.goes(world);
    const goneAtMs = world.scheduler.nowMs;
    await world.advance(2 * MINUTE);

    world.jumpWall(minutes * MINUTE);
    await world.restartController();
    await world.advance(FORCE_AFTER_MS);

    const [forced] = deletes(world);
    expect(forced?.atMs).toBeGreaterThan(goneAtMs + FORCE_AFTER_MS);
    expect(forced?.atMs).toBeLessThan(goneAtMs + FORCE_AFTER_MS + MINUTE);
  });

test("a VolumeAttachment that was made anew has waited for nothing yet", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  await world.advance(4 * MINUTE);

  world.controller.kill();
  await world.hand.removeByHand("v", "n1");
  await world.hand.create("v", "n1", { attached: true });
  world.startController();
  await world.advance(FORCE_AFTER_MS - SECOND);

  expect(deletes(world)).toEqual([]);
});

test("where the server has forgotten what happened since the time was saved, it starts over", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  await world.advance(4 * MINUTE);

  world.controller.kill();
  await world.heartbeat("n1");
  await world.compact();
  world.startController();
  await world.advance(FORCE_AFTER_MS - SECOND);
  expect(deletes(world)).toEqual([]);
  await world.advance(2 * SECOND);

  expect(deletes(world)).toHaveLength(1);
});

test("other pods of the node that change meanwhile take nothing from the time that counts", async () => {
  const world = await onDeadNode();
  await world.createPod("other", { on: "n1", uses: ["w"] });
  await world.advance(SECOND);
  await pods.goes(world);
  const goneAtMs = world.scheduler.nowMs;
  await world.advance(4 * MINUTE);

  world.controller.kill();
  await world.setPodStatus("other", { phase: "Running", conditions: [{ type: "Ready", status: "False" }] });
  world.startController();
  await world.advance(4 * MINUTE);

  expect(deletes(world)[0]?.atMs).toBeLessThan(goneAtMs + FORCE_AFTER_MS + MINUTE);
});

test("what waited long on a healthy node is not taken within half a minute of a start", async () => {
  const world = await onDeadNode();
  await world.setReady("n1", "True");
  await pods.goes(world);
  await world.advance(20 * MINUTE);

  await world.restartController();
  await world.setReady("n1", "Unknown");
  await world.advance(29 * SECOND);
  expect(deletes(world)).toEqual([]);
  await world.advance(MINUTE);

  expect(deletes(world)).toHaveLength(1);
});

const writes = (world: AttachDetachWorld) =>
  world.otherRequests().filter((line) => /^(POST|PUT) configmaps/.test(line));

test("the ConfigMap is written when something begins and ends to wait, not while it waits", async () => {
  const world = await onDeadNode({ volumes: { w: {} } });
  await world.setReady("n1", "True");
  await pods.goes(world);
  await world.advance(2 * MINUTE);
  expect(writes(world)).toEqual([`POST configmaps ${TIMERS_NAME}`]);

  for (let beats = 0; beats < 60; beats++) {
    await world.heartbeat("n1");
    await world.advance(MINUTE);
  }
  expect(writes(world)).toHaveLength(1);
  expect(world.lease.note).toBeDefined();

  await world.setInUse("n1", []);
  await world.advance(10 * MINUTE);
  expect(writes(world)).toEqual([`POST configmaps ${TIMERS_NAME}`, `PUT configmaps ${TIMERS_NAME}`]);
  expect(timersOf(world)).not.toContain("^v");
});

test("without a Lease nobody vouches for it: then it is written every half a minute", async () => {
  const world = await onDeadNode({ elected: false });
  await world.setReady("n1", "True");
  await pods.goes(world);
  await world.advance(10 * MINUTE + SECOND);

  expect(writes(world).length).toBeGreaterThanOrEqual(18);
});

test("a server that remembers one minute only: the version on the Lease is new enough, the ConfigMap's is not", async () => {
  const world = await onDeadNode();
  await pods.goes(world);
  const goneAtMs = world.scheduler.nowMs;
  await world.advance(4 * MINUTE);
  await world.compact();
  await world.heartbeat("n1");
  await world.setPodStatus("other", {}).catch(() => undefined);
  await world.advance(65 * SECOND);

  await world.restartController();
  await world.advance(2 * MINUTE);

  expect(deletes(world)[0]?.atMs).toBeLessThan(goneAtMs + FORCE_AFTER_MS + 35 * SECOND);
  expect(deletes(world)[0]?.atMs).toBeGreaterThan(goneAtMs + FORCE_AFTER_MS);
});

for (const [what, spoil] of [
  ["of another ConfigMap", (note: string) => note.replace(/"timers":"\d+"/, '"timers":"1"')],
  ["that is no JSON", () => "{"],
  ["without a version", (note: string) => note.replace("version", "vision")],
  ["of a negative time", (note: string) => note.replace(/"waitedMs":\d+/, '"waitedMs":-99999999')],
] as const)
  test(`a note ${what} vouches for nothing: what the ConfigMap itself says still counts`, async () => {
    const world = await onDeadNode();
    await pods.goes(world);
    const goneAtMs = world.scheduler.nowMs;
    await world.advance(4 * MINUTE);
    world.controller.kill();
    world.lease.note = spoil(world.lease.note ?? "");

    world.startController();
    await world.advance(FORCE_AFTER_MS + MINUTE);

    // The ConfigMap was written after a minute at most: no more than that counts.
    const [forced] = deletes(world);
    expect(forced?.atMs).toBeGreaterThan(goneAtMs + FORCE_AFTER_MS + 3 * MINUTE - SECOND);
    expect(forced?.atMs).toBeLessThan(goneAtMs + 4 * MINUTE + FORCE_AFTER_MS + SECOND);
  });

/** Its Lease is renewed until its last call has ended, which may take a program of a FlexVolume minutes. */
test("a term that failed hears of no pod any more, and vouches for nothing", async () => {
  const iscsi = { targetPortal: "10.0.0.9:3260", iqn: "iqn.2025-01.example:store", lun: 1 };
  let isBroken = false;
  const verify = async () => {
    if (isBroken) throw new Error("a defect of a plugin");
    return "unknown" as const;
  };
  const world = await onDeadNode({
    pods: { web: { on: "n1", uses: ["v"] }, lun: { on: "n1", inline: [{ name: "lun", iscsi }] } },
    plugins: [{ ...createIscsiPlugin(), verify }],
  });
  await pods.goes(world);
  await world.advance(3 * MINUTE);
  isBroken = true;
  await expect(world.advance(2 * MINUTE)).rejects.toThrow("a defect");
  const { note } = world.lease;
  expect(note).toBeDefined();

  await pods.returns(world);
  await world.scheduler.runFor(10 * SECOND);

  expect(world.lease.note).toBe(note);
});

/** Every case: what happens to the pod, where the process dies, how long nobody leads, and what differs afterwards. */
interface Case {
  readonly story: string;
  readonly killAtRequest: number;
  /** From the beginning of the story; what the Lease says changes without a request. */
  readonly killAtMs?: number;
  readonly downMs: number;
  readonly change: Change;
}

const STORIES: Readonly<Record<string, readonly (readonly [atMs: number, act: keyof typeof pods])[]>> = {
  "it goes": [[0, "goes"]],
  "it goes, returns for a moment, goes": [
    [0, "goes"],
    [2 * MINUTE, "returns"],
    [2 * MINUTE + SECOND, "goes"],
  ],
  "it goes, returns right after a save, goes": [
    [0, "goes"],
    [5 * MINUTE + 30 * SECOND, "returns"],
    [5 * MINUTE + 31 * SECOND, "goes"],
  ],
  "it goes and returns twice": [
    [0, "goes"],
    [MINUTE, "returns"],
    [2 * MINUTE, "goes"],
    [4 * MINUTE, "returns"],
    [4 * MINUTE + 10, "goes"],
  ],
};

/** What differs when the next process starts. */
const CHANGES = {
  nothing: async () => undefined,
  "a clock 10 min ahead": async (world: AttachDetachWorld) => world.jumpWall(10 * MINUTE),
  "a clock 10 min behind": async (world: AttachDetachWorld) => world.jumpWall(-10 * MINUTE),
  "history forgotten": (world: AttachDetachWorld) => world.compact(),
  "attachment made anew": async (world: AttachDetachWorld) => {
    if (world.attachmentOf("v", "n1") === undefined) return;
    await world.hand.removeByHand("v", "n1");
    await world.hand.create("v", "n1", { attached: true });
  },
} as const;
type Change = keyof typeof CHANGES;

/** Throws where the volume was taken sooner than it may be, or never. */
async function play({
  story,
  killAtRequest,
  killAtMs = Infinity,
  downMs,
  change,
}: Case): Promise<{ requests: number }> {
  const world = await onDeadNode();
  const acts = (STORIES[story] ?? []).map(([atMs, act]) => ({ atMs: world.scheduler.nowMs + atMs, act }));
  const dieAtMs = world.scheduler.nowMs + killAtMs;
  let lastWantedMs = Infinity;
  let startAtMs = Infinity;
  let killed = false;
  const endMs = (acts.at(-1)?.atMs ?? 0) + downMs + 3 * FORCE_AFTER_MS;
  for (;;) {
    const next = Math.min(acts[0]?.atMs ?? Infinity, startAtMs, endMs);
    const isDue = () =>
      !killed && (world.timedRequests().length >= killAtRequest || world.scheduler.nowMs >= dieAtMs);
    const died = await world.scheduler.runUntilTrue(isDue, { withinMs: next - world.scheduler.nowMs });
    if (died) {
      killed = true;
      world.controller.kill();
      startAtMs = world.scheduler.nowMs + downMs;
      continue;
    }
    if (world.scheduler.nowMs >= startAtMs) {
      startAtMs = Infinity;
      await CHANGES[change](world);
      world.startController();
    }
    if (world.scheduler.nowMs >= endMs) break;
    const act = acts[0]?.atMs === world.scheduler.nowMs ? acts.shift() : undefined;
    if (act === undefined) continue;
    await pods[act.act](world);
    lastWantedMs = act.act === "goes" ? world.scheduler.nowMs : Infinity;
    const early = deletes(world).filter(({ atMs }) => act.act === "returns" && atMs <= world.scheduler.nowMs);
    if (early.length > 0) throw new Error("the story is too long: the volume was taken before it ended");
  }
  for (const { atMs } of deletes(world))
    if (atMs <= lastWantedMs + FORCE_AFTER_MS)
      throw new Error(`taken ${(atMs - lastWantedMs) / SECOND} s after the last pod went`);
  if (deletes(world).length === 0) throw new Error("never taken");
  return { requests: world.timedRequests().length };
}

test("a process killed at any request, for any time, with any clock: no force before its time, and one at last", async () => {
  const everyStep = process.env["MOORING_EVERY_STEP"] === "1";
  const failures: string[] = [];
  let cases = 0;
  for (const story of Object.keys(STORIES)) {
    const { requests } = await play({ story, killAtRequest: Infinity, downMs: 0, change: "nothing" });
    for (let killAtRequest = 0; killAtRequest < requests; killAtRequest++)
      for (const [index, change] of (Object.keys(CHANGES) as Change[]).entries())
        for (const downMs of [10, 20 * SECOND, 3 * MINUTE]) {
          const turn = killAtRequest * 7 + index * 3 + downMs;
          if (!everyStep && turn % 23 !== 0) continue;
          const one: Case = { story, killAtRequest, downMs, change };
          cases++;
          await play(one).catch((error: unknown) =>
            failures.push(`${JSON.stringify(one)}: ${String(error)}`),
          );
        }
    for (let killAtMs = 500; killAtMs < 8 * MINUTE; killAtMs += 11_300)
      for (const [index, change] of (Object.keys(CHANGES) as Change[]).entries()) {
        if (!everyStep && (Math.round(killAtMs / 11_300) * 3 + index) % 19 !== 0) continue;
        const one: Case = { story, killAtRequest: Infinity, killAtMs, downMs: 20 * SECOND, change };
        cases++;
        await play(one).catch((error: unknown) => failures.push(`${JSON.stringify(one)}: ${String(error)}`));
      }
  }
  expect(failures).toEqual([]);
  expect(cases).toBeGreaterThan(everyStep ? 600 : 40);
  process.stdout.write(`detach timers: ${cases} cases\n`);
}, 900_000);

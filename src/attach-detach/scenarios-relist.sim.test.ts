import { describe, expect, test } from "vitest";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";
import type { TransportResponse } from "../kube/transport/transport.ts";

/**
 * A list says what there is, not what there was: a pod that came and went between the last event of a watch and the list after
 * it is told by nothing. So no time before such a list counts towards a force, whatever led to the list.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const FORCE_AFTER_MS = 6 * MINUTE;

/** `v` is in use on a node that is not ready, and the last pod that used it has just gone. */
async function abandoned(sketch: WorldSketch = {}): Promise<AttachDetachWorld> {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, ...sketch });
  await world.setInUse("n1", ["v"]);
  await world.setReady("n1", "Unknown");
  await world.settle();
  await world.removePod("web");
  await world.settle();
  world.forget();
  return world;
}

const deletes = (world: AttachDetachWorld) =>
  world.timedRequests().filter(({ line }) => line.startsWith("DELETE va v@n1"));

const relists = (world: AttachDetachWorld) =>
  world.metric("mooring_informer_relists_total", { resource: "pods" });

/** Comes and goes; answers when it went. */
async function visit(world: AttachDetachWorld): Promise<number> {
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(10 * SECOND);
  await world.removePod("web");
  return world.scheduler.nowMs;
}

/** No force within the time of its policy, and one soon after it. */
async function expectFullTimeSince(world: AttachDetachWorld, goneAtMs: number): Promise<void> {
  await world.advance(goneAtMs + FORCE_AFTER_MS - world.scheduler.nowMs);
  expect(deletes(world)).toEqual([]);
  await world.advance(MINUTE);
  expect(deletes(world)).toHaveLength(1);
}

const EXPIRED: TransportResponse = {
  status: 410,
  headers: {},
  body: JSON.stringify({ kind: "Status", status: "Failure", reason: "Expired", code: 410 }),
};

const isPods = (path: string) => /\/pods\?/.test(path);

/** How the pods come to be listed anew, while `meanwhile` happens unseen. */
const RELISTS: Readonly<
  Record<string, (world: AttachDetachWorld, meanwhile: () => Promise<number>) => Promise<number>>
> = {
  "the watch is cut and the server has compacted its history": async (world, meanwhile) => {
    const mend = world.controller.transport.cutKind("pods");
    const goneAtMs = await meanwhile();
    await world.compact();
    mend();
    return goneAtMs;
  },
  "the server does not know streaming lists, and one page expires": async (world, meanwhile) => {
    const { transport } = world.controller;
    let expirations = 1;
    transport.answerReads(({ path }) => {
      if (!isPods(path)) return undefined;
      if (path.includes("sendInitialEvents")) return { ...EXPIRED, status: 422, body: INVALID };
      return path.includes("limit=") && expirations-- > 0 ? EXPIRED : undefined;
    });
    const mend = transport.cutKind("pods");
    const goneAtMs = await meanwhile();
    await world.compact();
    mend();
    return goneAtMs;
  },
  "the watch says in its stream that it is too old": async (world, meanwhile) => {
    const { transport } = world.controller;
    const mend = transport.cutKind("pods");
    const goneAtMs = await meanwhile();
    const event = JSON.stringify({ type: "ERROR", object: JSON.parse(EXPIRED.body) as object });
    let told = false;
    transport.answerReads(({ path }) => {
      if (!isPods(path) || !path.includes("watch=") || path.includes("sendInitialEvents") || told)
        return undefined;
      told = true;
      return { status: 200, headers: {}, body: `${event}\n` };
    });
    mend();
    return goneAtMs;
  },
  "the watch brings what nobody can read, until it is given up": async (world, meanwhile) => {
    const { transport } = world.controller;
    const end = transport.answerReads(({ path }) =>
      isPods(path) && path.includes("watch=") && !path.includes("sendInitialEvents")
        ? { status: 200, headers: {}, body: "<html>\n" }
        : undefined,
    );
    transport.cutKind("pods")();
    const goneAtMs = await meanwhile();
    await world.compact();
    await world.advance(20 * SECOND);
    end();
    return goneAtMs;
  },
  "the whole server was out of reach": async (world, meanwhile) => {
    world.cutOff();
    const goneAtMs = await meanwhile();
    await world.reconnect();
    return goneAtMs;
  },
};

/** Cuts the pods off, lets one come and go, and has the server forget; answers when it went, and how to mend it. */
async function blind(world: AttachDetachWorld): Promise<{ goneAtMs: number; mend: () => void }> {
  const mend = world.controller.transport.cutKind("pods");
  const goneAtMs = await visit(world);
  await world.compact();
  return { goneAtMs, mend };
}

const INVALID = JSON.stringify({ kind: "Status", status: "Failure", reason: "Invalid", code: 422 });

describe("a pod that comes and goes unseen: its volume gets the full time from then on", () => {
  for (const [why, relist] of Object.entries(RELISTS))
    test(why, async () => {
      const world = await abandoned();
      await world.advance(4 * MINUTE);
      const before = (await relists(world)) ?? 0;

      const goneAtMs = await relist(world, () => visit(world));

      await expectFullTimeSince(world, goneAtMs);
      expect(await relists(world)).toBeGreaterThan(before);
    });
});

test("nothing is forced while no watch of pods is open, though its time is over", async () => {
  const world = await abandoned();
  await world.advance(5 * MINUTE);

  const { goneAtMs, mend } = await blind(world);
  // Longer than what was left of its time, and shorter than the 3 minutes after which nothing is detached at all.
  await world.advance(2 * MINUTE);
  expect(deletes(world)).toEqual([]);
  expect(world.controller.controller.report().volumes[0]?.waitingFor?.message).toContain(
    "it is forced once a watch of pods shows that none uses it again",
  );
  mend();

  await expectFullTimeSince(world, goneAtMs + 2 * MINUTE);
});

test("a watch that was resumed tells all that happened: a pod that came and went restarts the time, and nothing else does", async () => {
  const [used, unused] = [await abandoned(), await abandoned()];
  for (const world of [used, unused]) {
    await world.advance(5 * MINUTE);
    const mend = world.controller.transport.cutKind("pods");
    if (world === used) await visit(world);
    await world.advance(70 * SECOND);
    mend();
    await world.advance(30 * SECOND);
  }

  expect(deletes(used)).toEqual([]);
  expect(deletes(unused)).toHaveLength(1);
});

test("nodes that are listed anew take nothing from the time: no node's past counts towards it", async () => {
  const world = await abandoned();
  await world.advance(4 * MINUTE);
  const mend = world.controller.transport.cutKind("nodes");
  await world.setReady("n1", "True");
  await world.setReady("n1", "Unknown");
  await world.compact();
  mend();

  await world.advance(2 * MINUTE);

  expect(deletes(world)).toHaveLength(1);
});

for (const visits of [false, true])
  test(`the list comes while the node is read for the last time${visits ? ", and so does a pod that is seen" : ""}: what was about to be forced stays`, async () => {
    const world = await abandoned();
    await world.advance(5 * MINUTE + 55 * SECOND);
    // The read that decides is answered 20 s later.
    world.spoil("GET node n1", { kind: "answer-late", ms: 20 * SECOND }, 1);
    await world.advance(6 * SECOND);
    expect(world.requests().at(-1)).toBe("GET node n1");

    let goneAtMs: number;
    if (visits) goneAtMs = await visit(world);
    else {
      const blinded = await blind(world);
      blinded.mend();
      goneAtMs = blinded.goneAtMs;
    }

    await expectFullTimeSince(world, goneAtMs);
  });

test("a list that comes while an earlier leader's time is being proven: that time does not count any more", async () => {
  const world = await abandoned();
  await world.advance(5 * MINUTE);
  world.controller.kill();
  world.startController();
  // Stock is taken, the kept time is read, and the server is being asked for the history of the pods.
  await world.advance(SECOND);
  const own = world.controller.transport;
  const history = own.answerReads(({ path }) =>
    path.includes("fieldSelector=spec.nodeName") ? NOTHING_SINCE : undefined,
  );

  const { goneAtMs, mend } = await blind(world);
  mend();
  await world.advance(20 * SECOND);
  history();

  await expectFullTimeSince(world, goneAtMs);
});

test("a replica that stood by, cut off, and comes to lead: what an earlier leader proved ends where its own watch ended", async () => {
  const world = await abandoned();
  const leader = world.controller;
  world.startController({}, { leading: false });
  await world.advance(5 * MINUTE);

  const mend = world.controller.transport.cutKind("pods");
  leader.kill();
  world.controller.lead();
  await world.advance(SECOND);
  const goneAtMs = await visit(world);
  await world.compact();
  await world.advance(50 * SECOND);
  mend();

  await expectFullTimeSince(world, goneAtMs + 50 * SECOND);
});

test("with the history lost and the process killed, in any order: no force before its time, and one at last", async () => {
  const everyStep = process.env["MOORING_EVERY_STEP"] === "1";
  const failures: string[] = [];
  let cases = 0;
  for (const [which, [why, relist]] of Object.entries(RELISTS).entries())
    for (const [first, cutAtMs] of [10 * SECOND, 4 * MINUTE, 5 * MINUTE + 45 * SECOND].entries())
      for (const [second, killAfterMs] of [0, 100, 3 * SECOND, 35 * SECOND, 2 * MINUTE].entries())
        for (const downMs of [10, 20 * SECOND]) {
          if (!everyStep && (which + first + second + downMs) % 5 !== 0) continue;
          cases++;
          await survive({ relist, cutAtMs, killAfterMs, downMs }).catch((error: unknown) =>
            failures.push(
              `${why}, at ${cutAtMs}, killed ${killAfterMs} later for ${downMs}: ${String(error)}`,
            ),
          );
        }
  expect(failures).toEqual([]);
  process.stdout.write(`lists anew: ${cases} cases\n`);
}, 900_000);

interface Survival {
  readonly relist: (typeof RELISTS)[string];
  readonly cutAtMs: number;
  readonly killAfterMs: number;
  readonly downMs: number;
}

async function survive({ relist, cutAtMs, killAfterMs, downMs }: Survival): Promise<void> {
  const world = await abandoned();
  await world.advance(cutAtMs);
  const goneAtMs = await relist(world, () => visit(world));
  await world.advance(killAfterMs);
  world.controller.kill();
  await world.advance(downMs);
  world.startController();
  await world.advance(2 * FORCE_AFTER_MS + 2 * MINUTE);
  const [forced] = deletes(world);
  if (forced === undefined) throw new Error("never taken");
  if (forced.atMs <= goneAtMs + FORCE_AFTER_MS)
    throw new Error(`taken ${(forced.atMs - goneAtMs) / SECOND} s after the last pod went`);
}

/** A bookmark far ahead: nothing happened until then. */
const NOTHING_SINCE: TransportResponse = {
  status: 200,
  headers: {},
  body: `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "999999" } } })}\n`,
};

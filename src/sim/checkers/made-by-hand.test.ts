import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { HANDLE_ANNOTATION, volumeAttachmentName } from "../../volumes/names.ts";
import { SimScheduler } from "../scheduler.ts";
import { watchMadeByHand } from "./made-by-hand.ts";

const DISGUISED = volumeAttachmentName({ driver: "d", volumeHandle: "h" }, "node-2");

interface Sketch {
  readonly name?: string;
  readonly recorded?: boolean;
  /** A replica leads from the first moment on, with nothing in its way. */
  readonly led?: boolean;
}

/** One VolumeAttachment for node-1 that somebody made, and the PersistentVolume it names. */
function given({ name = DISGUISED, recorded = false, led = true }: Sketch = {}) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const violations: string[] = [];
  const annotations = recorded ? { [HANDLE_ANNOTATION]: "h" } : {};
  const metadata = { name, uid: "u", labels: { "made-by": "hand" }, annotations };
  const spec = { attacher: "d", nodeName: "node-1", source: { persistentVolumeName: "pv" } };
  const there = { attachment: true, volume: true };
  const shown: string[] = [];
  const term = () => ({ report: () => ({ volumes: [{ foreignAttachments: shown }] }) });
  let leader = led ? term() : undefined;
  const process = { isUnhindered: true, lives: 1 };
  const world = {
    scheduler,
    server: { isUp: true },
    processes: new Map([["controller-0", process]]),
    controllers: new Map([["controller-0", () => leader]]),
    objects: {
      all: () => (there.attachment ? [{ metadata, spec }] : []),
      get: () => (there.volume ? { metadata: { name: "pv" } } : undefined),
    },
    byHand: { letGo: new Set<string>() },
    violate: (text: string) => violations.push(text),
  };
  watchMadeByHand(world as never);
  return {
    ...{ there, process, violations, letGo: world.byHand.letGo },
    pass: (ms: number) => scheduler.runFor(ms),
    lead: () => void (leader = term()),
    show: () => void shown.push(name),
    /** Somebody else deletes it. */
    deleted: async () => {
      await scheduler.runFor(1_000);
      there.attachment = false;
      await scheduler.runFor(1_000);
      return violations.length > 0;
    },
  };
}

test("one that its maker deletes is nobody's fault", async () => {
  const world = given();
  world.letGo.add("u");

  expect(await world.deleted()).toBe(false);
});

test("one under a name of its own, whose PersistentVolume is there, or whose disk is recorded, is deleted by nobody else", async () => {
  for (const sketch of [
    { name: "mine", led: false },
    { recorded: true, led: false },
  ]) {
    const world = given(sketch);
    world.there.volume = false;
    expect(await world.deleted()).toBe(true);
  }

  expect(await given({ led: false }).deleted()).toBe(true);
});

test("a leader who never could read it takes it for ours", async () => {
  const world = given({ led: false });
  await world.pass(300_000);
  world.there.volume = false;
  await world.pass(10_000);
  world.lead();

  expect(await world.deleted()).toBe(false);
});

test("a leader who could read it remembers", async () => {
  const world = given();
  await world.pass(130_000);
  world.there.volume = false;

  expect(await world.deleted()).toBe(true);
});

test("the next leader does not", async () => {
  const world = given();
  await world.pass(130_000);
  world.there.volume = false;
  world.lead();

  expect(await world.deleted()).toBe(false);
});

test("a leader who was cut off while it could be read knows only what he shows", async () => {
  for (const isShown of [false, true]) {
    const world = given();
    world.process.isUnhindered = false;
    await world.pass(130_000);
    if (isShown) world.show();
    await world.pass(1_000);
    world.there.volume = false;

    expect(await world.deleted()).toBe(isShown);
  }
});

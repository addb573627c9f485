import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { watchPublishes } from "../sim/checkers/published-once.ts";
import { NO_FAULTS, type NetworkFaults } from "../sim/faulty-transport.ts";
import { forSeeds } from "../sim/seeds.ts";
import type { Trouble } from "./fake-driver.testing.ts";
import { DRIVER, F, given, type AttacherWorld } from "./stage.testing.ts";

const VOLUMES = ["pv1", "pv2", "pv3"];
const NODES = ["n1", "n2"];
const SECRET = "correct horse battery staple";

const BAD_WEATHER: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.04,
  lostAnswer: 0.05,
  lostRequest: 0.01,
  tooMany: 0.02,
  serverError: 0.05,
  cut: 0.02,
  repeated: 0.05,
  swapped: 0.05,
  expiredInStream: 0.01,
  latencyMsMax: 40,
};

const TROUBLES: readonly Trouble[] = [
  { kind: "error", code: 13, text: `backend said ${SECRET}` },
  { kind: "error", code: 14, text: "unavailable" },
  { kind: "error", code: undefined, text: `socket broke with ${SECRET}` },
  { kind: "answer-lost" },
  { kind: "hang" },
];

/**
 * Watches what the driver is asked to do and what the API server is told, from outside both:
 * - a publish is carried out only while the attachment on the server carries the finalizer;
 * - `attached: true` appears only after a publish of that pair succeeded, for an object that carries the finalizer;
 * - the finalizer goes only after an unpublish succeeded that no publish has followed.
 */
function watchLaws(world: AttacherWorld): { violations: string[]; check(): void } {
  const violations: string[] = [];
  const everPublished = new Set<string>();
  /** Keys of the attachments that carried the finalizer when we last looked, by uid. */
  const held = new Map<string, string>();
  /** Pairs that are certainly not published: unpublished, and not published since. */
  const sure = new Set<string>();

  world.driver.storages.on({
    published({ handle }, nodeId) {
      check();
      const key = `${handle}@${nodeId}`;
      sure.delete(key);
      everPublished.add(key);
      if (![...held.values()].includes(key))
        violations.push(`${key} published although no attachment is held`);
    },
    unpublished({ handle }, nodeId) {
      check();
      sure.add(`${handle}@${nodeId}`);
    },
  });

  /** Compares the server with what was seen the last time. */
  function check(): void {
    const all = world.attachmentsNow();
    const ours = all.filter(({ metadata }) => metadata.finalizers?.includes(F));
    for (const attachment of all.filter(({ status }) => status?.attached)) {
      const key = keyOf(attachment);
      if (!everPublished.has(key)) violations.push(`${key} attached, never published`);
      if (!ours.includes(attachment)) violations.push(`${key} attached without a finalizer`);
    }
    const uids = new Set(ours.map(({ metadata }) => metadata.uid));
    for (const [uid, key] of held) {
      if (uids.has(uid)) continue;
      if (!sure.has(key)) violations.push(`${key} let go without an unpublish`);
      held.delete(uid);
    }
    for (const attachment of ours) held.set(attachment.metadata.uid ?? "", keyOf(attachment));
  }

  return { violations, check };
}

function keyOf({ spec }: VolumeAttachment): string {
  return `vol-${spec.source.persistentVolumeName}@id-${spec.nodeName}`;
}

async function populate(world: AttacherWorld, mode = "ReadWriteMany"): Promise<void> {
  await world.createNode("n2");
  await world.createSecret("s1", { password: SECRET });
  for (const name of VOLUMES) {
    await world.createVolume(
      name,
      {
        accessModes: [mode],
        csi: {
          driver: DRIVER,
          volumeHandle: `vol-${name}`,
          controllerPublishSecretRef: { namespace: "default", name: "s1" },
        },
      },
      {},
    );
  }
}

/** What people and controllers do: an attachment comes or goes. */
async function act(world: AttacherWorld, random: Random): Promise<void> {
  const [volume, node] = [pick(random, VOLUMES), pick(random, NODES)];
  const name = `va-${volume}-${node}`;
  const existing = await world.attachment(name);
  if (existing === undefined) await world.createAttachment(name, { volume, node });
  else if (!existing.metadata.deletionTimestamp) await world.deleteAttachment(name);
}

test("whatever breaks and whenever it restarts: finalizer before publish, unpublish before release, it settles, secrets stay secret", async () => {
  await forSeeds(15, async (random, seed) => {
    let weather = NO_FAULTS;
    const world = await given({
      seed,
      network: () => weather,
      resyncMs: 60_000,
      driver: { listsPublishedNodes: chance(random, 0.5) },
      options: { workers: 1 + random.int(6), retryMaxMs: 20_000 },
    });
    await populate(world);
    const laws = watchLaws(world);
    world.start();
    weather = BAD_WEATHER;
    world.driver.trouble = () => (chance(random, 0.25) ? pick(random, TROUBLES) : undefined);
    for (let step = 0; step < 60; step++) {
      if (chance(random, 0.4)) await act(world, random);
      if (chance(random, 0.12)) {
        world.kill();
        world.start();
      }
      world.driver.delayMs = chance(random, 0.3) ? random.int(3_000) : 0;
      // Fine steps, so that the checker sees every state between two writes.
      for (let slice = 0; slice < 20; slice++) {
        await world.advance(random.int(100));
        laws.check();
      }
    }

    weather = NO_FAULTS;
    world.driver.trouble = () => undefined;
    world.driver.delayMs = 0;
    for (let round = 0; round < 100; round++) {
      await world.advance(2_000);
      laws.check();
    }

    expect(laws.violations).toEqual([]);
    await expectSettled(world);
    const told =
      JSON.stringify(world.log) + JSON.stringify((await world.client.list(volumeAttachments)).items);
    expect(told).not.toContain(SECRET);
  });
});

/** A driver that publishes wherever it is told to, and an attach/detach controller that asks for two nodes at once. */
test("at no moment is a single-node volume published on two nodes, whatever breaks; it settles where one attachment is left", async () => {
  await forSeeds(12, async (random, seed) => {
    let weather = NO_FAULTS;
    const world = await given({
      seed,
      network: () => weather,
      options: { workers: 2 + random.int(6), retryMaxMs: 5_000 },
    });
    await populate(world, pick(random, ["ReadWriteOnce", "ReadWriteOncePod"]));
    const { storages } = world.driver;
    watchPublishes({ storages, violate: (text) => world.violate(text) });
    world.start();
    weather = BAD_WEATHER;
    world.driver.trouble = () => (chance(random, 0.25) ? pick(random, TROUBLES) : undefined);
    for (let step = 0; step < 60; step++) {
      if (chance(random, 0.5)) await act(world, random);
      if (chance(random, 0.08)) {
        world.kill();
        world.start();
      }
      await world.advance(random.int(2_000));
    }

    weather = NO_FAULTS;
    world.driver.trouble = () => undefined;
    for (const volume of VOLUMES) {
      const all = world.attachmentsNow().filter(({ spec }) => spec.source.persistentVolumeName === volume);
      for (const { metadata } of all.slice(1)) await world.deleteAttachment(metadata.name ?? "");
    }
    await world.advance(120_000);

    expect(world.violations).toEqual([]);
    await expectSettled(world);
  });
});

async function expectSettled(world: AttacherWorld): Promise<void> {
  const { items } = await world.client.list(volumeAttachments);
  expect(items.filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
  const wanted = items.map(keyOf).sort();
  const published = [...world.driver.storages.volumes.values()].flatMap(({ handle, publishedOn }) =>
    [...publishedOn.keys()].map((node) => `${handle}@${node}`),
  );
  expect(published.sort()).toEqual(wanted);
  expect(items.map(({ status }) => status)).toEqual(items.map(() => ({ attached: true })));
  expect((await world.client.list(persistentVolumes)).items).toHaveLength(VOLUMES.length);
}

/** One attach and one detach, and the process dies right when the n-th of their requests and calls leaves. */
test("killed at every request and call of an attach and a detach, it goes on where it was", async () => {
  for (const operation of ["attach", "detach"] as const) {
    for (let at = 1; at <= 6; at++) {
      for (const lost of [false, true]) {
        const world = await given();
        await populate(world);
        const laws = watchLaws(world);
        world.start();
        if (operation === "detach") {
          await world.createAttachment("va1", { volume: "pv1" });
          await world.settle();
          laws.check();
        }
        world.take();
        killAt(world, at, { lost });
        if (operation === "attach") await world.createAttachment("va1", { volume: "pv1" });
        else await world.deleteAttachment("va1");
        laws.check();
        for (let slice = 0; slice < 400; slice++) {
          await world.advance(5);
          laws.check();
        }
        world.start();
        await world.advance(30_000);
        laws.check();

        expect(laws.violations, `${operation}, killed at ${at}, carried out: ${!lost}`).toEqual([]);
        const attached = (await world.attachment("va1"))?.status?.attached;
        expect(attached, `${operation}, killed at ${at}`).toBe(operation === "attach" ? true : undefined);
        expect(world.driver.publishedOn("vol-pv1")).toEqual(operation === "attach" ? ["id-n1"] : []);
      }
    }
  }
});

/** Dies with its n-th line in the journal, before (`lost`) or after that was carried out. */
function killAt(world: AttacherWorld, at: number, { lost }: { lost: boolean }): void {
  const push = world.journal.push.bind(world.journal);
  let seen = 0;
  world.journal.push = (...lines: string[]) => {
    const length = push(...lines);
    seen += lines.length;
    if (seen !== at) return length;
    world.journal.push = push;
    if (lost) world.kill();
    else void Promise.resolve().then(() => world.kill());
    return length;
  };
}

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, expect, test } from "vitest";
import type { Random } from "../../src/base/random.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { freePort, startCluster, type Cluster, type Seen } from "../e2e/cluster.ts";
import { Running, scratch } from "../e2e/mooring.ts";
import {
  createStory,
  LISTS,
  UnexpectedAnswer,
  type Acknowledged,
  type Story,
} from "../e2e/server-stories.ts";
import { CrashWatch } from "../e2e/server-watch.ts";

/**
 * Kills the whole server, controllers and all, in the middle of what clients do to it, and starts it again on the same
 * directory. `MOORING_CRASH_ROUNDS=100 npm run test:e2e -- server-crash` is the long version, and `MOORING_SEED=N`
 * gives other stories and other moments; those moments are counted in answers, so that a seed means about the same
 * on a slow machine. See `store-crash.test.ts` for what a kill proves and what it does not.
 */
const ROUNDS = Number(process.env["MOORING_CRASH_ROUNDS"] ?? 4);
const SEED = Number(process.env["MOORING_SEED"] ?? 1);
const CLIENTS = 6;
/** Controllers need some tens of milliseconds; a hundred times that is stuck. */
const SETTLE_MS_MAX = 20_000;

const place = scratch();
afterAll(place.remove);
const dataDir = join(place.path, "data");

let running: Cluster | undefined;
afterEach(() => running?.kill());

test(
  `${ROUNDS} times killed (seed ${SEED}): nothing acknowledged is lost, watches go on, controllers finish`,
  { timeout: 120_000 + ROUNDS * 30_000 },
  async () => {
    const random = createSeededRandom(SEED);
    const port = await freePort();
    const [stories, told]: [Story[], Acknowledged[]] = [[], []];
    const watches = LISTS.map((path) => new CrashWatch(path));
    const totals = { killedAtStart: 0 };

    for (let round = 0; round < ROUNDS; round++) {
      if (round % 3 === 1) totals.killedAtStart += await killWhileStarting(random, port);
      const cluster = (running = await startCluster(dataDir, port));
      const before = Math.max(0, ...told.map(({ revision }) => revision));
      await settle(cluster, stories, `seed ${SEED}, start ${round}`);
      for (const watch of watches) await watch.begin(cluster);
      const from = told.length;
      stories.push(...(await tellUntilKilled(cluster, random.fork(`round-${round}`), round, told)));
      for (const watch of watches) await watch.ended();
      checkRevisions(told.slice(from), before);
    }

    const cluster = (running = await startCluster(dataDir, port));
    await settle(cluster, stories, `seed ${SEED}, the end`);
    for (const watch of watches) {
      await watch.begin(cluster);
      await watch.checkAgainst(cluster, told);
    }
    process.stdout.write(
      `killed ${ROUNDS} times: ${JSON.stringify({ ...totals, stories: stories.length, writes: told.length })}\n`,
    );
    expect(told.length).toBeGreaterThan(ROUNDS * 10);
  },
);

/** Anywhere between the first line of the program and the last of its start. */
async function killWhileStarting(random: Random, port: number): Promise<number> {
  const starting = new Running("apiserver", "--data-dir", dataDir, "--listen", `127.0.0.1:${port}`);
  await sleep(random.int(700));
  starting.kill("SIGKILL");
  await starting.exit();
  return 1;
}

/** Clients go from story to story; after some number of acknowledged writes the server is killed under them. */
async function tellUntilKilled(
  cluster: Cluster,
  random: Random,
  round: number,
  told: Acknowledged[],
): Promise<readonly Story[]> {
  const stories: Story[] = [];
  let left = 1 + random.int(random.int(3) === 0 ? 200 : 80);
  let killing: Promise<void> | undefined;
  const tell = (write: Acknowledged) => {
    told.push(write);
    // A moment later, not at an answer: the server should be caught at work.
    if (--left === 0) killing = sleep(random.int(30)).then(() => cluster.kill());
  };
  const client = async (number: number) => {
    for (let count = 0; killing === undefined; count++) {
      const story = createStory(random, `r${round}-c${number}-${count}`, tell);
      stories.push(story);
      await story.run(cluster).catch(expectDisconnect);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  await killing;
  return stories;
}

function expectDisconnect(error: unknown): void {
  if (error instanceof UnexpectedAnswer || !(error instanceof KubeError)) throw error;
}

/** Each once, and all after those of before the restart. */
function checkRevisions(told: readonly Acknowledged[], before: number): void {
  const revisions = told.map(({ revision }) => revision);
  expect(Math.min(Infinity, ...revisions)).toBeGreaterThan(before);
  expect(new Set(told.map(({ path, revision }) => `${revision} ${path}`)).size).toBe(new Set(revisions).size);
}

/** Waits until all is as the stories say; if that never comes, says what is not. */
async function settle(cluster: Cluster, stories: readonly Story[], when: string): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const world = await look(cluster);
    const problems = [...problemsOf(stories, world), ...strays(world)];
    if (problems.length === 0) return;
    if (performance.now() - startedAt > SETTLE_MS_MAX) {
      expect(problems, `${when}: not settled after ${SETTLE_MS_MAX} ms\n${cluster.process.stderr}`).toEqual(
        [],
      );
    }
    await sleep(50);
  }
}

async function look(cluster: Cluster): Promise<Map<string, Seen>> {
  const world = new Map<string, Seen>();
  for (const path of LISTS) {
    for (const object of (await cluster.list(path)).items) {
      const { namespace, name } = object.metadata;
      const plural = path.slice("/api/v1/".length);
      world.set(
        `/api/v1/${namespace === undefined ? "" : `namespaces/${namespace}/`}${plural}/${name}`,
        object,
      );
    }
  }
  return world;
}

function problemsOf(stories: readonly Story[], world: ReadonlyMap<string, Seen>): string[] {
  return stories.flatMap((story) => {
    const problem = story.problem(world);
    return problem === undefined ? [] : [`${story.name}: ${problem}`];
  });
}

/** What the garbage collector should have removed: all of its owners are gone. */
function strays(world: ReadonlyMap<string, Seen>): string[] {
  const uids = new Set([...world.values()].map(({ metadata }) => metadata.uid));
  return [...world]
    .filter(([, { metadata }]) => (metadata.ownerReferences?.length ?? 0) > 0)
    .filter(([, { metadata }]) => metadata.ownerReferences?.every(({ uid }) => !uids.has(uid)))
    .map(([path]) => `${path} has no owner left`);
}

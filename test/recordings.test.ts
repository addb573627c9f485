import { describe, expect, test } from "vitest";
import { createEngineControllers } from "../src/apiserver/controllers/engine-controllers.ts";
import { givenServer } from "../src/apiserver/scenario.testing.ts";
import { silentLogger } from "../src/base/log.ts";
import { createSeededRandom } from "../src/base/seeded-random.ts";
import { Bindings, differences, readRecording, type Step } from "./contract/recording.ts";
import { DELIBERATE, type Deliberate } from "./contract/recording-deltas.ts";

/**
 * Every step that was recorded from a real kube-apiserver, replayed on the embedded one in memory. What the
 * steps may differ in stands in `recording-deltas.ts`, a line each with its reason; everything else is a
 * failure, and so is a line that is no longer needed.
 */

/** Never compared: texts that print Go values, what only humans read, and what is not tracked by every write. */
const IGNORED = [
  /^\.message$/,
  /\.causes\[\d+\]\.message$/,
  /\.selfLink$/,
  /\.columnDefinitions\[\d+\]\.description$/,
];

const RECORDINGS = [
  "01-discovery",
  "02-create-defaults",
  "03-create-errors",
  "04-update-concurrency",
  "05-patch",
  "06-delete",
  "07-list",
  "08-watch",
  "09-tables",
  "10-validation",
  "11-subresources",
  "12-auth",
  "13-namespace-gc",
  "14-expired",
  "17-negotiation",
  "18-admission",
] as const;

for (const name of RECORDINGS) {
  describe(name, () => {
    test("answers as recorded, but for what is listed", async () => {
      const { unexpected, unneeded, steps } = await replay(name);

      expect(steps).toBeGreaterThan(0);
      expect(unexpected).toEqual([]);
      expect(unneeded).toEqual([]);
    });
  });
}

/** What /version said where the recording was made. */
const VERSION = {
  major: "",
  minor: "",
  gitVersion: "v0.0.0-master+890a139214b4de1f01543d15003b5bda71aae9c7",
  gitCommit: "890a139214b4de1f01543d15003b5bda71aae9c7",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "go1.19.8",
  compiler: "gc",
  platform: "linux/amd64",
};

type World = Awaited<ReturnType<typeof givenServer>>;

async function replay(name: string) {
  const world = await givenServer({ startRevision: 1_000, guarded: true, handler: { version: VERSION } });
  const bindings = new Bindings((await PRELUDES[name]?.(world)) ?? {}, () => String(world.store.revision));
  const stop = new AbortController();
  // The recordings of garbage collection were made with a controller manager; the others without.
  const controllers =
    name === "13-namespace-gc" ? createEngineControllers(engineDeps(world), { rootCa: "pem" }) : undefined;
  void controllers?.run(stop.signal);
  const listed = DELIBERATE[name] ?? [];
  const used = new Set<Deliberate>();
  const unexpected: string[] = [];
  const { steps } = readRecording(name);
  for (const [index, step] of steps.entries()) {
    // Steps were seconds apart; what is newest depends on it.
    await world.scheduler.runFor(1_100);
    await controllers?.idle();
    for (const problem of await replayStep(world, bindings, step)) {
      const reason = listed.find(
        (delta) => delta.steps.includes(index) && (delta.only?.test(problem) ?? true),
      );
      if (reason === undefined) unexpected.push(`${index} ${step.note ?? step.request.path}: ${problem}`);
      else used.add(reason);
    }
  }
  stop.abort();
  const unneeded = listed.filter((delta) => !used.has(delta)).map(({ why }) => why);
  return { unexpected, unneeded, steps: steps.length };
}

function engineDeps({ store, clock }: World) {
  return { store, clock, random: createSeededRandom("controllers"), log: silentLogger };
}

async function replayStep(world: World, bindings: Bindings, step: Step): Promise<string[]> {
  if (step.response.events !== undefined) return replayWatch(world, bindings, step);
  const sent = await send(world, bindings, step);
  if (sent.headers["etag"] !== undefined) bindings.set("<ETAG>", sent.headers["etag"].replaceAll('"', ""));
  const token = (sent.body as { status?: { token?: string } } | undefined)?.status?.token;
  if (token !== undefined) bindings.set("<TOKEN>", token);
  const { status, body: expected } = step.response;
  if (sent.status !== status) return [`${status}, got ${sent.status} ${sent.text.slice(0, 300)}`];
  if (expected === undefined || expected === null || expected === "<omitted>") return [];
  const actual: unknown = typeof expected === "string" ? sent.text : sent.body;
  return differences(
    step.setup ? onlyBound(expected) : expected,
    byName(expected, actual),
    bindings,
    isIgnored,
  );
}

/** A request may wait for a revision; virtual time passes meanwhile. */
async function send(world: World, bindings: Bindings, { request }: Step) {
  const { method, path, body, headers, as } = request;
  const authorization =
    as === undefined || as === "anonymous" ? {} : { authorization: `Bearer ${tokenOf(as, bindings)}` };
  const options = {
    headers: { "user-agent": "golden/1.0", ...filled(headers, bindings), ...authorization },
    ...(as === undefined ? {} : { user: null }),
  };
  let answered = false;
  const sending = world
    .send(method, bindings.fillPath(path), bindings.fillAll(body), options)
    .finally(() => (answered = true));
  await world.scheduler.runUntilTrue(() => answered, { withinMs: 10_000 });
  return sending;
}

/** `bobtoken` is a token itself; a service account's is the last that was made. */
function tokenOf(as: string, bindings: Bindings): string {
  return as.startsWith("serviceaccount") ? bindings.fill("<TOKEN>") : as;
}

async function replayWatch(world: World, bindings: Bindings, step: Step): Promise<string[]> {
  const opened = await world
    .watch(bindings.fillPath(step.request.path), filled(step.request.headers, bindings))
    .catch((error: unknown) => String(error));
  if (typeof opened === "string") return [opened];
  const watch = opened;
  await watch.events();
  const problems: string[] = [];
  for (const during of step.during ?? []) problems.push(...(await replayStep(world, bindings, during)));
  if (step.response.serverClosed === true) await world.scheduler.runFor(30_000);
  const events = await watch.events();
  problems.push(...differences(step.response.events, events, bindings, isIgnored));
  watch.hangUp();
  return problems;
}

/** State that a recording takes for granted: made before it began. */
const PRELUDES: Readonly<Record<string, (world: World) => Promise<Record<string, string>>>> = {
  "07-list": async () => ({ "<RV-11>": "999999999" }),
  "08-watch": async () => ({ "<RV-15>": "999999999" }),
  "14-expired": async ({ ok, store }) => {
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "g14" } });
    for (let index = 0; index < 5; index++) {
      await ok("POST", "/api/v1/namespaces/g14/configmaps", { metadata: { name: `c${index}` } });
    }
    const page = await ok("GET", "/api/v1/namespaces/g14/configmaps?limit=2");
    await ok("POST", "/api/v1/namespaces/t/configmaps", { metadata: { name: "later" } });
    await store.compact(store.revision);
    const { resourceVersion = "", continue: token = "" } = page.metadata as {
      resourceVersion?: string;
      continue?: string;
    };
    return { "<RV-1>": resourceVersion, "<CONTINUE-1>": token };
  },
};

/** Lists read from the real server's cache came in no order; ours are by name. */
function byName(expected: unknown, actual: unknown): unknown {
  const wanted = (expected as { items?: { metadata?: { name?: string } }[] } | null)?.items;
  const got = (actual as { items?: { metadata?: { name?: string } }[] } | null)?.items;
  if (wanted === undefined || got === undefined || wanted.length !== got.length) return actual;
  const rest = [...got];
  const items = wanted.map(({ metadata }) => {
    const index = rest.findIndex((item) => item.metadata?.name === metadata?.name);
    return rest.splice(Math.max(index, 0), 1)[0];
  });
  return { ...(actual as object), items };
}

/** Of a step that only prepares: what later steps refer to. */
function onlyBound(body: unknown): unknown {
  const { metadata } = body as { metadata?: Record<string, unknown> };
  return { metadata: { uid: metadata?.["uid"], resourceVersion: metadata?.["resourceVersion"] } };
}

function isIgnored(path: string): boolean {
  return IGNORED.some((pattern) => pattern.test(path));
}

function filled(headers: Readonly<Record<string, string>>, bindings: Bindings): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), bindings.fill(value)]),
  );
}

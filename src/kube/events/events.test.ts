import { expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { pods } from "../api/pod.ts";
import type { KubeEvent } from "../api/event.ts";
import type { Client } from "../client/client.ts";
import { KubeError } from "../errors.ts";
import { createEventRecorder, referenceTo } from "./events.ts";

type Answer = "ok" | "hang" | KubeError;

/** A server of events whose answers a test decides; `ok` where it does not. */
function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const metrics = createPromMetrics();
  const lines: string[] = [];
  const calls: { verb: string; atMs: number; body: Partial<KubeEvent>; name: string | undefined }[] = [];
  const answers: Answer[] = [];
  const answer = async (signal: AbortSignal | undefined): Promise<never> => {
    const next = answers.shift() ?? "ok";
    if (next === "hang") await clock.sleep(1e9, signal);
    if (next instanceof KubeError) throw next;
    return undefined as never;
  };
  const client: Pick<Client, "create" | "patch"> = {
    create: (_resource, object, options) => {
      calls.push({
        verb: "create",
        atMs: clock.now(),
        body: object as Partial<KubeEvent>,
        name: object.metadata.name,
      });
      return answer(options?.signal);
    },
    patch: (_resource, ref, patch, options) => {
      const body = (patch as { value: Partial<KubeEvent> }).value;
      calls.push({ verb: `patch ${patch.type}`, atMs: clock.now(), body, name: ref.name });
      return answer(options?.signal);
    },
  };
  const log = createLogger((_level, message) => lines.push(message));
  const recorder = createEventRecorder(
    { client, clock, random: createSeededRandom(2), log, metrics },
    { component: "attachdetach-controller", host: "h" },
  );
  const stop = new AbortController();
  const world = { scheduler, metrics, lines, calls, answers, recorder, stop, ended: false };
  const run = () => void recorder.run(stop.signal).then(() => (world.ended = true));
  const say = (message: string, name = "web") =>
    recorder.record({
      ref: referenceTo(pods, {
        metadata: { name, namespace: "ns", uid: "u", resourceVersion: "5" },
        spec: { containers: [] },
      }),
      type: "Warning",
      reason: "FailedAttachVolume",
      message,
    });
  return Object.assign(world, { run, say });
}

test("an event is written as client-go writes it", async () => {
  const { scheduler, calls, run, say } = given();
  run();

  say("no such disk");
  await scheduler.runFor(1);

  expect(calls).toHaveLength(1);
  expect(calls[0]?.body).toEqual({
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: expect.stringMatching(/^web\.[0-9a-f]{16}$/), namespace: "ns" },
    involvedObject: {
      apiVersion: "v1",
      kind: "Pod",
      namespace: "ns",
      name: "web",
      uid: "u",
      resourceVersion: "5",
    },
    type: "Warning",
    reason: "FailedAttachVolume",
    message: "no such disk",
    source: { component: "attachdetach-controller", host: "h" },
    reportingComponent: "attachdetach-controller",
    reportingInstance: "h",
    firstTimestamp: "2026-01-01T00:00:00Z",
    lastTimestamp: "2026-01-01T00:00:00Z",
    count: 1,
  });
});

test("the same again is a patch of count, time and message; where the event is gone it is created with its count", async () => {
  const { scheduler, calls, answers, run, say } = given();
  run();
  say("x");
  await scheduler.runFor(2_000);
  answers.push("ok", new KubeError("NotFound", "gone"));

  say("x");
  await scheduler.runFor(1);
  say("x");
  await scheduler.runFor(1);

  expect(calls.map(({ verb }) => verb)).toEqual(["create", "patch merge", "patch merge", "create"]);
  expect(calls[1]?.body).toEqual({ count: 2, lastTimestamp: "2026-01-01T00:00:02Z", message: "x" });
  expect(calls[3]?.body).toMatchObject({ count: 3, firstTimestamp: "2026-01-01T00:00:00Z" });
  expect(new Set(calls.map(({ name }) => name)).size).toBe(1);
});

test("what repeats itself before it is sent is sent once, with its count", async () => {
  const { scheduler, calls, run, say } = given();
  for (let index = 0; index < 5; index++) say("x");

  run();
  await scheduler.runFor(1);

  expect(calls).toMatchObject([{ verb: "create", body: { count: 5 } }]);
});

test("an event about a cluster-scoped object lives in the namespace default; credentials in its text are taken out", async () => {
  const { scheduler, calls, recorder, run } = given();
  run();

  const message = "dial https://user:hunter2@backend failed";
  recorder.record({ ref: { kind: "Node", name: "n" }, type: "Normal", reason: "R", message });
  await scheduler.runFor(1);

  expect(calls[0]?.body.metadata?.namespace).toBe("default");
  expect(calls[0]?.body.message).toBe("dial https://user:[redacted]@backend failed");
});

test("a server that cannot be reached is tried for an hour with growing pauses; then the event is dropped and counted", async () => {
  const { scheduler, calls, answers, metrics, lines, run, say } = given();
  answers.push(...Array.from({ length: 1_000 }, () => new KubeError("Unreachable", "down")));
  run();

  say("x");
  await scheduler.runFor(70 * 60_000);

  const gaps = calls.slice(1).map(({ atMs }, index) => atMs - calls[index]!.atMs);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(45_000);
  expect(calls.length).toBeLessThan(150);
  expect(calls.at(-1)!.atMs).toBeGreaterThan(59 * 60_000);
  expect(await metrics.render()).toContain('mooring_events_dropped_total{reason="unreachable"} 1\n');
  expect(lines).toEqual(["events delayed: cannot write, tried again", "events dropped: cannot write"]);
});

test("an event that fails goes behind the others, and is sent as what it has become meanwhile", async () => {
  const { scheduler, calls, answers, run, say } = given();
  answers.push(new KubeError("TooManyRequests", "later", { retryAfterMs: 3_000 }));
  run();
  say("x", "first");
  await scheduler.runFor(100);
  say("x", "second");
  say("x", "first");
  await scheduler.runFor(2_500);
  expect(calls).toHaveLength(1);

  await scheduler.runFor(10_000);
  expect(calls.slice(1)).toMatchObject([
    { verb: "create", body: { involvedObject: { name: "first" }, count: 2 } },
    { verb: "create", body: { involvedObject: { name: "second" }, count: 1 } },
  ]);
});

for (const [share, events] of [
  [0.5, 300],
  [0.9, 100],
] as const)
  test(`with ${share * 100}% answered 429 all of ${events} events are told, one request at a time, none dropped`, async () => {
    const { scheduler, calls, metrics, run, say, answers } = given();
    const random = createSeededRandom(7);
    const script = Array.from({ length: 5_000 }, (): Answer =>
      random.float() < share ? new KubeError("TooManyRequests", "later", { retryAfterMs: 1_000 }) : "ok",
    );
    answers.push(...script);
    for (let index = 0; index < events; index++) say("x", `pod-${index}`);
    run();
    await scheduler.runFor(40 * 60_000);

    const told = calls.filter((_, index) => script[index] === "ok");
    expect(told.map(({ body }) => body.involvedObject?.name).sort()).toHaveLength(events);
    expect(new Set(told.map(({ name }) => name)).size).toBe(events);
    // What the server asked for is kept: no second request within its second.
    const gaps = calls.slice(1).map(({ atMs }, index) => [script[index], atMs - calls[index]!.atMs] as const);
    expect(gaps.filter(([answer, ms]) => answer !== "ok" && ms < 1_000)).toEqual([]);
    expect(await metrics.render()).not.toContain("mooring_events_dropped_total{");
  });

test("what the server refuses is not tried again, and does not hold up the next", async () => {
  const { scheduler, calls, answers, metrics, run, say } = given();
  answers.push(new KubeError("Forbidden", "namespace is being terminated"));
  run();

  say("x");
  say("y");
  await scheduler.runFor(1);

  expect(calls.map(({ body }) => body.message)).toEqual(["x", "y"]);
  expect(await metrics.render()).toContain('mooring_events_dropped_total{reason="rejected"} 1\n');
});

test("a create whose answer was lost and that then exists has arrived", async () => {
  const { scheduler, calls, answers, metrics, run, say } = given();
  answers.push(new KubeError("ConnectionLost", "reset"), new KubeError("AlreadyExists", "it is there"));
  run();

  say("x");
  await scheduler.runFor(60_000);

  expect(calls).toHaveLength(2);
  expect(await metrics.render()).not.toContain("mooring_events_dropped_total{");
});

test("1,000 wait at most; more are counted, logged once, and nobody waits or throws", async () => {
  const { metrics, lines, say } = given();

  for (let index = 0; index < 1_200; index++) say("x", `pod-${index}`);

  expect(await metrics.render()).toContain('mooring_events_dropped_total{reason="queue-full"} 200\n');
  expect(lines).toEqual(["events dropped: queue full"]);
});

test("on a stop what waits is still sent, for 5 s at most", async () => {
  const { scheduler, calls, answers, metrics, run, say, stop } = given();
  answers.push("ok", "hang");
  for (const name of ["a", "b", "c"]) say("x", name);
  run();
  stop.abort();

  await scheduler.runFor(6_000);

  expect(calls.map(({ body }) => body.involvedObject?.name)).toEqual(["a", "b"]);
  expect(await metrics.render()).toContain('mooring_events_dropped_total{reason="stopped"} 1\n');
});

test("a stop with nothing left to send ends at once", async () => {
  const world = given();
  world.run();
  await world.scheduler.runFor(1_000);

  world.stop.abort();
  await world.scheduler.runFor(1);

  expect(world.ended).toBe(true);
});

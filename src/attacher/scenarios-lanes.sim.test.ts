import { describe, expect, test } from "vitest";
import { given, type AttacherWorld } from "./stage.testing.ts";

/** So many attachments of one operation, each on a node of its own unless told otherwise. */
async function givenMany(
  world: AttacherWorld,
  what: "attach" | "detach",
  count: number,
  nodeOf = (n: number) => `${what}-n${n}`,
): Promise<void> {
  const nodes = new Set<string>();
  for (let n = 0; n < count; n++) {
    const [node, name] = [nodeOf(n), `${what}-${n}`];
    if (!nodes.has(node)) await world.createNode(node);
    nodes.add(node);
    await world.createVolume(name);
    if (what === "attach") await world.createAttachment(name, { volume: name, node });
    else await world.createAttached(name, { volume: name, node });
    if (what === "detach") await world.deleteAttachment(name);
  }
}

const attachedCount = (world: AttacherWorld) =>
  world
    .attachmentsNow()
    .filter(({ metadata, status }) => metadata.name?.startsWith("attach-") && status?.attached).length;

/** Until all are attached, with a driver that takes 100 ms. */
async function attachAll(world: AttacherWorld, count: number): Promise<number> {
  const startedMs = world.scheduler.nowMs;
  const done = await world.scheduler.runUntilTrue(() => attachedCount(world) === count, {
    withinMs: 600_000,
  });
  expect(done).toBe(true);
  return world.scheduler.nowMs - startedMs;
}

describe("lanes", () => {
  test("W5: attaches beside 200 detaches that hang take at most twice as long as alone", async () => {
    const alone = await given();
    alone.driver.delayMs = 100;
    await givenMany(alone, "attach", 40);
    alone.start();
    const aloneMs = await attachAll(alone, 40);

    const world = await given();
    world.driver.delayMs = 100;
    world.driver.trouble = (call) => (call === "unpublish" ? { kind: "hang" } : undefined);
    await givenMany(world, "detach", 200);
    await givenMany(world, "attach", 40);
    world.start();
    const besideMs = await attachAll(world, 40);

    expect(besideMs).toBeLessThanOrEqual(2 * aloneMs);
  });

  test("detaches beside attaches that hang go on as well", async () => {
    const world = await given();
    world.driver.trouble = (call) => (call === "publish" ? { kind: "hang" } : undefined);
    await givenMany(world, "attach", 100);
    await givenMany(world, "detach", 20);
    world.start();
    await world.advance(2_000);

    expect(world.attachmentsNow().filter(({ metadata }) => metadata.name?.startsWith("detach-"))).toEqual([]);
  });

  test("one node that answers nothing does not stop the others", async () => {
    const world = await given();
    world.driver.trouble = (_call, volume) => (/-\d*[02468]$/.test(volume) ? { kind: "hang" } : undefined);
    await givenMany(world, "attach", 60, (n) => (n % 2 === 0 ? "bad" : `n-${n}`));
    world.start();
    await world.advance(2_000);

    expect(attachedCount(world)).toBe(30);
  });

  test("W6: what waits is counted, dated and told once a minute has passed", async () => {
    const world = await given();
    world.driver.trouble = () => ({ kind: "error", code: 13, text: "no" });
    await givenMany(world, "attach", 3);
    world.start();
    await world.advance(50_000);
    expect(await world.metric("mooring_attacher_backlog", 'operation="attach"')).toBe(3);
    expect(
      await world.metric("csi_attacher_pending_operations", 'operation="attach"', 'state="delayed"'),
    ).toBe(3);
    expect(await world.metric("mooring_attacher_backlog_eta_seconds", 'operation="attach"')).toBe(Infinity);
    expect(world.log.filter(({ text }) => text.startsWith("attachments wait"))).toEqual([]);

    await world.advance(20_000);
    const lines = world.log.filter(({ text }) => text.startsWith("attachments wait"));
    expect(lines).toHaveLength(1);
    expect(lines[0]!.text).toContain('"waiting":3');

    world.driver.trouble = () => undefined;
    await world.advance(300_000);
    expect(await world.metric("mooring_attacher_backlog")).toBe(0);
    expect(await world.metric("mooring_attacher_backlog_oldest_seconds")).toBe(0);
  });

  test("calls are measured under upstream's name", async () => {
    const world = await given();
    world.driver.fail("publish", 8, "full");
    await givenMany(world, "attach", 1);
    world.start();
    await world.advance(3_000);

    const publish = 'method_name="/csi.v1.Controller/ControllerPublishVolume"';
    const count = "csi_sidecar_operations_seconds_count";
    expect(await world.metric(count, publish, 'grpc_status_code="ResourceExhausted"')).toBe(1);
    expect(await world.metric(count, publish, 'grpc_status_code="OK"')).toBe(1);
  });
});

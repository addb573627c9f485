import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { nodes } from "../kube/api/node.ts";
import { createClient } from "../kube/client/api-client.ts";
import { KubeError } from "../kube/errors.ts";
import type { Transport, TransportRequest } from "../kube/transport/transport.ts";
import { startCore } from "../sim/harness.ts";
import { createInUseList } from "./in-use.ts";

/** A list for node n1 over a network that the test can break. */
async function givenList() {
  const { scheduler, clock, random, server, client: admin } = await startCore();
  const { transport } = server;
  await admin.create(nodes, { metadata: { name: "n1" } });
  /** Taken off the wire: they arrive when the test says so. */
  const late: TransportRequest[] = [];
  const network = { loses: false };
  const wire: Transport = {
    ...transport,
    request(call) {
      if (!network.loses || call.method !== "PATCH") return transport.request(call);
      const { signal: _, ...copy } = call;
      late.push(copy);
      return Promise.reject(new KubeError("ConnectionLost", "no answer"));
    },
  };
  const intended = new Set<string>();
  const asked: string[] = [];
  const state = { strays: false };
  const client = createClient({ transport: wire, clock, random });
  const list = createInUseList(
    {
      client,
      clock,
      log: silentLogger,
      belonging(name) {
        asked.push(name);
        return intended.has(name) ? "in-use" : "not-in-use";
      },
      earlier: () => ({ names: new Set(["earlier"]), strays: state.strays }),
      ready: () => true,
      onChange: () => undefined,
    },
    { nodeName: "n1" },
  );
  list.seeNode(await admin.get(nodes, { name: "n1" }));
  const stop = new AbortController();
  void list.run(stop.signal);
  return {
    list,
    network,
    state,
    asked,
    set(name: string, isIn: boolean) {
      if (isIn) intended.add(name);
      else intended.delete(name);
      list.touch(name);
      list.changed();
    },
    stop,
    admin,
    arrive: () => Promise.all(late.splice(0).map((call) => transport.request(call))),
    inUse: async () => (await admin.get(nodes, { name: "n1" })).status?.volumesInUse ?? [],
    advance: (ms: number) => scheduler.runFor(ms),
  };
}

test("a list whose answer was lost takes nothing off when it arrives after a newer one", async () => {
  const world = await givenList();
  world.network.loses = true;
  world.set("a", true);
  await world.advance(100);
  world.network.loses = false;
  world.set("b", true);
  await world.advance(60_000);
  expect(await world.inUse()).toEqual(["a", "b"]);

  const answers = await world.arrive();

  expect(answers.map(({ status }) => status)).toContain(409);
  expect(await world.inUse()).toEqual(["a", "b"]);
  world.stop.abort();
});

test("where somebody else wrote the node meanwhile, the list is made again from what is there, at once", async () => {
  const world = await givenList();
  const value = { status: { volumesAttached: [{ name: "x", devicePath: "" }] } };
  await world.admin.patch(nodes, { name: "n1" }, { type: "merge", value }, { subresource: "status" });

  world.set("a", true);
  await world.advance(200);

  expect(await world.inUse()).toEqual(["a"]);
  expect(world.list.isReported("a")).toBe(true);
  expect(world.list.attachedPath("x")).toBe("");
  world.stop.abort();
});

test("with 500 volumes on the list, a change of one asks about that one", async () => {
  const world = await givenList();
  for (let n = 0; n < 500; n++) world.set(`volume-${n}`, true);
  await world.advance(200);
  expect(await world.inUse()).toHaveLength(500);
  world.asked.splice(0);

  world.set("volume-7", false);
  await world.advance(200);

  expect(await world.inUse()).toHaveLength(499);
  // Once for the change, once for the node that no longer lists it.
  expect(world.asked).toEqual(["volume-7", "volume-7"]);
  world.stop.abort();
});

test("a volume that somebody else takes off the list is put on it again", async () => {
  const world = await givenList();
  world.set("a", true);
  await world.advance(200);
  const patch = { type: "merge", value: { status: { volumesInUse: null } } } as const;

  world.list.seeNode(await world.admin.patch(nodes, { name: "n1" }, patch, { subresource: "status" }));
  await world.advance(200);

  expect(await world.inUse()).toEqual(["a"]);
  world.stop.abort();
});

test("a Node made again under its name gets the list at once", async () => {
  const world = await givenList();
  world.set("a", true);
  await world.advance(200);

  await world.admin.delete(nodes, { name: "n1" });
  world.list.seeNode(undefined);
  await world.advance(60_000);
  world.list.seeNode(await world.admin.create(nodes, { metadata: { name: "n1" } }));
  await world.advance(200);

  expect(await world.inUse()).toEqual(["a"]);
  world.stop.abort();
});

test("a writer that takes it off for ever is not fought with: once at once, then ever more seldom, and news are not held up", async () => {
  const world = await givenList();
  world.set("a", true);
  await world.advance(200);
  const patch = { type: "merge", value: { status: { volumesInUse: null } } } as const;
  let taken = 0;

  for (let tick = 0; tick < 600; tick++) {
    if ((await world.inUse()).length > 0) {
      taken++;
      world.list.seeNode(await world.admin.patch(nodes, { name: "n1" }, patch, { subresource: "status" }));
    }
    await world.advance(1_000);
  }
  expect(taken).toBeGreaterThan(10);
  expect(taken).toBeLessThan(40);

  world.set("b", true);
  await world.advance(200);
  expect(await world.inUse()).toEqual(["a", "b"]);
  world.stop.abort();
});

test("while something here is unknown, what the list said before stays on it", async () => {
  const world = await givenList();
  world.state.strays = true;
  world.set("a", true);
  await world.advance(200);
  expect(await world.inUse()).toEqual(["a", "earlier"]);

  world.state.strays = false;
  world.list.changed();
  await world.advance(200);

  expect(await world.inUse()).toEqual(["a"]);
  world.stop.abort();
});

test("what a lost list takes off is not reported while that list may still arrive, though a later one was answered", async () => {
  const world = await givenList();
  world.set("a", true);
  await world.advance(100);
  expect(world.list.isReported("a")).toBe(true);
  world.network.loses = true;
  world.set("a", false);
  await world.advance(100);
  world.network.loses = false;

  // Wanted again: the list says what the server has, so writing it changes nothing, and the lost one stays welcome.
  world.set("a", true);
  await world.advance(10_000);
  expect(await world.inUse()).toEqual(["a"]);
  expect(world.list.isReported("a")).toBe(false);

  await world.arrive();
  expect(await world.inUse()).toEqual([]);
  world.list.seeNode(await world.admin.get(nodes, { name: "n1" }));
  await world.advance(100);
  expect(await world.inUse()).toEqual(["a"]);
  expect(world.list.isReported("a")).toBe(true);
  world.stop.abort();
});

test("one that never arrives is no longer reckoned with after 70 s, or once anybody has written the node", async () => {
  for (const somebodyWrites of [false, true]) {
    const world = await givenList();
    world.set("a", true);
    await world.advance(100);
    world.network.loses = true;
    world.set("a", false);
    await world.advance(100);
    world.network.loses = false;
    world.set("a", true);
    await world.advance(5_000);
    expect(world.list.isReported("a")).toBe(false);

    if (somebodyWrites) {
      const value = { status: { volumesAttached: [{ name: "x", devicePath: "" }] } };
      const patch = { type: "merge", value } as const;
      world.list.seeNode(await world.admin.patch(nodes, { name: "n1" }, patch, { subresource: "status" }));
    } else await world.advance(70_000);

    expect(world.list.isReported("a")).toBe(true);
    world.stop.abort();
  }
});

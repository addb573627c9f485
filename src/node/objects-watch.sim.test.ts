import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { configMaps } from "../kube/api/config-map.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Handler } from "../kube/handler.ts";
import type { Transport } from "../kube/transport/transport.ts";
import { startCore } from "../sim/harness.ts";
import { failure, ignoresStreamingLists, refusesStreamingLists } from "../sim/other-servers.ts";
import { createObjectWatches } from "./objects-watch.ts";

const ref = (name: string) => ({ namespace: "default", name });

async function givenWatches({ behaves }: { behaves?: (handler: Handler) => Handler } = {}) {
  const { scheduler, clock, random, server, client: admin } = await startCore(1, { behaves });
  const { transport } = server;
  const asked: string[] = [];
  const note = (path: string) => {
    const kind = path.includes("sendInitialEvents") ? "stream" : path.includes("watch=") ? "watch" : "read";
    asked.push(`${kind} ${/metadata.name%3D([^&]*)/.exec(path)?.[1] ?? path}`);
  };
  const wire: Transport = {
    ...transport,
    request: (request) => (note(request.path), transport.request(request)),
    stream: (request) => (note(request.path), transport.stream(request)),
  };
  const client = createClient({ transport: wire, clock, random });
  const changes: string[] = [];
  const watches = createObjectWatches({ client, clock, random, log: silentLogger }, (_, { name }) =>
    changes.push(name),
  );
  const stop = new AbortController();
  const done = watches.run(stop.signal);
  return {
    watches,
    asked,
    changes,
    admin,
    create: (name: string) => admin.create(configMaps, { metadata: ref(name), data: { a: "1" } }),
    see: (name: string) => watches.see(configMaps, ref(name)),
    follow: (name: string, urgent = false) => watches.follow(configMaps, ref(name), { urgent }),
    advance: (ms: number) => scheduler.runFor(ms),
    async end() {
      stop.abort(new Error("over"));
      await scheduler.runFor(1_000);
      await done;
    },
  };
}

test("one request an object: its first answer and every change come on it", async () => {
  const world = await givenWatches();
  await world.create("here");
  world.follow("here");
  world.follow("missing");
  await world.advance(10);
  expect(world.see("here")).toMatchObject({ kind: "present", object: { data: { a: "1" } } });
  expect(world.see("missing")).toEqual({ kind: "absent" });

  await world.admin.patch(configMaps, ref("here"), { type: "merge", value: { data: { a: "2" } } });
  await world.create("missing");
  await world.advance(10);
  await world.admin.delete(configMaps, ref("here"));
  await world.advance(10);

  expect(world.see("here")).toEqual({ kind: "absent" });
  expect(world.see("missing")).toMatchObject({ kind: "present" });
  expect(world.changes).toEqual(["here", "missing", "here", "missing", "here"]);
  expect(world.asked).toEqual(["stream here", "stream missing"]);
  await world.end();
});

test("what a pod waits for is asked for before 100 objects that are only looked over", async () => {
  const world = await givenWatches();
  for (let n = 0; n < 100; n++) world.follow(`old-${n}`);
  world.follow("old-90", true);
  world.follow("new", true);

  await world.advance(10);

  // Sixteen were on their way already.
  expect(world.asked.slice(16, 18).sort()).toEqual(["stream new", "stream old-90"]);
  expect(world.asked).toHaveLength(101);
  await world.end();
});

test("a server without streaming lists says so once for all objects; then it is a list and a watch each", async () => {
  const world = await givenWatches({ behaves: refusesStreamingLists });
  await world.create("a");
  world.follow("a");
  await world.advance(10);
  world.follow("b");
  await world.advance(10);

  expect(world.see("a")).toMatchObject({ kind: "present" });
  expect(world.see("b")).toEqual({ kind: "absent" });
  expect(world.asked).toEqual(["stream a", "read a", "watch a", "read b", "watch b"]);
  await world.end();
});

test("behind a proxy that overlooks what it was asked, an object that is there is seen at once all the same", async () => {
  const world = await givenWatches({ behaves: ignoresStreamingLists });
  await world.create("a");
  world.follow("a");

  await world.advance(10);

  expect(world.see("a")).toMatchObject({ kind: "present" });
  await world.end();
});

test("while the server refuses, its words are known; when it no longer does, the object comes by itself", async () => {
  let refuses = false;
  const world = await givenWatches({
    behaves: (handler) => async (request) => (refuses ? failure(403, "Forbidden") : handler(request)),
  });
  await world.create("a");
  refuses = true;
  world.follow("a");
  await world.advance(10);
  expect(world.see("a")).toMatchObject({ kind: "failed", error: { code: "Forbidden" } });

  refuses = false;
  await world.advance(20_000);

  expect(world.see("a")).toMatchObject({ kind: "present" });
  await world.end();
});

test("an object that nobody follows any more is forgotten, and its watch ends", async () => {
  const world = await givenWatches();
  await world.create("a");
  const [one, two] = [world.follow("a"), world.follow("a")];
  await world.advance(10);

  one();
  one();
  expect(world.see("a")).toMatchObject({ kind: "present" });
  two();

  expect(world.see("a")).toEqual({ kind: "loading" });
  await world.admin.delete(configMaps, ref("a"));
  await world.advance(10);
  expect(world.changes).toEqual(["a"]);
  await world.end();
});

test("who waits for the first answer of an object that nobody follows any more reads it from the server", async () => {
  const world = await givenWatches();
  await world.create("a");
  const release = world.follow("a");
  const reading = world.watches.read(configMaps, ref("a"), new AbortController().signal);

  release();
  await world.advance(10);

  expect(await reading).toMatchObject({ data: { a: "1" } });
  await world.end();
});

import { describe, expect, test } from "vitest";
import { givenServer } from "./scenario.testing.ts";

const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";
const MERGE = { type: "application/merge-patch+json" };

async function givenWatch(query: string, options?: Parameters<typeof givenServer>[0]) {
  const server = await givenServer(options);
  const { metadata } = await server.ok("GET", CONFIG_MAPS);
  const watch = await server.watch(
    `${CONFIG_MAPS}?watch=true&${query.replace("NOW", metadata.resourceVersion ?? "")}`,
  );
  return { ...server, reader: watch, start: Number(metadata.resourceVersion) };
}

describe("events", () => {
  test("from the list's version on: created, changed, finalizer, deleted, released; the no-op in between is silent", async () => {
    const { ok, reader, start } = await givenWatch("resourceVersion=NOW");

    await ok("POST", CONFIG_MAPS, { metadata: { name: "x" } });
    await ok("PATCH", `${CONFIG_MAPS}/x`, { data: { k: "v" } }, MERGE);
    await ok("PATCH", `${CONFIG_MAPS}/x`, { data: { k: "v" } }, MERGE);
    await ok("PATCH", `${CONFIG_MAPS}/x`, { metadata: { finalizers: ["ex.io/f"] } }, MERGE);
    await ok("DELETE", `${CONFIG_MAPS}/x`);
    await ok("PATCH", `${CONFIG_MAPS}/x`, { metadata: { finalizers: null } }, MERGE);

    expect(await reader.lines()).toEqual([
      `ADDED x@${start + 1}`,
      `MODIFIED x@${start + 2}`,
      `MODIFIED x@${start + 3}`,
      `MODIFIED x@${start + 4}`,
      `DELETED x@${start + 5}`,
    ]);
    const deleted = (await reader.events()).at(-1)?.object;
    expect(deleted).toMatchObject({
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: { finalizers: ["ex.io/f"] },
    });
  });

  test("other namespaces are not seen; a watch across namespaces sees them", async () => {
    const { ok, watch, reader } = await givenWatch("resourceVersion=NOW");
    const everywhere = await watch("/api/v1/configmaps?watch=1");

    await ok("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "x" } });

    expect(await reader.lines()).toEqual([]);
    expect(await everywhere.lines()).toHaveLength(1);
  });

  test("through a selector, leaving it is DELETED with the old labels and the new version", async () => {
    const { ok, reader, start } = await givenWatch("resourceVersion=NOW&labelSelector=a%3Dyes");

    await ok("POST", CONFIG_MAPS, { metadata: { name: "s", labels: { a: "no" } } });
    await ok("PATCH", `${CONFIG_MAPS}/s`, { metadata: { labels: { a: "yes" } } }, MERGE);
    await ok("PATCH", `${CONFIG_MAPS}/s`, { data: { z: "1" } }, MERGE);
    await ok("PATCH", `${CONFIG_MAPS}/s`, { metadata: { labels: { a: null } } }, MERGE);
    await ok("DELETE", `${CONFIG_MAPS}/s`);

    expect(await reader.lines()).toEqual([
      `ADDED s@${start + 2}`,
      `MODIFIED s@${start + 3}`,
      `DELETED s@${start + 4}`,
    ]);
    expect((await reader.events())[2]?.object).toMatchObject({
      metadata: { labels: { a: "yes" } },
      data: { z: "1" },
    });
  });

  test("a watch that nobody reads any more holds nothing open", async () => {
    const { ok, reader, scheduler } = await givenWatch("resourceVersion=NOW");
    await reader.events();

    reader.hangUp();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "x" } });
    await scheduler.runFor(0);

    expect(await reader.lines()).toEqual([]);
    expect(reader.state).toBe("ended");
    // Its timers went with it: in ten hours nothing happens in this world.
    let looks = 0;
    await scheduler.runUntilTrue(() => ++looks > 1, { withinMs: 10 * 3_600_000 });
    expect(looks).toBe(1);
  });
});

describe("where a watch begins", () => {
  async function givenTwo(query: string) {
    const server = await givenServer();
    for (const name of ["a", "b"]) await server.ok("POST", CONFIG_MAPS, { metadata: { name } });
    const now = server.store.revision;
    const reader = await server.watch(`${CONFIG_MAPS}?watch=true&${query}`);
    await reader.events();
    await server.ok("POST", CONFIG_MAPS, { metadata: { name: "live" } });
    return { ...server, reader, now };
  }

  for (const query of ["", "resourceVersion=0"]) {
    test(`with ${query || "no version"}: the current state as ADDED, then live`, async () => {
      const { reader, now } = await givenTwo(query);

      expect(await reader.lines()).toEqual([`ADDED a@${now - 1}`, `ADDED b@${now}`, `ADDED live@${now + 1}`]);
    });
  }

  test("at a past version: everything since, replayed", async () => {
    const { reader, now } = await givenTwo("resourceVersion=8");

    expect(now).toBe(9);
    expect(await reader.lines()).toEqual(["ADDED b@9", "ADDED live@10"]);
  });

  test("in the future: silence until that version has passed", async () => {
    const { reader, ok } = await givenTwo("resourceVersion=10&allowWatchBookmarks=true");

    await ok("POST", CONFIG_MAPS, { metadata: { name: "next" } });

    expect(await reader.lines()).toEqual(["ADDED next@11"]);
  });

  test("with sendInitialEvents: the state, a bookmark that closes it, then live", async () => {
    const { reader, now } = await givenTwo(
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    );

    expect(await reader.lines()).toEqual([
      `ADDED a@${now - 1}`,
      `ADDED b@${now}`,
      `BOOKMARK -@${now}`,
      `ADDED live@${now + 1}`,
    ]);
    expect((await reader.events())[2]?.object.metadata.annotations).toEqual({
      "k8s.io/initial-events-end": "true",
    });
  });

  test("with sendInitialEvents and nothing there: the bookmark at once", async () => {
    const { watch, store } = await givenServer();

    const reader = await watch(
      `${CONFIG_MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0`,
    );

    expect(await reader.lines()).toEqual([`BOOKMARK -@${store.revision}`]);
  });

  test("with sendInitialEvents=false: from now on", async () => {
    const { reader, now } = await givenTwo("sendInitialEvents=false&resourceVersionMatch=NotOlderThan");

    expect(await reader.lines()).toEqual([`ADDED live@${now + 1}`]);
  });

  for (const query of [
    "sendInitialEvents=true",
    "sendInitialEvents=true&resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=x",
  ]) {
    test(`?watch=true&${query} is 422 on ListOptions`, async () => {
      const { send } = await givenServer();

      const { status, body } = await send("GET", `${CONFIG_MAPS}?watch=true&${query}`);

      expect([status, body.details.kind, body.details.causes[0]?.field]).toEqual([
        422,
        "ListOptions",
        "resourceVersionMatch",
      ]);
    });
  }

  test("at a compacted version: one ERROR with 410, then the end", async () => {
    const { watch, store, ok } = await givenServer();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } });
    await store.compact(store.revision);

    const reader = await watch(`${CONFIG_MAPS}?watch=true&resourceVersion=3`);

    const [event, ...more] = await reader.events();
    expect(event).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
    expect(more).toEqual([]);
    expect(reader.state).toBe("ended");
  });

  test("watch=true on a single object is ignored", async () => {
    const { ok } = await givenServer();

    expect(await ok("GET", "/api/v1/namespaces/t?watch=true")).toMatchObject({ kind: "Namespace" });
  });
});

describe("how a watch lives and ends", () => {
  test("an idle watch is told every minute how far the store is", async () => {
    const { ok, reader, scheduler, store } = await givenWatch("resourceVersion=NOW&allowWatchBookmarks=true");
    await ok("POST", "/api/v1/namespaces/t/secrets", { metadata: { name: "unrelated" } });

    await scheduler.runFor(65_000);

    expect(await reader.lines()).toEqual([`BOOKMARK -@${store.revision}`]);
  });

  test("without allowWatchBookmarks there are none", async () => {
    const { reader, scheduler } = await givenWatch("resourceVersion=NOW&timeoutSeconds=300");

    await scheduler.runFor(300_000);

    expect(await reader.events()).toEqual([]);
    expect(reader.state).toBe("ended");
  });

  test("timeoutSeconds ends it cleanly, with a bookmark to resume from", async () => {
    const { reader, scheduler, store } = await givenWatch(
      "resourceVersion=NOW&allowWatchBookmarks=true&timeoutSeconds=2",
    );
    await scheduler.runFor(1_999);
    expect(reader.state).toBe("open");

    await scheduler.runFor(1);

    expect(await reader.lines()).toEqual([`BOOKMARK -@${store.revision}`]);
    expect(reader.state).toBe("ended");
  });

  test("without a timeout it ends after 30 to 60 minutes", async () => {
    const { reader, scheduler } = await givenWatch("resourceVersion=NOW");
    await scheduler.runFor(30 * 60_000 - 1);
    expect(reader.state).toBe("open");

    await scheduler.runFor(30 * 60_000);

    expect(reader.state).toBe("ended");
  });

  test("a reader that stops reading loses its watch; memory and others are not affected", async () => {
    const { handler, ok, reader } = await givenWatch("resourceVersion=NOW", { queueEventsMax: 10 });
    const response = await handler({
      method: "GET",
      path: `${CONFIG_MAPS}?watch=true`,
      headers: {},
      body: "",
      signal: new AbortController().signal,
    });
    const slow = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "first" } });
    await slow.next();
    const second = slow.next();
    await ok("PATCH", `${CONFIG_MAPS}/first`, { data: { k: "wakes it" } }, MERGE);
    await second;

    for (let n = 0; n < 50; n++) await ok("POST", CONFIG_MAPS, { metadata: { name: `c${n}` } });

    const rest: string[] = [];
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) rest.push(next.value);
    expect(rest.join("").split("\n").length - 1).toBe(10);
    expect(await reader.lines()).toHaveLength(52);
  });
});

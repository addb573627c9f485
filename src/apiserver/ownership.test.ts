import { describe, expect, test } from "vitest";
import { givenServer } from "./scenario.testing.ts";

const MAP = "/api/v1/namespaces/t/configmaps/a";
const NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/t/events";
const CORE_EVENTS = "/api/v1/namespaces/t/events";
const MERGE = { type: "application/merge-patch+json" };
const APPLY = { type: "application/apply-patch+yaml" };

async function givenMap() {
  const server = await givenServer();
  const map = { apiVersion: "v1", kind: "ConfigMap", data: { k: "1" } };
  await server.ok("PATCH", `${MAP}?fieldManager=one`, map, APPLY);
  await server.ok("PATCH", `${MAP}?fieldManager=two`, { data: { l: "2" } }, MERGE);
  const managers = async () =>
    (await server.ok("GET", MAP)).metadata.managedFields?.map(({ manager }) => manager);
  return { ...server, managers };
}

describe("a list of managers that is empty, or has one empty entry, forgets them all", () => {
  for (const managedFields of [[], [{}]]) {
    for (const [what, method, body, type] of [
      ["a PUT", "PUT", { metadata: { name: "a", managedFields }, data: { k: "1" } }, "application/json"],
      ["a merge patch", "PATCH", { metadata: { managedFields } }, "application/merge-patch+json"],
      [
        "a strategic patch",
        "PATCH",
        { metadata: { managedFields: [{ $patch: "replace" }, ...managedFields] } },
        "application/strategic-merge-patch+json",
      ],
      [
        "a JSON patch",
        "PATCH",
        [{ op: "replace", path: "/metadata/managedFields", value: managedFields }],
        "application/json-patch+json",
      ],
    ] as const) {
      test(`${what} with ${JSON.stringify(managedFields)}`, async () => {
        const { ok, managers } = await givenMap();
        expect(await managers()).toEqual(["one", "two"]);

        await ok(method, `${MAP}?fieldManager=three`, body, { type });

        // As in the real server: nobody is recorded again before the next apply.
        expect(await managers()).toBeUndefined();
      });
    }
  }

  test("a PUT that leaves them out keeps them, and null does too", async () => {
    const { ok, managers } = await givenMap();

    await ok("PUT", `${MAP}?fieldManager=two`, { metadata: { name: "a" }, data: { k: "1", l: "2" } });
    await ok("PATCH", `${MAP}?fieldManager=two`, { metadata: { managedFields: null } }, MERGE);

    expect(await managers()).toEqual(["one", "two"]);
  });

  test("the status has no say in it", async () => {
    const { ok } = await givenServer();
    await ok("POST", "/api/v1/nodes?fieldManager=one", { metadata: { name: "n", labels: { a: "b" } } });

    await ok("PATCH", "/api/v1/nodes/n/status", { metadata: { managedFields: [] } }, MERGE);

    const { metadata } = await ok("GET", "/api/v1/nodes/n");
    expect(metadata.managedFields?.map(({ manager }) => manager)).toEqual(["one"]);
  });
});

describe("events of events.k8s.io", () => {
  const event = {
    metadata: { name: "e" },
    regarding: { kind: "Pod", name: "p", namespace: "t" },
    reason: "R",
    note: "n",
    type: "Normal",
    action: "A",
    eventTime: "2026-01-01T00:00:00.000000Z",
    reportingController: "x.io/y",
    reportingInstance: "y-1",
  };
  const fields = ["action", "eventTime", "note", "reason", "regarding", "reportingController"];
  const entry = {
    manager: "one",
    operation: "Update",
    apiVersion: "events.k8s.io/v1",
    fieldsV1: expect.objectContaining(Object.fromEntries(fields.map((name) => [`f:${name}`, {}]))),
  };

  test("have owners, in their own words, whichever group they are read from", async () => {
    const { ok } = await givenServer();

    const created = await ok("POST", `${NEW_EVENTS}?fieldManager=one`, event);

    expect(created.metadata.managedFields).toEqual([expect.objectContaining(entry)]);
    expect((await ok("GET", `${CORE_EVENTS}/e`)).metadata.managedFields).toEqual(
      created.metadata.managedFields,
    );
  });

  test("a write through the other group takes what it changes, and leaves the rest", async () => {
    const { ok } = await givenServer();
    await ok("POST", `${NEW_EVENTS}?fieldManager=one`, event);

    const { metadata } = await ok("PATCH", `${CORE_EVENTS}/e?fieldManager=two`, { message: "m" }, MERGE);

    const [first, second] = metadata.managedFields ?? [];
    expect(first?.fieldsV1).not.toHaveProperty("f:note");
    expect(first?.fieldsV1).toHaveProperty("f:regarding");
    expect(second).toMatchObject({ manager: "two", apiVersion: "v1", fieldsV1: { "f:message": {} } });
  });

  test("can be applied", async () => {
    const { ok } = await givenServer();
    const applied = { apiVersion: "events.k8s.io/v1", kind: "Event", ...event };
    await ok("PATCH", `${NEW_EVENTS}/e?fieldManager=one`, applied, APPLY);
    const relabelled = { ...applied, metadata: { name: "e", labels: { a: "b" } } };

    const changed = await ok("PATCH", `${NEW_EVENTS}/e?fieldManager=one`, relabelled, APPLY);

    expect(changed).toMatchObject({
      apiVersion: "events.k8s.io/v1",
      note: "n",
      metadata: { labels: { a: "b" } },
    });
    expect(changed.metadata.managedFields).toMatchObject([
      { operation: "Apply", fieldsV1: { "f:note": {} } },
    ]);
  });
});

import { describe, expect, test } from "vitest";
import watches from "../../../test/fixtures/apiserver/08-table-watch.json" with { type: "json" };
import metadataOnly from "../../../test/fixtures/apiserver/07-metadata.json" with { type: "json" };
import { findKind } from "../kinds.ts";
import { negotiate, type Endpoint, type Representation } from "./accept.ts";
import { clockAtRecording, stepsOf, withoutDescriptions, type RecordedStep } from "./recordings.testing.ts";
import { createRepresenter } from "./representations.ts";

const configMaps = findKind("", "v1", "configmaps")!;
const pods = findKind("", "v1", "pods")!;

function given(as: Representation, { kind = configMaps, search = "" } = {}) {
  const deps = { clock: clockAtRecording(), defaultStorageClass: () => undefined };
  return createRepresenter(deps, { as, kind, query: new URLSearchParams(search) });
}

function forStep({ request }: RecordedStep, endpoint: Endpoint) {
  return given(negotiate(request.headers["Accept"], endpoint).as, {
    search: request.path.split("?")[1] ?? "",
  });
}

function configMap(metadata: object, data = {}) {
  return JSON.stringify({ kind: "ConfigMap", apiVersion: "v1", metadata, data });
}

const TABLE = { kind: "table", version: "v1" } as const;
const METADATA = { kind: "metadata", version: "v1" } as const;
const NO_MORE = { next: undefined, remaining: undefined };

describe("recorded watches", () => {
  const [tables, metadata] = stepsOf(watches) as [RecordedStep, RecordedStep];

  test("of tables: columns come with the first event, then never again", () => {
    const represent = forStep(tables, "watch").events();
    // Both writes of the recording came 29 s after the object; here it is a second later.
    const recorded = JSON.parse(
      JSON.stringify(tables.response.events).replaceAll('"29s"', '"30s"'),
    ) as unknown[];

    const events = ["17", "18"].map((resourceVersion) => {
      const meta = {
        name: "pre",
        namespace: "g08",
        uid: "<UID-2>",
        resourceVersion,
        creationTimestamp: CREATED,
      };
      return {
        type: "MODIFIED",
        object: withoutDescriptions(JSON.parse(represent(configMap(meta, { t: "1" })))),
      };
    });

    expect(events).toEqual(recorded);
  });

  test("of metadata", () => {
    const represent = forStep(metadata, "watch").events();
    const meta = {
      name: "pre",
      namespace: "g08",
      uid: "<UID-2>",
      resourceVersion: "18",
      creationTimestamp: CREATED,
    };

    const event = { type: "ADDED", object: JSON.parse(represent(configMap(meta, { t: "1" }))) as unknown };

    expect([event]).toEqual(metadata.response.events);
  });
});

const CREATED = "2026-11-15T18:00:00Z";

describe("recorded metadata", () => {
  const [list, single] = stepsOf(metadataOnly) as [RecordedStep, RecordedStep];

  test("of a page of a list: items say what they are", () => {
    const recorded = list.response.body as { items: { metadata: object }[] };
    const items = recorded.items.map(({ metadata }) => ({ text: configMap(metadata, { a: "b" }) }));

    const text = forStep(list, "list").list(10, { items, next: "<CONTINUE-5>", remaining: 6 });

    expect(JSON.parse(text as string)).toEqual(recorded);
  });

  test("of one object", () => {
    const recorded = single.response.body as { metadata: object };

    const text = forStep(single, "object").object(configMap(recorded.metadata, { a: "b" }));

    expect(JSON.parse(text)).toEqual(recorded);
  });
});

describe("lists", () => {
  const page = { items: [{ text: configMap({ name: "a" }) }], next: "token", remaining: 3 };
  const metadata = { resourceVersion: "7", continue: "token", remainingItemCount: 3 };

  for (const [as, kind] of [
    [{ kind: "object" }, "ConfigMapList"],
    [METADATA, "PartialObjectMetadataList"],
    [TABLE, "Table"],
  ] as const) {
    test(`${kind}: its metadata tells the revision and what is left`, () => {
      expect(JSON.parse(given(as).list(7, page) as string)).toMatchObject({ kind, metadata });
    });

    test(`${kind}: an empty one has an empty list, never null`, () => {
      const empty = JSON.parse(given(as).list(7, { items: [], ...NO_MORE }) as string) as Record<
        string,
        unknown
      >;

      expect(empty[kind === "Table" ? "rows" : "items"]).toEqual([]);
      expect(empty["metadata"]).toEqual({ resourceVersion: "7" });
    });
  }

  test("a long one comes in pieces that say the same", async () => {
    const data = { padding: "x".repeat(100) };
    const items = Array.from({ length: 3_000 }, (_, index) => ({
      text: configMap({ name: `n-${index}` }, data),
    }));
    const long = { items, next: "token", remaining: 3 };

    const pieces: string[] = [];
    for await (const piece of given({ kind: "object" }).list(7, long) as AsyncIterable<string>)
      pieces.push(piece);

    expect(pieces.length).toBeGreaterThan(1);
    const parts = [0, 1, 2].map((part) => items.slice(part * 1_000, (part + 1) * 1_000));
    const short = parts.map((part) => given({ kind: "object" }).list(7, { ...long, items: part }) as string);
    const expected = short.map((text) => (JSON.parse(text) as { items: unknown[] }).items).flat();
    expect(JSON.parse(pieces.join(""))).toMatchObject({ kind: "ConfigMapList", metadata, items: expected });
    expect(pieces.join("")).toMatch(/]}\n$/);
  });

  test("items of a typed list go without kind and apiVersion", () => {
    expect(JSON.parse(given({ kind: "object" }).list(7, page) as string)).toHaveProperty("items", [
      { metadata: { name: "a" }, data: {} },
    ]);
  });
});

describe("tables", () => {
  test("come in the version asked for, and so do the objects in their rows", () => {
    const text = given({ kind: "table", version: "v1beta1" }).object(configMap({ name: "a" }));

    expect(JSON.parse(text)).toMatchObject({
      apiVersion: "meta.k8s.io/v1beta1",
      rows: [{ object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1beta1" } }],
    });
  });

  for (const [search, object] of [
    ["", { kind: "PartialObjectMetadata" }],
    ["includeObject=", { kind: "PartialObjectMetadata" }],
    ["includeObject=Metadata", { kind: "PartialObjectMetadata" }],
    ["includeObject=Object", { kind: "ConfigMap", data: { k: "v" } }],
    ["includeObject=None", null],
  ] as const) {
    test(`${search || "no includeObject"} gives rows ${object === null ? "null" : object.kind}`, () => {
      const text = given(TABLE, { search }).object(configMap({ name: "a" }, { k: "v" }));

      expect(JSON.parse(text)).toMatchObject({ rows: [{ cells: ["a", 1, "<unknown>"], object }] });
    });
  }

  test("an includeObject nobody knows is refused, but only where a table was asked for", () => {
    const search = "includeObject=Bogus";

    expect(() => given(TABLE, { search })).toThrow("must be 'Metadata', 'Object', 'None', or empty");
    expect(() => given(METADATA, { search })).not.toThrow();
    expect(() => given({ kind: "object" }, { search })).not.toThrow();
  });

  test("a subresource that answers with another kind is printed as that kind", () => {
    const token = JSON.stringify({
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: {},
    });

    expect(JSON.parse(given(TABLE).object(token))).toMatchObject({
      columnDefinitions: [{ name: "Name" }, { name: "Created At" }],
      rows: [{ cells: ["", "0001-01-01T00:00:00Z"] }],
    });
  });

  test("a pod that has ended says so in its row", () => {
    const pod = { kind: "Pod", apiVersion: "v1", metadata: { name: "p" }, status: { phase: "Failed" } };

    expect(JSON.parse(given(TABLE, { kind: pods }).object(JSON.stringify(pod)))).toMatchObject({
      rows: [{ conditions: [{ type: "Completed", status: "True", reason: "Failed" }] }],
    });
  });
});

describe("bookmarks", () => {
  const annotations = { "k8s.io/initial-events-end": "true" };
  const bookmark = JSON.stringify({
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { resourceVersion: "9", annotations },
  });

  test("keep their revision and annotation as metadata", () => {
    expect(JSON.parse(given(METADATA).events()(bookmark))).toEqual({
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1",
      metadata: { resourceVersion: "9", annotations },
    });
  });

  test("keep them as tables, with the columns where they are the first event", () => {
    const represent = given(TABLE).events();

    const [first, second] = [represent(bookmark), represent(bookmark)].map(
      (text) => JSON.parse(text) as object,
    );

    expect(first).toMatchObject({
      metadata: { resourceVersion: "9" },
      columnDefinitions: [{ name: "Name" }, { name: "Data" }, { name: "Age" }],
      rows: [{ object: { metadata: { annotations } } }],
    });
    expect(second).toMatchObject({ columnDefinitions: null });
  });
});

test("a Status is a Status, whatever was asked for", () => {
  const status = JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });

  for (const as of [{ kind: "object" }, TABLE, METADATA] as const) {
    expect(given(as).object(status)).toBe(status);
    expect(given(as).events()(status)).toBe(status);
  }
});

test("an error in mid-stream does not use up the columns of a table", () => {
  const represent = given(TABLE).events();
  represent(JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {} }));

  expect(JSON.parse(represent(configMap({ name: "a" })))).toMatchObject({ columnDefinitions: [{}, {}, {}] });
});

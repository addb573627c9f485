import { describe, expect, test } from "vitest";
import { KINDS } from "../kinds.ts";
import { CATALOGUE } from "../negotiate/catalogue.ts";
import { createOpenApi } from "./openapi.ts";

const now = new Date("2026-01-01T00:00:00Z");
const api = createOpenApi(CATALOGUE);

function get(
  path: string,
  { hash = null as string | null, ifNoneMatch = undefined as string | undefined } = {},
) {
  return api.respond({ path, hash, ifNoneMatch, now });
}

/** Documents are looked into as a client would. */
function read(path: string) {
  return JSON.parse(get(path)?.body as string) as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, Definition> };
  };
}

interface Operation {
  readonly parameters?: readonly { name: string; in: string }[];
  readonly requestBody?: { content: object };
  readonly "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string };
}

interface Definition {
  readonly type?: string;
  readonly properties?: Record<string, Record<string, unknown>>;
  readonly "x-kubernetes-group-version-kind"?: readonly object[];
}

function pathOf({ group, version }: { group: string; version: string }): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

describe("index", () => {
  test("names every group version that is served, each by its hash", () => {
    const { paths } = read("") as unknown as { paths: Record<string, { serverRelativeURL: string }> };

    expect(Object.keys(paths)).toEqual(expect.arrayContaining([...new Set(KINDS.map(pathOf))]));
    for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
      expect(serverRelativeURL).toMatch(new RegExp(`^/openapi/v3/${path}\\?hash=[0-9A-F]{64}$`));
    }
  });
});

describe("caching", () => {
  const hash = (get("api/v1")?.headers["etag"] ?? "").replaceAll('"', "");

  test("asked for by its hash, a document may be kept for a year", () => {
    expect(get("api/v1", { hash })).toMatchObject({
      status: 200,
      headers: { "cache-control": "public, immutable", expires: "Fri, 01 Jan 2027 00:00:00 GMT" },
    });
  });

  test("a hash of yesterday leads to that of today", () => {
    expect(get("api/v1", { hash: "OLD" })).toMatchObject({
      status: 301,
      headers: { location: `/openapi/v3/api/v1?hash=${hash}` },
    });
  });

  test("what the client has is not sent again", () => {
    expect(get("api/v1", { ifNoneMatch: `"${hash}"` })).toMatchObject({ status: 304, body: "" });
  });

  test("the text is the same each time, and in another server", () => {
    const other = createOpenApi(CATALOGUE).respond({
      path: "api/v1",
      hash: null,
      ifNoneMatch: undefined,
      now,
    });

    expect(other?.headers["etag"]).toBe(`"${hash}"`);
  });

  test("a path that names no document has no answer", () => {
    expect(get("apis/apps/v2")).toBeUndefined();
    expect(get("__proto__")).toBeUndefined();
  });
});

describe("documents", () => {
  test("each kind has a patch that takes fieldValidation and dryRun, or kubectl would refuse to create it", () => {
    const resources = CATALOGUE.flatMap(({ versions }) => versions.flatMap((version) => version.resources));

    const missing = resources.filter(({ group, version, kind }) => {
      const operations = Object.values(read(pathOf({ group, version })).paths).flatMap(
        (item) => item["patch"] ?? [],
      );
      return !operations.some(
        ({ parameters = [], ...operation }) =>
          JSON.stringify(operation["x-kubernetes-group-version-kind"]) ===
            JSON.stringify({ group, version, kind }) &&
          ["fieldValidation", "dryRun"].every((name) =>
            parameters.some((parameter) => parameter.name === name && parameter.in === "query"),
          ),
      );
    });

    expect(missing.map(({ kind }) => kind)).toEqual([]);
  });

  test("strategic merge patches are offered where they are taken", () => {
    const typesOf = (path: string, item: string) =>
      Object.keys(read(path).paths[item]?.["patch"]?.requestBody?.content ?? {});

    expect(typesOf("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}")).toContain(
      "application/strategic-merge-patch+json",
    );
    expect(
      typesOf(
        "apis/snapshot.storage.k8s.io/v1",
        "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/{name}",
      ),
    ).toEqual([
      "application/apply-patch+yaml",
      "application/json-patch+json",
      "application/merge-patch+json",
    ]);
  });

  test("definitions carry what apply and explain read", () => {
    const { schemas } = read("api/v1").components;

    expect(schemas["io.k8s.api.core.v1.Pod"]).toMatchObject({
      type: "object",
      "x-kubernetes-group-version-kind": [{ group: "", version: "v1", kind: "Pod" }],
    });
    expect(schemas["io.k8s.api.core.v1.PodSpec"]?.properties?.["containers"]).toEqual({
      type: "array",
      items: { allOf: [{ $ref: "#/components/schemas/io.k8s.api.core.v1.Container" }] },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      "x-kubernetes-patch-strategy": "merge",
      "x-kubernetes-patch-merge-key": "name",
    });
    expect(schemas["io.k8s.api.core.v1.PodList"]).toMatchObject({ required: ["items"] });
  });

  test("every reference leads somewhere, and what is inlined in protobuf only is not described", () => {
    for (const { name, versions } of CATALOGUE) {
      for (const { version } of versions) {
        const path = pathOf({ group: name, version });
        const text = get(path)?.body as string;
        const { schemas } = read(path).components;

        const refs = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1] ?? "");

        expect(new Set(refs)).toEqual(new Set(Object.keys(schemas)));
        expect(Object.keys(schemas)).not.toContain("io.k8s.api.core.v1.VolumeSource");
      }
    }
  });
});

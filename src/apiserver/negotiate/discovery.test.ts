import { describe, expect, test } from "vitest";
import recording from "../../../test/fixtures/apiserver/01-discovery.json" with { type: "json" };
import { findKind, KINDS, type Kind } from "../kinds.ts";
import { POLICY_KINDS } from "../kinds-policy.ts";
import { WORKLOAD_KINDS } from "../kinds-workloads.ts";
import { negotiate } from "./accept.ts";
import { createAggregatedDiscovery } from "./aggregated-discovery.ts";
import { createCatalogue, findSubresource } from "./catalogue.ts";
import { coreVersions, groupList, groupOf, paths, resourceList } from "./legacy-discovery.ts";
import { stepsOf, type RecordedStep } from "./recordings.testing.ts";

/** Events of the second group are the first group's, under another name. */
const events: Kind = { ...findKind("", "v1", "events")!, group: "events.k8s.io" };
/** The recordings were trimmed to the kinds that a volume needs; what was served later is not in them. */
const LATER = new Set<Kind>([...WORKLOAD_KINDS, ...POLICY_KINDS]);
const recorded = KINDS.filter((kind) => kind.group !== events.group && !LATER.has(kind));
const catalogue = createCatalogue([...recorded, events]);
const aggregated = createAggregatedDiscovery(catalogue);

/** Served by the real server, and on the list of what this one leaves out (spec/apiserver.md, section 23). */
const LEFT_OUT = new Set(["attach", "exec", "log", "portforward", "proxy"]);
/** Newer than the recorded release. */
const NEWER = new Set(["selfsubjectreviews", "volumeattributesclasses", "pods/resize"]);
/** Groups that were not recorded: one is built in but was trimmed, the other an add-on. */
const UNRECORDED = new Set(["rbac.authorization.k8s.io", "snapshot.storage.k8s.io"]);

interface LegacyResource {
  readonly name: string;
  readonly singularName: string;
}

interface AggregatedResource {
  readonly resource: string;
  readonly singularResource: string;
  readonly subresources?: readonly { readonly subresource: string }[];
}

interface AggregatedList {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly { version: string; resources: readonly AggregatedResource[] }[];
  }[];
}

describe("recorded legacy discovery", () => {
  for (const step of stepsOf(recording).filter((each) => !isAggregated(each))) {
    const { path } = step.request;
    if (path === "/") continue;
    test(`GET ${path}`, () => {
      const body = legacyAnswer(path);

      expect(trimmed(body)).toEqual(trimmed(step.response.body));
    });
  }

  test("GET / names every recorded path that leads to an object", () => {
    const step = stepsOf(recording).find(({ request }) => request.path === "/");
    const recorded = (step?.response.body as { paths: string[] }).paths.filter(
      (path) => !/poststarthook|v1beta1|openapi\/v2/.test(path),
    );

    const answer = paths(catalogue, ["/openapi/v3", "/version"]) as { paths: string[] };

    expect(answer.paths).toEqual(expect.arrayContaining(recorded));
    expect(answer.paths).toEqual(answer.paths.toSorted());
  });

  test("single names are there for kinds and empty for subresources", () => {
    const { resources } = resourceList(catalogue, "", "v1") as { resources: LegacyResource[] };

    expect(resources.find(({ name }) => name === "pods")?.singularName).toBe("pod");
    expect(resources.find(({ name }) => name === "pods/status")?.singularName).toBe("");
  });

  test("a group or version that is not served is 404", () => {
    expect(() => resourceList(catalogue, "", "v2")).toThrow("could not find");
    expect(() => groupOf(catalogue, "nope.io")).toThrow("could not find");
  });
});

describe("recorded aggregated discovery", () => {
  const steps = stepsOf(recording).filter(isAggregated);

  test("was recorded for both paths and for an unchanged one", () => {
    expect(steps.map(({ request, response }) => `${request.path} ${response.status}`)).toEqual([
      "/api 200",
      "/apis 200",
      "/apis 304",
    ]);
  });

  for (const { request, response } of steps.slice(0, 2)) {
    test(`GET ${request.path}`, () => {
      const { as } = negotiate(request.headers["Accept"], "discovery");
      expect(as).toEqual({ kind: "discovery", version: "v2" });

      // The recorded release had the older version of the document only; that one differs in name alone.
      const answer = aggregated.answer(request.path as "/api", "v2beta1", undefined);

      expect(answer.headers).toMatchObject({
        "content-type": response.headers?.["content-type"],
        vary: response.headers?.["vary"],
        "cache-control": "public",
      });
      expect(answer.headers["etag"]).toMatch(/^"[0-9A-F]{64}"$/);
      const body = JSON.parse(answer.body as string) as AggregatedList;
      expect(trimmedList(body)).toEqual(trimmedList(response.body as AggregatedList));
    });
  }

  test("GET /apis with the tag of what the client has is 304 without a body", () => {
    const { etag } = aggregated.answer("/apis", "v2", undefined).headers;

    const unchanged = aggregated.answer("/apis", "v2", etag);

    expect(unchanged).toEqual({
      status: 304,
      headers: { etag, vary: "Accept", "cache-control": "public" },
      body: "",
    });
  });
});

describe("aggregated documents", () => {
  test("have the version asked for, and tags of their own", () => {
    const answers = (["v2", "v2beta1"] as const).map((version) =>
      aggregated.answer("/apis", version, undefined),
    );

    expect(
      answers.map(({ body }) => (JSON.parse(body as string) as { apiVersion: string }).apiVersion),
    ).toEqual(["apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1"]);
    expect(answers[0]?.headers["etag"]).not.toBe(answers[1]?.headers["etag"]);
  });

  for (const [header, status] of [
    [(etag: string) => etag, 304],
    [(etag: string) => `W/${etag}`, 304],
    [(etag: string) => `"other", ${etag}`, 304],
    [() => "*", 304],
    [() => '"other"', 200],
    [(etag: string) => etag.replaceAll('"', ""), 200],
    [() => "", 200],
  ] as const) {
    test(`If-None-Match: ${header('"tag"')} is ${status}`, () => {
      const etag = aggregated.answer("/api", "v2", undefined).headers["etag"]!;

      expect(aggregated.answer("/api", "v2", header(etag)).status).toBe(status);
    });
  }

  test("a changed set of kinds has another tag", () => {
    const fewer = createAggregatedDiscovery(createCatalogue(KINDS.slice(1)));

    expect(
      fewer.answer("/api", "v2", aggregated.answer("/api", "v2", undefined).headers["etag"]).status,
    ).toBe(200);
  });

  test("say the same as the legacy ones: every resource with its subresources and verbs", () => {
    for (const path of ["/api", "/apis"] as const) {
      const { items } = JSON.parse(aggregated.answer(path, "v2", undefined).body as string) as AggregatedList;
      for (const { metadata, versions } of items) {
        for (const { version, resources } of versions) {
          const names = resources.flatMap(({ resource, subresources = [] }) => [
            resource,
            ...subresources.map(({ subresource }) => `${resource}/${subresource}`),
          ]);
          const legacy = resourceList(catalogue, metadata.name ?? "", version) as {
            resources: LegacyResource[];
          };
          expect(names).toEqual(legacy.resources.map(({ name }) => name));
        }
      }
    }
  });
});

test("routing finds subresources where discovery shows them", () => {
  const [pods, namespaces, secrets] = ["pods", "namespaces", "secrets"].map((plural) =>
    findKind("", "v1", plural)!,
  );

  expect(findSubresource(pods!, "eviction")).toMatchObject({
    kind: "Eviction",
    group: "policy",
    verbs: ["create"],
  });
  expect(findSubresource(pods!, "status")?.verbs).toEqual(["get", "patch", "update"]);
  expect(findSubresource(namespaces!, "finalize")?.verbs).toEqual(["update"]);
  expect(findSubresource(secrets!, "status")).toBeUndefined();
  expect(findSubresource(pods!, "exec")).toBeUndefined();
});

function isAggregated({ request }: RecordedStep): boolean {
  return (request.headers["Accept"] ?? "").includes("APIGroupDiscoveryList");
}

function legacyAnswer(path: string): object {
  const [, prefix, group = "", version] = path.replace(/\/$/, "").split("/");
  if (prefix === "api")
    return group === "" ? coreVersions(catalogue, "<ADDR>") : resourceList(catalogue, "", group);
  if (group === "") return groupList(catalogue);
  return version === undefined ? groupOf(catalogue, group) : resourceList(catalogue, group, version);
}

/** What both have: without what is newer, left out, or (v1beta1) gone since. */
function trimmed(body: unknown): unknown {
  const document = body as {
    resources?: LegacyResource[];
    groups?: { name: string; versions: { version: string }[] }[];
    versions?: (string | { version: string })[];
  };
  const { resources, groups, versions } = document;
  return {
    ...document,
    ...(resources && {
      resources: resources
        .filter(({ name }) => !NEWER.has(name) && !LEFT_OUT.has(name.split("/")[1] ?? ""))
        .map((resource) => ({ ...resource, singularName: "" })),
    }),
    ...(groups && {
      groups: groups
        .filter(({ name }) => !UNRECORDED.has(name))
        .map((group) => ({ ...group, versions: group.versions.filter(({ version }) => version === "v1") })),
    }),
    ...(versions && {
      versions: versions.filter((each) => typeof each === "string" || each.version === "v1"),
    }),
  };
}

function trimmedList({ items, ...rest }: AggregatedList): unknown {
  return {
    ...rest,
    items: items
      .filter(({ metadata }) => !UNRECORDED.has(metadata.name ?? ""))
      .map(({ metadata: { name }, versions }) => ({
        name,
        versions: versions
          .filter(({ version }) => version === "v1")
          .map(({ version, resources }) => ({
            version,
            resources: resources.filter(({ resource }) => !NEWER.has(resource)).map(trimmedResource),
          })),
      })),
  };
}

function trimmedResource({ subresources, ...resource }: AggregatedResource): unknown {
  const kept =
    subresources?.filter(({ subresource }) => !LEFT_OUT.has(subresource) && subresource !== "resize") ?? [];
  return { ...resource, singularResource: "", ...(kept.length === 0 ? {} : { subresources: kept }) };
}

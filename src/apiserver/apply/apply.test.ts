import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../kube/patch/json.ts";
import { StatusError } from "../errors.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { applyPatch, type ApplyOutcome } from "./apply.ts";
import { applyConflict } from "./conflicts.ts";
import { withManagedFields } from "./managed-fields.ts";
import { trackUpdate } from "./managers.ts";

function kindNamed(name: string): Kind {
  return KINDS.find(({ kind }) => kind === name)!;
}

function at(second: number): Date {
  return new Date(Date.UTC(2026, 0, 1, 0, 0, second));
}

interface Request {
  readonly by: string;
  readonly force?: boolean;
  readonly second?: number;
  readonly subresource?: string;
}

function configMap(data: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", ...metadata }, data };
}

function pod(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "x", ...metadata }, spec };
}

function apply(
  live: ApiObject | undefined,
  applied: JsonObject,
  { by, force = false, second = 0, subresource }: Request,
): ApplyOutcome {
  const kind = kindNamed(applied["kind"] as string);
  const now = at(second);
  return applyPatch({ kind, name: "x", live, applied, manager: by, force, subresource, now });
}

function applied(live: ApiObject | undefined, body: JsonObject, request: Request): ApiObject {
  const outcome = apply(live, body, request);
  if (outcome.kind !== "applied") throw new Error(JSON.stringify(outcome));
  return withManagedFields(outcome.object as unknown as ApiObject, outcome.managedFields);
}

function updated(live: ApiObject | undefined, after: JsonObject, { by, second = 0 }: Request): ApiObject {
  const object = after as unknown as ApiObject;
  const kind = kindNamed(after["kind"] as string);
  const now = at(second);
  return withManagedFields(object, trackUpdate({ kind, before: live, after: object, manager: by, now }));
}

function refused(live: ApiObject | undefined, body: JsonObject, request: Request): StatusError {
  const outcome = apply(live, body, request);
  if (outcome.kind !== "conflict") throw new Error("there was no conflict");
  return applyConflict(outcome.conflicts);
}

/** By manager, what it owns. */
function owners({ metadata }: ApiObject): Readonly<Record<string, unknown>> {
  const entries: readonly ManagedFieldsEntry[] = metadata.managedFields ?? [];
  return Object.fromEntries(entries.map(({ manager = "", fieldsV1 }) => [manager, fieldsV1]));
}

describe("apply", () => {
  test("what a manager no longer says is taken back, what others own stays", () => {
    const first = applied(undefined, configMap({ a: "1", b: "1" }), { by: "m1" });
    const both = applied(first, configMap({ b: "1", c: "1" }), { by: "m2" });

    const last = applied(both, configMap({ c: "1" }), { by: "m1" });

    expect(last["data"]).toEqual({ b: "1", c: "1" });
    expect(owners(last)).toEqual({
      m1: { "f:data": { "f:c": {} } },
      m2: { "f:data": { "f:b": {}, "f:c": {} } },
    });
  });

  test("the same value is shared, and whoever leaves does not take it along", () => {
    const first = applied(undefined, configMap({ a: "1" }), { by: "m1" });
    const both = applied(first, configMap({ a: "1" }), { by: "m2" });

    const left = applied(both, { ...configMap({}), data: undefined }, { by: "m1" });

    expect(Object.keys(owners(both))).toEqual(["m2", "m1"]); // m2 wrote nothing, so it has no time and comes first
    expect(left["data"]).toEqual({ a: "1" });
    expect(owners(left)).toEqual({ m2: { "f:data": { "f:a": {} } } });
  });

  test("applying the same again changes nothing, not even a time", () => {
    const first = applied(undefined, configMap({ a: "1" }), { by: "m1", second: 1 });

    expect(applied(first, configMap({ a: "1" }), { by: "m1", second: 2 })).toEqual(first);
  });

  test("the last one to let go removes the map as well", () => {
    const first = applied(undefined, configMap({ a: "1" }, { labels: { l: "1" } }), { by: "m1" });

    const last = applied(
      first,
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } },
      { by: "m1" },
    );

    expect(last).toEqual({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } });
  });

  test("a field that a controller filled in beside an applied one is not touched", () => {
    const first = applied(undefined, pod({ containers: [{ name: "c", image: "1" }] }), { by: "m1" });
    const running = updated(
      first,
      pod({ containers: [{ name: "c", image: "1", imagePullPolicy: "Always" }], nodeName: "n" }),
      { by: "scheduler" },
    );

    const last = applied(running, pod({ containers: [{ name: "c", image: "2" }] }), { by: "m1" });

    expect(last["spec"]).toEqual({
      containers: [{ name: "c", image: "2", imagePullPolicy: "Always" }],
      nodeName: "n",
    });
  });

  test("what an object without managers holds belongs to the time before the first apply", () => {
    const live = configMap({ a: "1" }, { uid: "u" }) as unknown as ApiObject;

    expect(refused(live, configMap({ a: "2" }), { by: "m1" }).status.message).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a',
    );
    expect(owners(applied(live, configMap({ b: "1" }), { by: "m1" }))).toEqual({
      m1: { "f:data": { "f:b": {} } },
      "before-first-apply": { "f:data": { ".": {}, "f:a": {} } },
    });
  });

  test("an explicit null asks for absence, and is owned", () => {
    const first = applied(undefined, pod({ nodeName: "n" }), { by: "m1" });
    const body = pod({ nodeName: null });

    expect(refused(first, body, { by: "m2" }).status.details?.causes).toMatchObject([
      { field: ".spec.nodeName" },
    ]);
    const forced = applied(first, body, { by: "m2", force: true });
    expect(forced["spec"]).toEqual({ nodeName: null });
    expect(owners(forced)).toEqual({ m2: { "f:spec": { "f:nodeName": {} } } });
  });

  test("through /status only the status is owned, and the entry says so", () => {
    const body = { ...pod({ nodeName: "n" }), status: { phase: "Running" } };
    const main = applied(undefined, body, { by: "m" });
    const status = applied(main, body, { by: "m", subresource: "status" });

    expect(main.metadata.managedFields).toMatchObject([{ fieldsV1: { "f:spec": { "f:nodeName": {} } } }]);
    expect(
      status.metadata.managedFields?.map(({ subresource, fieldsV1 }) => [subresource, fieldsV1]),
    ).toEqual([
      ["status", { "f:status": { "f:phase": {} } }],
      [undefined, { "f:spec": { "f:nodeName": {} } }],
    ]);
  });

  test("a key named __proto__ is data", () => {
    const body = JSON.parse(
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"__proto__":"1"}}',
    ) as JsonObject;

    const first = applied(undefined, body, { by: "m1" });
    const second = applied(first, configMap({ a: "1" }), { by: "m2" });

    expect(JSON.stringify(second["data"])).toBe('{"__proto__":"1","a":"1"}');
    expect(applied(second, configMap({}), { by: "m1" })["data"]).toEqual({ a: "1" });
  });
});

describe("conflicts", () => {
  test("several are listed by manager, with the subresource and version of one that does not apply", () => {
    const created = updated(undefined, configMap({ a: "1", b: "1" }), { by: "kubectl-edit" });
    const live = applied(created, configMap({ c: "1" }), { by: "m1" });

    const { status } = refused(live, configMap({ a: "2", b: "2", c: "2" }), { by: "m2" });

    expect(status).toMatchObject({ code: 409, reason: "Conflict" });
    expect(status.message).toBe(
      'Apply failed with 3 conflicts: conflicts with "kubectl-edit" using v1:\n- .data.a\n- .data.b\n' +
        'conflicts with "m1":\n- .data.c',
    );
    expect(status.details?.causes).toEqual([
      { reason: "FieldManagerConflict", message: 'conflict with "kubectl-edit" using v1', field: ".data.a" },
      { reason: "FieldManagerConflict", message: 'conflict with "kubectl-edit" using v1', field: ".data.b" },
      { reason: "FieldManagerConflict", message: 'conflict with "m1"', field: ".data.c" },
    ]);
  });

  test("force moves what conflicts and nothing else", () => {
    const first = applied(undefined, configMap({ a: "1", b: "1" }), { by: "m1", second: 1 });

    const forced = applied(first, configMap({ a: "2" }), { by: "m2", second: 2, force: true });

    expect(forced["data"]).toEqual({ a: "2", b: "1" });
    expect(owners(forced)).toEqual({ m1: { "f:data": { "f:b": {} } }, m2: { "f:data": { "f:a": {} } } });
  });

  test("a manager that applies has no quarrel with its own updates under the same name unless they differ", () => {
    const created = updated(undefined, configMap({ a: "1" }), { by: "m1" });

    expect(apply(created, configMap({ a: "1" }), { by: "m1" }).kind).toBe("applied");
    expect(refused(created, configMap({ a: "2" }), { by: "m1" }).status.message).toContain('"m1" using v1');
  });

  test("an element of a list is named by its key", () => {
    const first = applied(undefined, pod({ containers: [{ name: "c", image: "1" }] }), { by: "m1" });

    const body = pod({ containers: [{ name: "c", image: "2" }] });

    expect(refused(first, body, { by: "m2" }).status.details?.causes).toMatchObject([
      { field: '.spec.containers[name="c"].image' },
    ]);
  });

  test("an atomic value conflicts as a whole", () => {
    const first = applied(undefined, pod({ tolerations: [{ key: "a" }] }), { by: "m1" });

    const body = pod({ tolerations: [{ key: "a" }, { key: "b" }] });

    expect(refused(first, body, { by: "m2" }).status.details?.causes).toMatchObject([
      { field: ".spec.tolerations" },
    ]);
    expect(applied(first, body, { by: "m2", force: true })["spec"]).toEqual({
      tolerations: [{ key: "a" }, { key: "b" }],
    });
  });
});

describe("lists", () => {
  const names = (object: ApiObject) =>
    (object["spec"] as { containers: { name: string }[] }).containers.map(({ name }) => name);
  const containers = (list: string) =>
    pod({ containers: Array.from(list, (name): JsonObject => ({ name })) });

  for (const [live, wanted, merged] of [
    ["abc", "x", "abcx"],
    ["abc", "xb", "axbc"], // before the next common element come those that only the live list has
    ["abc", "cb", "acb"], // the order of the applied list wins
    ["abc", "bxa", "bcxa"],
    ["ab", "ba", "ba"],
    ["", "ab", "ab"],
  ] as const) {
    test(`[${live}] with [${wanted}] applied is [${merged}]`, () => {
      const first = updated(undefined, containers(live), { by: "m1" });

      expect(names(applied(first, containers(wanted), { by: "m2" })).join("")).toBe(merged);
    });
  }

  test("elements of sets and lists come and go with those who apply them", () => {
    const first = applied(undefined, pod({}, { finalizers: ["x.io/a"] }), { by: "m1" });
    const both = applied(first, pod({}, { finalizers: ["x.io/b"] }), { by: "m2" });

    const last = applied(both, pod({}), { by: "m1" });

    expect(both.metadata.finalizers).toEqual(["x.io/a", "x.io/b"]);
    expect(last.metadata.finalizers).toEqual(["x.io/b"]);
  });

  test("an element goes when its applier drops it, even if somebody else changed a part of it", () => {
    const first = applied(
      undefined,
      pod({
        containers: [
          { name: "a", image: "1" },
          { name: "b", image: "1" },
        ],
      }),
      { by: "m1" },
    );
    const changed = updated(
      first,
      pod({
        containers: [
          { name: "a", image: "2" },
          { name: "b", image: "1" },
        ],
      }),
      { by: "kubectl-set" },
    );

    const last = applied(changed, pod({ containers: [{ name: "b", image: "1" }] }), { by: "m1" });

    expect(names(last)).toEqual(["b"]);
    expect(Object.keys(owners(last))).toEqual(["m1"]);
  });

  test("of elements that an update gave the same key, an apply of that key leaves one", () => {
    const env = (...values: string[]) =>
      pod({ containers: [{ name: "c", env: values.map((value) => ({ name: "E", value })) }] });
    const twice = updated(undefined, env("1", "2"), { by: "m1" });

    const once = applied(twice, env("3"), { by: "m2", force: true });

    expect(once["spec"]).toEqual({ containers: [{ name: "c", env: [{ name: "E", value: "3" }] }] });
  });
});

describe("kubectl and its own past", () => {
  const annotation = "kubectl.kubernetes.io/last-applied-configuration";

  function clientSide(data: JsonObject): ApiObject {
    const text = `${JSON.stringify({ apiVersion: "v1", data, kind: "ConfigMap", metadata: { name: "x" } })}\n`;
    const body = configMap(data, { annotations: { [annotation]: text } });
    return updated(undefined, body, { by: "kubectl-client-side-apply" });
  }

  test("what kubectl applied on its own side, it may change without force", () => {
    const live = clientSide({ a: "1", b: "1" });

    const last = applied(live, configMap({ a: "2", b: "1" }), { by: "kubectl" });

    expect(last["data"]).toEqual({ a: "2", b: "1" });
    expect(last.metadata.annotations?.[annotation]).toBe(
      '{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}\n',
    );
  });

  test("but not what somebody changed since, and nobody else may", () => {
    const live = clientSide({ a: "1", b: "1" });
    const { annotations } = live.metadata;
    const edited = updated(live, configMap({ a: "9", b: "1" }, { annotations: { ...annotations } }), {
      by: "me",
    });

    const { status } = refused(edited, configMap({ a: "2", b: "2" }), { by: "kubectl" });

    expect(status.message).toBe('Apply failed with 1 conflict: conflict with "me" using v1: .data.a');
    expect(apply(live, configMap({ a: "2" }), { by: "helm" }).kind).toBe("conflict");
  });

  test("an annotation that grew too large is dropped rather than truncated", () => {
    const live = clientSide({ a: "1" });

    const last = applied(live, configMap({ a: "1", big: "x".repeat(256 * 1024) }), { by: "kubectl" });

    expect(last.metadata.annotations).toEqual({});
  });
});

describe("bodies that cannot be applied", () => {
  for (const [what, body, message] of [
    [
      "another version",
      { ...configMap({}), apiVersion: "v2" },
      "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
    ],
    ["no kind", { apiVersion: "v1", metadata: {} }, "invalid object type: /v1, Kind="],
    ["managedFields", configMap({}, { managedFields: [] }), "metadata.managedFields must be nil"],
    [
      "a field that does not exist",
      pod({ bogus: 1 }, { namespace: "t" }),
      "failed to create typed patch object (t/x; /v1, Kind=Pod): .spec.bogus: field not declared in schema",
    ],
    [
      "two things wrong",
      pod({ a: 1, containers: {} }),
      "failed to create typed patch object (/x; /v1, Kind=Pod): errors:\n" +
        "  .spec.a: field not declared in schema\n  .spec.containers: expected list, got an object",
    ],
    [
      "a field that does not exist inside an atomic list",
      pod({ tolerations: [{ k: 1 }] }),
      "failed to create typed patch object (/x; /v1, Kind=Pod): .spec.tolerations[0].k: field not declared in schema",
    ],
    [
      "an element without a key",
      pod({ containers: [{ image: "i" }] }),
      "failed to create typed patch object (/x; /v1, Kind=Pod): .spec.containers: element 0: associative list with keys " +
        `has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)`,
    ],
    [
      "two elements with the same key",
      pod({ containers: [{ name: "c" }, { name: "c" }] }),
      'failed to create typed patch object (/x; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name="c"]',
    ],
    [
      "an object where a scalar belongs",
      pod({ nodeName: {} }),
      "failed to create typed patch object (/x; /v1, Kind=Pod): .spec.nodeName: expected a scalar, got an object",
    ],
  ] as const) {
    test(`${what}: 400`, () => {
      const kind = kindNamed("spec" in body ? "Pod" : "ConfigMap");
      const attempt = () =>
        applyPatch({
          kind,
          name: "x",
          live: undefined,
          applied: body,
          manager: "m",
          force: true,
          now: at(0),
        });

      expect(attempt).toThrow(StatusError);
      expect(attempt).toThrow(`BadRequest: ${message}`);
    });
  }

  test("a uid for an object that does not exist: 409", () => {
    expect(() => apply(undefined, configMap({}, { uid: "u" }), { by: "m" })).toThrow(
      'Conflict: Operation cannot be fulfilled on configmaps "x": uid mismatch',
    );
  });
});

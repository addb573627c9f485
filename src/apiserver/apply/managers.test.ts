import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { describe, expect, test } from "vitest";
import { KINDS, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { isSameButTimes, withManagedFields } from "./managed-fields.ts";
import { managerName } from "./manager-name.ts";
import { trackUpdate } from "./managers.ts";

const configMaps = kindNamed("ConfigMap");

function kindNamed(name: string): Kind {
  return KINDS.find(({ kind }) => kind === name)!;
}

function at(second: number): Date {
  return new Date(Date.UTC(2026, 0, 1, 0, 0, second));
}

function configMap(data: Readonly<Record<string, string>>, metadata: object = {}): ApiObject {
  return { metadata: { name: "c", uid: "u", ...metadata }, data };
}

interface Write {
  readonly by: string;
  readonly second?: number;
  readonly kind?: Kind;
  readonly subresource?: string;
}

/** The object as it is stored after a write. */
function written(before: ApiObject | undefined, after: ApiObject, { by, second = 0, ...rest }: Write) {
  const kind = rest.kind ?? configMaps;
  const { subresource } = rest;
  const managedFields = trackUpdate({ kind, before, after, manager: by, subresource, now: at(second) });
  return withManagedFields(after, managedFields);
}

function entries({ metadata }: ApiObject): readonly ManagedFieldsEntry[] {
  return metadata.managedFields ?? [];
}

/** `m1 Update 00:00:01 {...}`, one a manager. */
function owners(object: ApiObject): readonly string[] {
  return entries(object).map(
    ({ manager, operation, time, fieldsV1, subresource }) =>
      `${manager} ${operation}${subresource === undefined ? "" : `/${subresource}`} ` +
      `${time?.slice(17, 19) ?? "never"} ${JSON.stringify(fieldsV1).replaceAll('"', "")}`,
  );
}

describe("ordinary writes", () => {
  test("a creator owns what it created, and the maps it created it in", () => {
    expect(owners(written(undefined, configMap({ a: "1" }), { by: "m1", second: 1 }))).toEqual([
      "m1 Update 01 {f:data:{.:{},f:a:{}}}",
    ]);
  });

  test("whoever changes a field takes it over; the map around it stays its creator's", () => {
    const created = written(undefined, configMap({ a: "1", b: "1" }), { by: "m1", second: 1 });

    const changed = written(created, configMap({ a: "2", b: "1" }), { by: "m2", second: 2 });

    expect(owners(changed)).toEqual([
      "m1 Update 01 {f:data:{.:{},f:b:{}}}",
      "m2 Update 02 {f:data:{f:a:{}}}",
    ]);
  });

  test("what vanishes leaves every set, and who has nothing left is forgotten", () => {
    const created = written(undefined, configMap({ a: "1" }), { by: "m1" });
    const added = written(created, configMap({ a: "1", b: "1" }), { by: "m2", second: 1 });

    expect(owners(written(added, configMap({ a: "1" }), { by: "m3", second: 2 }))).toEqual([
      "m1 Update 00 {f:data:{.:{},f:a:{}}}",
    ]);
    expect(entries(written(added, { metadata: { name: "c", uid: "u" } }, { by: "m3" }))).toEqual([]);
  });

  test("the time of an entry moves with a write that gives it something, not with one that only takes", () => {
    const created = written(undefined, configMap({ a: "1", b: "1" }), { by: "m1", second: 1 });

    const changed = written(created, configMap({ a: "2", b: "1" }), { by: "m1", second: 2 });
    const removed = written(changed, configMap({ a: "2" }), { by: "m1", second: 3 });

    expect(owners(changed)).toEqual(["m1 Update 02 {f:data:{.:{},f:a:{},f:b:{}}}"]);
    expect(owners(removed)).toEqual(["m1 Update 02 {f:data:{.:{},f:a:{}}}"]);
  });

  test("a write that changes nothing leaves the list as it is", () => {
    const created = written(undefined, configMap({ a: "1" }), { by: "m1", second: 1 });

    const again = written(created, configMap({ a: "1" }), { by: "m2", second: 2 });

    expect(entries(again)).toEqual(entries(created));
  });

  test("one manager has an entry for the object and one for its status, and each only what it may write", () => {
    const kind = kindNamed("PersistentVolume");
    const spec = { capacity: { storage: "1Gi" } };
    const created = written(
      undefined,
      { metadata: { name: "v", uid: "u" }, spec, status: { phase: "Bound" } },
      { by: "m", kind },
    );

    const after = { ...created, spec: { capacity: { storage: "2Gi" } }, status: { phase: "Released" } };
    const updated = written(created, after, { by: "m", second: 1, kind, subresource: "status" });

    expect(owners(updated)).toEqual([
      "m Update 00 {f:spec:{f:capacity:{.:{},f:storage:{}}}}",
      "m Update/status 01 {f:status:{f:phase:{}}}",
    ]);
  });

  test("metadata that a status write cannot change is not given to its writer", () => {
    const attachments = kindNamed("VolumeAttachment");
    const before: ApiObject = { metadata: { name: "a", uid: "u" }, spec: { attacher: "x" } };
    const created = written(undefined, before, { by: "m1", kind: attachments });

    const after = {
      ...created,
      metadata: { ...created.metadata, labels: { l: "1" } },
      status: { attached: true },
    };
    const updated = written(created, after, { by: "m2", kind: attachments, subresource: "status" });

    expect(owners(updated)).toEqual([
      "m1 Update 00 {f:spec:{f:attacher:{}}}",
      "m2 Update/status 00 {f:status:{f:attached:{}}}",
    ]);
  });

  test("an object that began without managers has none until somebody applies to it", () => {
    const created = written(undefined, { metadata: { name: "c" } }, { by: "m1" });
    const updated = written(withUid(created), configMap({ a: "1" }), { by: "m1" });

    expect(updated.metadata.managedFields).toBeUndefined();
  });

  test("the complete form and the short one of an object are the same to tracking", () => {
    const kind = kindNamed("VolumeAttachment");
    const short: ApiObject = { metadata: { name: "a", uid: "u" }, spec: { attacher: "x" } };
    const complete = {
      ...short,
      spec: { attacher: "x", nodeName: "", source: {} },
      status: { attached: false },
    };
    const created = written(undefined, short, { by: "m1", kind });

    expect(entries(written(undefined, complete, { by: "m1", kind }))).toEqual(entries(created));
    expect(entries(written(created, complete, { by: "m2", kind, subresource: "status" }))).toEqual(
      entries(created),
    );
  });
});

function withUid(object: ApiObject): ApiObject {
  return { ...object, metadata: { ...object.metadata, uid: "u" } };
}

describe("lists", () => {
  const kind = kindNamed("Pod");

  function pod(containers: readonly object[]): ApiObject {
    return { metadata: { name: "p", uid: "u" }, spec: { containers } };
  }

  function finalized(...finalizers: string[]): ApiObject {
    return { metadata: { name: "p", uid: "u", finalizers } };
  }

  test("elements are owned by their key, whatever their place", () => {
    const created = written(undefined, pod([{ name: "a", image: "1" }]), { by: "m1", kind });

    const added = written(
      created,
      pod([
        { name: "b", image: "2" },
        { name: "a", image: "1" },
      ]),
      { by: "m2", kind },
    );

    expect(owners(added)).toEqual([
      "m1 Update 00 {f:spec:{f:containers:{k:{\\name\\:\\a\\}:{.:{},f:image:{},f:name:{},f:resources:{}}}}}",
      "m2 Update 00 {f:spec:{f:containers:{k:{\\name\\:\\b\\}:{.:{},f:image:{},f:name:{},f:resources:{}}}}}",
    ]);
  });

  test("a key that an element leaves out is the default of its field", () => {
    const port = { containerPort: 80 };
    const created = written(undefined, pod([{ name: "a", ports: [port] }]), { by: "m1", kind });

    const spelt = pod([{ name: "a", ports: [{ ...port, protocol: "TCP" }] }]);

    expect(owners(written(created, spelt, { by: "m2", kind }))[1]).toContain(
      "f:ports:{k:{\\containerPort\\:80,\\protocol\\:\\TCP\\}:{f:protocol:{}}}",
    );
  });

  test("elements with the same key are owned as one", () => {
    const twice = [
      { name: "E", value: "1" },
      { name: "E", value: "2" },
    ];
    const created = written(undefined, pod([{ name: "a", env: twice }]), { by: "m1", kind });
    const single = written(created, pod([{ name: "a", env: [{ name: "E", value: "1" }] }]), {
      by: "m2",
      kind,
    });

    expect(owners(created)[0]).toContain("f:env:{.:{},k:{\\name\\:\\E\\}:{}}");
    expect(owners(single)[0]).not.toContain("\\E\\");
    expect(owners(single)[1]).toContain("k:{\\name\\:\\E\\}:{.:{},f:name:{},f:value:{}}");
    expect(owners(written(single, pod([{ name: "a", env: twice }]), { by: "m3", kind })).at(-1)).toContain(
      "f:env:{k:{\\name\\:\\E\\}:{}}",
    );
  });

  test("elements of a set are owned one by one, an atomic list as a whole", () => {
    const created = written(undefined, finalized("x.io/a"), { by: "m1", kind });
    const added = written(created, finalized("x.io/a", "x.io/b"), { by: "m2", kind });

    expect(owners(added)).toEqual([
      "m1 Update 00 {f:metadata:{f:finalizers:{.:{},v:\\x.io/a\\:{}}}}",
      "m2 Update 00 {f:metadata:{f:finalizers:{v:\\x.io/b\\:{}}}}",
    ]);

    const tolerations = (...keys: string[]): ApiObject => ({
      metadata: { name: "p", uid: "u" },
      spec: { tolerations: keys.map((key) => ({ key })) },
    });
    const tolerant = written(undefined, tolerations("a"), { by: "m1", kind });
    expect(owners(written(tolerant, tolerations("a", "b"), { by: "m2", kind }))).toEqual([
      "m2 Update 00 {f:spec:{f:tolerations:{}}}",
    ]);
  });
});

describe("managedFields in a request", () => {
  const created = written(undefined, configMap({ a: "1" }), { by: "m1" });
  const entry: ManagedFieldsEntry = {
    manager: "other",
    operation: "Apply",
    apiVersion: "v1",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:data": { "f:a": {} } },
  };

  test("a valid list replaces the stored one, and the write counts from there", () => {
    const wish = configMap({ a: "1", b: "2" }, { managedFields: [entry] });

    expect(owners(written(created, wish, { by: "m2" }))).toEqual([
      "other Apply never {f:data:{f:a:{}}}",
      "m2 Update 00 {f:data:{f:b:{}}}",
    ]);
  });

  test("however a client spells its list, it is stored as this server spells it", () => {
    const spelt = {
      ...entry,
      fieldsV1: { "f:data": { "f:b": {}, "f:a": {} }, "f:binaryData": {}, "z:?": {} },
    };
    const wish = configMap({ a: "1" }, { managedFields: [spelt] });

    expect(JSON.stringify(entries(written(created, wish, { by: "m2" }))[0]?.fieldsV1)).toBe(
      '{"f:binaryData":{},"f:data":{"f:a":{},"f:b":{}}}',
    );
  });

  for (const wish of [[], [{}]]) {
    test(`${JSON.stringify(wish)} forgets everybody`, () => {
      const after = configMap({ a: "2" }, { managedFields: wish });

      expect(written(created, after, { by: "m2" }).metadata.managedFields).toBeUndefined();
    });
  }

  for (const [what, bad] of [
    ["an operation that does not exist", { operation: "Create" }],
    ["no apiVersion", { apiVersion: "" }],
    ["another format", { fieldsType: "FieldsV2" }],
    ["fields that are none", { fieldsV1: { nonsense: {} } }],
  ] as const) {
    test(`${what}: the whole list is ignored`, () => {
      const after = configMap({ a: "1" }, { managedFields: [entry, { ...entry, ...bad }] });

      expect(entries(written(created, after, { by: "m2" }))).toEqual(entries(created));
    });
  }

  test("through a subresource no list is taken", () => {
    const kind = kindNamed("PersistentVolume");
    const before = written(
      undefined,
      { metadata: { name: "v", uid: "u" }, spec: { mountOptions: ["a"] } },
      {
        by: "m1",
        kind,
      },
    );

    const after = { ...before, metadata: { ...before.metadata, managedFields: [] } };

    expect(entries(written(before, after, { by: "m1", kind, subresource: "status" }))).toEqual(
      entries(before),
    );
  });
});

describe("many managers", () => {
  test("the eleventh makes the two oldest one, called ancient-changes", () => {
    let object = written(undefined, configMap({ k0: "" }), { by: "m0" });
    const data: Record<string, string> = { k0: "" };
    for (let index = 1; index <= 12; index++) {
      data[`k${index}`] = "";
      object = written(object, configMap({ ...data }), { by: `m${index}`, second: index });
    }

    expect(entries(object)).toHaveLength(10);
    expect(owners(object)[0]).toBe(
      "ancient-changes Update 03 {f:data:{.:{},f:k0:{},f:k1:{},f:k2:{},f:k3:{}}}",
    );
    expect(owners(object).at(-1)).toBe("m12 Update 12 {f:data:{f:k12:{}}}");
  });

  test("entries stand by age, then by name", () => {
    const created = written(undefined, configMap({ a: "1" }), { by: "z", second: 1 });
    const second = written(created, configMap({ a: "1", b: "1" }), { by: "y", second: 1 });
    const third = written(second, configMap({ a: "1", b: "1", c: "1" }), { by: "a", second: 2 });

    expect(entries(third).map(({ manager }) => manager)).toEqual(["y", "z", "a"]);
  });

  test("an entry in a version nobody serves is dropped", () => {
    const created = written(undefined, configMap({ a: "1" }), { by: "m1" });
    const [entry] = entries(created);
    const old = withManagedFields(created, [{ ...entry, apiVersion: "v0" }, entry!]);

    expect(owners(written(old, configMap({ a: "1", b: "1" }), { by: "m1" }))).toEqual([
      "m1 Update 00 {f:data:{.:{},f:a:{},f:b:{}}}",
    ]);
  });

  test("an event keeps its owners whichever of its two groups it is written through", () => {
    const core = kindNamed("Event");
    const created = written(
      undefined,
      { metadata: { name: "e", uid: "u" }, regarding: { name: "p" }, note: "a" },
      { by: "m1", kind: { ...core, group: "events.k8s.io" } },
    );

    const { note: _note, regarding, ...rest } = created as ApiObject & { note: string; regarding: object };
    const before = { ...rest, involvedObject: regarding, message: "a" };
    const updated = written(before, { ...before, message: "b" }, { by: "m2", kind: core });

    expect(owners(updated)).toEqual(["m1 Update 00 {f:regarding:{}}", "m2 Update 00 {f:message:{}}"]);
  });
});

describe("no-op writes", () => {
  test("only times differ: nothing to write", () => {
    const a = written(undefined, configMap({ a: "1" }), { by: "m1", second: 1 });
    const b = written(undefined, configMap({ a: "1" }), { by: "m1", second: 2 });

    expect(isSameButTimes(a, b)).toBe(true);
    expect(isSameButTimes(a, withManagedFields(b, undefined))).toBe(false);
    expect(isSameButTimes(a, { ...b, data: { a: "2" } })).toBe(false);
  });
});

describe("the name of a manager", () => {
  for (const [fieldManager, userAgent, name] of [
    ["me", "kubectl/v1.32", "me"],
    [null, "kubectl/v1.32 (linux/amd64)", "kubectl"],
    ["", "Mozilla/5.0", "Mozilla"],
    [null, "no slash", "no slash"],
    [null, "", "unknown"],
    [null, undefined, "unknown"],
    [null, "be\u0007ll/1", "bell"],
    [null, "é".repeat(80), "é".repeat(64)], // 128 bytes
  ] as const) {
    test(`${JSON.stringify(fieldManager)} and ${JSON.stringify(userAgent)}: ${name}`, () => {
      expect(managerName({ fieldManager, userAgent })).toBe(name);
    });
  }
});

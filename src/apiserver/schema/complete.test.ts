import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/02-decode-objects.json" with { type: "json" };
import type { ApiObject } from "../objects.ts";
import { decodeBody } from "./body.ts";
import { completeObject } from "./complete.ts";
import type { GroupVersionKind } from "./schema.ts";

function kindOf({ apiVersion, kind }: { apiVersion: string; kind: string }): GroupVersionKind {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1), kind };
}

function roundTrip(kind: GroupVersionKind, body: unknown): ApiObject {
  const { object, warnings } = decodeBody(kind, { headers: {}, body: JSON.stringify(body) });
  expect(warnings).toEqual([]);
  return completeObject(kind, object);
}

describe("complete form", () => {
  test("36 objects of a real server come out as they went in", () => {
    for (const object of recorded.objects) expect(roundTrip(kindOf(object), object)).toEqual(object);
    expect(recorded.objects).toHaveLength(36);
  });

  test("what Go always writes is there without being sent", () => {
    const attachment = { group: "storage.k8s.io", version: "v1", kind: "VolumeAttachment" };

    expect(roundTrip(attachment, { metadata: { name: "a" } })).toEqual({
      kind: "VolumeAttachment",
      apiVersion: "storage.k8s.io/v1",
      metadata: { name: "a" },
      spec: { attacher: "", source: {}, nodeName: "" },
      status: { attached: false },
    });
  });

  test("an empty list that must be there is null, as from Go", () => {
    const node = { group: "storage.k8s.io", version: "v1", kind: "CSINode" };

    expect(roundTrip(node, { spec: { drivers: [] } })).toMatchObject({ spec: { drivers: null } });
    expect(roundTrip(node, { spec: { drivers: [{ name: "d", nodeID: "n" }] } })).toMatchObject({
      spec: { drivers: [{ name: "d", nodeID: "n", topologyKeys: null }] },
    });
  });

  test("keys stand in one order whoever sent them", () => {
    const configMap = { group: "", version: "v1", kind: "ConfigMap" };
    const body = {
      data: { b: "1", a: "2" },
      metadata: { uid: "u", name: "n" },
      apiVersion: "v1",
      kind: "ConfigMap",
    };

    expect(JSON.stringify(roundTrip(configMap, body))).toBe(
      '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u"},"data":{"a":"2","b":"1"}}',
    );
  });

  test("a key named __proto__ survives the sorting of its map", () => {
    const configMap = { group: "", version: "v1", kind: "ConfigMap" };
    const data: unknown = JSON.parse('{"b":"1","__proto__":"2"}');

    expect(JSON.stringify(roundTrip(configMap, { data })["data"])).toBe('{"__proto__":"2","b":"1"}');
  });
});

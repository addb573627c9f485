import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/15-protobuf-vectors.json" with { type: "json" };
import { StatusError } from "../errors.ts";
import { decodeBody, decodeOptions } from "./body.ts";
import { bytesField, encodeProtobuf, varintField } from "./protobuf.testing.ts";
import type { GroupVersionKind } from "./schema.ts";

const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
const pods = { group: "", version: "v1", kind: "Pod" };
const claims = { group: "", version: "v1", kind: "PersistentVolumeClaim" };
const configMaps = { group: "", version: "v1", kind: "ConfigMap" };
const leases = { group: "coordination.k8s.io", version: "v1", kind: "Lease" };

/** Lists and watch frames are answers; nobody sends them. */
const vectors = recorded.vectors.flatMap(({ path, protobufBase64, json }) =>
  json === undefined || json.kind.endsWith("List") ? [] : [{ path, protobufBase64, json }],
);

function kindOf({ apiVersion, kind }: { apiVersion: string; kind: string }): GroupVersionKind {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1), kind };
}

function decode(kind: GroupVersionKind, body: Uint8Array) {
  return decodeBody(kind, { headers, body }, "Strict").object;
}

/** A ConfigMap whose object is these bytes. */
function configMapOf(...fields: Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from("k8s\0"), bytesField(2, Buffer.concat(fields))]);
}

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 400) return error.status.message;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("recorded vectors", () => {
  for (const { path, protobufBase64, json } of vectors) {
    test(`${path} says the same in protobuf as in JSON`, () => {
      const kind = kindOf(json);

      const fromProtobuf = decode(kind, Buffer.from(protobufBase64, "base64"));

      expect(fromProtobuf).toEqual(
        decodeBody(kind, { headers: {}, body: JSON.stringify(json) }, "Strict").object,
      );
    });
  }

  test("all seventeen of them", () => {
    expect(vectors).toHaveLength(17);
  });

  test("cut off anywhere, each is an object or 400", () => {
    for (const { protobufBase64, json } of vectors) {
      const whole = Buffer.from(protobufBase64, "base64");
      const cuts = Array.from({ length: whole.length }, (_, length) => whole.subarray(0, length));

      const outcomes = new Set(cuts.map((cut) => outcomeOf(() => decode(kindOf(json), cut))));

      expect([...outcomes].sort()).toEqual(["400", "decoded"]);
    }
  });
});

function outcomeOf(call: () => unknown): string {
  try {
    call();
    return "decoded";
  } catch (error) {
    if (error instanceof StatusError) return String(error.status.code);
    throw error;
  }
}

describe("pointers", () => {
  test("zeros that Go writes for every field are dropped", () => {
    const body = encodeProtobuf(pods, { metadata: { name: "p" } });

    expect(body.length).toBeGreaterThan(60);
    expect(decode(pods, body)).toEqual({ kind: "Pod", apiVersion: "v1", metadata: { name: "p" } });
  });

  test("but an explicit zero behind a pointer is kept", () => {
    const claim = encodeProtobuf(claims, { spec: { storageClassName: "" } });
    const pod = encodeProtobuf(pods, {
      spec: { automountServiceAccountToken: false, volumes: [{ name: "v", emptyDir: {} }] },
    });
    const tokens = { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };

    expect(decode(claims, claim)["spec"]).toEqual({ storageClassName: "" });
    expect(decode(pods, pod)["spec"]).toEqual({
      automountServiceAccountToken: false,
      volumes: [{ name: "v", emptyDir: {} }],
    });
    expect(decode(tokens, encodeProtobuf(tokens, { spec: { expirationSeconds: 0 } }))["spec"]).toEqual({
      expirationSeconds: 0,
    });
  });
});

describe("values", () => {
  test("negative numbers, times before 1970, micro times and maps of lists", () => {
    const lease = { spec: { leaseDurationSeconds: -1, renewTime: "1969-12-31T23:59:59.000001Z" } };
    const reviews = { group: "authentication.k8s.io", version: "v1", kind: "TokenReview" };
    const user = { username: "u", extra: { scopes: ["a", "b"] } };

    expect(decode(leases, encodeProtobuf(leases, lease))).toMatchObject(lease);
    expect(decode(reviews, encodeProtobuf(reviews, { status: { user } }))).toMatchObject({
      status: { user },
    });
  });

  test("quantities are canonical, as from JSON", () => {
    const claim = encodeProtobuf(claims, { spec: { resources: { requests: { storage: "1024Mi" } } } });

    expect(decode(claims, claim)).toMatchObject({ spec: { resources: { requests: { storage: "1Gi" } } } });
  });

  test("numbers may be packed", () => {
    const packed = Buffer.concat([Buffer.from([1, 2]), Buffer.from("ffffffffffffffffff01", "hex")]);
    const securityContext = bytesField(14, bytesField(4, packed));
    const body = Buffer.concat([Buffer.from("k8s\0"), bytesField(2, bytesField(2, securityContext))]);

    expect(decode(pods, body)["spec"]).toEqual({ securityContext: { supplementalGroups: [1, 2, -1] } });
  });

  test("a message that comes twice is merged, of a scalar the last counts", () => {
    const name = (text: string) => bytesField(1, bytesField(1, Buffer.from(text)));
    const namespace = bytesField(1, bytesField(3, Buffer.from("n")));

    expect(decode(configMaps, configMapOf(name("a"), namespace, name("b"))).metadata).toEqual({
      name: "b",
      namespace: "n",
    });
  });

  test("numbers of a newer release are skipped, even under Strict", () => {
    const fields = [
      varintField(90, 7),
      bytesField(91, Buffer.from("text")),
      Buffer.concat([Buffer.from("e105", "hex"), Buffer.alloc(8)]), // 92, 64 bits
      Buffer.concat([Buffer.from("ed05", "hex"), Buffer.alloc(4)]), // 93, 32 bits
      Buffer.from("f305" + "0801" + "f305" + "f405" + "f405", "hex"), // 94, a group with a group in it
    ];

    expect(
      decode(configMaps, configMapOf(...fields, bytesField(1, bytesField(1, Buffer.from("n"))))).metadata,
    ).toEqual({
      name: "n",
    });
  });

  test("a key named __proto__ is a key", () => {
    const entry = Buffer.concat([bytesField(1, Buffer.from("__proto__")), bytesField(2, Buffer.from("v"))]);

    expect(JSON.stringify(decode(configMaps, configMapOf(bytesField(2, entry)))["data"])).toBe(
      '{"__proto__":"v"}',
    );
  });

  test("DeleteOptions come under the apiVersion of what they delete", () => {
    const kind = { group: "", version: "v1", kind: "DeleteOptions" };
    const body = encodeProtobuf(
      { group: "", version: "v1", kind: "DeleteOptions" },
      {
        gracePeriodSeconds: 0,
        preconditions: { uid: "u" },
        propagationPolicy: "Background",
      },
    );
    const renamed = Buffer.concat([
      Buffer.from("k8s\0"),
      bytesField(
        1,
        Buffer.concat([
          bytesField(1, Buffer.from("storage.k8s.io/v1")),
          bytesField(2, Buffer.from("DeleteOptions")),
        ]),
      ),
      body.subarray(body.indexOf("\x12", 12)),
    ]);

    for (const bytes of [body, renamed]) {
      expect(decodeOptions(kind, { headers, body: bytes })).toMatchObject({ gracePeriodSeconds: 0 });
    }
  });
});

describe("refusals", () => {
  for (const [what, body, message] of [
    ["no bytes", "", "empty data (<empty>)"],
    ["JSON", "7b7d", "does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})"],
    ["half the magic", "6b38", "expected prefix [107 56 115 0] (6b38)"],
    ["an envelope cut off", "6b387300" + "12", "unexpected EOF (6b38730012)"],
    [
      "a field cut off",
      "6b387300" + "1202" + "0a05",
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
    ],
    ["a length beyond 2 GB", "6b387300" + "1206" + "0affffffff0f", "unexpected EOF"],
    ["a length beyond all numbers", "6b387300" + "120c" + "0a" + "ff".repeat(11), "proto: integer overflow"],
    ["field 0", "6b387300" + "1202" + "0200", "proto: illegal tag 0 (wire type 2)"],
    ["a wire type nobody knows", "6b387300" + "1203" + "fe0500", "proto: illegal wireType 6"],
    ["metadata as a number", "6b387300" + "1202" + "0801", "proto: wrong wireType = 0 for field number 1"],
    [
      "the end of a group that never began",
      "6b387300" + "1202" + "f405",
      "proto: wiretype end group for non-group",
    ],
    ["a group that never ends", "6b387300" + "1202" + "f305", "unexpected EOF"],
  ] as const) {
    test(`${what} is 400`, () => {
      expect(messageOf(() => decode(configMaps, Buffer.from(body, "hex")))).toContain(message);
    });
  }

  test("another kind in the envelope is 400", () => {
    const secret = encodeProtobuf({ group: "", version: "v1", kind: "Secret" }, {});

    expect(messageOf(() => decode(configMaps, secret))).toContain(
      'Secret in version "v1" cannot be handled as a ConfigMap',
    );
  });

  test("a time outside the calendar and a quantity that is none are 400", () => {
    const metadata = (seconds: number) => configMapOf(bytesField(1, bytesField(8, varintField(1, seconds))));
    const claim = encodeProtobuf(claims, { spec: { resources: { requests: { storage: "x" } } } });

    expect(messageOf(() => decode(configMaps, metadata(2 ** 50)))).toContain("outside the years 0 to 9999");
    expect(messageOf(() => decode(claims, claim))).toContain("quantities must match the regular expression");
  });
});

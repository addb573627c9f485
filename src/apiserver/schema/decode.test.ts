import { describe, expect, test } from "vitest";
import { decodeFields } from "./decode.ts";
import { knownSchema } from "./schema.ts";

const schemas = {
  pod: knownSchema({ group: "", version: "v1", kind: "Pod" }),
  claim: knownSchema({ group: "", version: "v1", kind: "PersistentVolumeClaim" }),
  volume: knownSchema({ group: "", version: "v1", kind: "PersistentVolume" }),
  configMap: knownSchema({ group: "", version: "v1", kind: "ConfigMap" }),
  secret: knownSchema({ group: "", version: "v1", kind: "Secret" }),
  lease: knownSchema({ group: "coordination.k8s.io", version: "v1", kind: "Lease" }),
  content: knownSchema({ group: "snapshot.storage.k8s.io", version: "v1", kind: "VolumeSnapshotContent" }),
};

function decode(kind: keyof typeof schemas, value: unknown) {
  return decodeFields(schemas[kind], value).object;
}

/** The bytes of one key of a Secret. */
function secretOf(text: string): unknown {
  return decode("secret", { data: { k: text } })["data"];
}

function capacityOf(storage: unknown): unknown {
  return decode("volume", { spec: { capacity: { storage } } })["spec"];
}

describe("what is as good as absent", () => {
  test("null, empty lists and maps, and zeros where there is no pointer", () => {
    const body = {
      metadata: { name: "p", creationTimestamp: null, labels: {}, finalizers: [], generation: 0 },
      spec: { nodeName: "", hostNetwork: false, containers: [], nodeSelector: {} },
      status: {},
    };

    expect(decode("pod", body)).toEqual({ metadata: { name: "p" } });
  });

  test("but not behind a pointer, where zero says something", () => {
    const body = {
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        securityContext: {},
        volumes: [{ name: "v", emptyDir: {} }],
      },
    };

    expect(decode("pod", body)).toEqual(body);
    expect(decode("claim", { spec: { storageClassName: "" } })).toEqual({ spec: { storageClassName: "" } });
  });

  test("null in a list or a map is the zero of its type", () => {
    expect(decode("configMap", { data: { a: null } })).toEqual({ data: { a: "" } });
    expect(decode("pod", { spec: { containers: [null] } })).toEqual({ spec: { containers: [{}] } });
    expect(capacityOf(null)).toEqual({ capacity: { storage: "0" } });
  });

  test("a custom resource keeps what it was sent", () => {
    const body = { spec: { driver: "", source: {} }, status: { readyToUse: false, restoreSize: 0 } };

    expect(decode("content", body)).toEqual(body);
  });
});

describe("canonical spelling", () => {
  for (const [given, stored] of [
    ["1024Mi", "1Gi"],
    ["1500Mi", "1500Mi"],
    [" 1.5Gi ", "1536Mi"],
    ["0.5", "500m"],
    ["999", "999"],
    ["1000", "1k"],
    [5, "5"],
    ["1u", "1m"], // no resource is finer than a thousandth
    ["10Ei", "9223372036854775807"],
  ] as const) {
    test(`a capacity of ${JSON.stringify(given)} is stored as ${stored}`, () => {
      expect(capacityOf(given)).toEqual({ capacity: { storage: stored } });
    });
  }

  test("a quantity that is not in a resource list keeps its nano-units", () => {
    const volumes = (sizeLimit: string) => ({ spec: { volumes: [{ name: "v", emptyDir: { sizeLimit } }] } });

    expect(decode("pod", volumes("0.0000001"))).toEqual(volumes("100n"));
  });

  test("times are in UTC and whole seconds, micro times keep six digits", () => {
    const time = decode("configMap", { metadata: { creationTimestamp: "2026-01-01T01:00:00.9+01:00" } });
    const microTime = decode("lease", { spec: { renewTime: "2026-01-01T01:00:00.123456+01:00" } });

    expect(time).toEqual({ metadata: { creationTimestamp: "2026-01-01T00:00:00Z" } });
    expect(microTime).toEqual({ spec: { renewTime: "2026-01-01T00:00:00.123456Z" } });
    expect(decode("configMap", { metadata: { deletionTimestamp: "0001-01-01T00:00:00Z" } })).toEqual({});
  });

  for (const [given, stored] of [
    ["2026-01-31T23:59:59Z", "2026-01-31T23:59:59Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"],
    ["2026-01-01T00:00:00.123456Z", "2026-01-01T00:00:00Z"],
    ["2026-02-30T00:00:00Z", undefined],
    ["2026-01-01T24:00:00Z", undefined],
    ["2026-01-01t00:00:00z", undefined],
    ["", undefined],
  ] as const) {
    test(`the time ${JSON.stringify(given)} is ${stored === undefined ? "refused" : `stored as ${stored}`}`, () => {
      const read = () => decode("configMap", { metadata: { creationTimestamp: given } });

      if (stored === undefined) expect(read).toThrow("parsing time");
      else expect(read()).toEqual({ metadata: { creationTimestamp: stored } });
    });
  }

  for (const [given, stored] of [
    ["aGk=", "aGk="],
    ["aG\nk=", "aGk="], // wrapped by a tool
    ["aGl=", "aGk="], // stray bits behind the last byte
    ["", ""],
  ] as const) {
    test(`base64 ${JSON.stringify(given)} is stored as ${JSON.stringify(stored)}`, () => {
      expect(secretOf(given)).toEqual({ k: stored });
    });
  }

  for (const [given, at] of [
    ["!!", 0],
    ["aGk", 3],
    ["aGk=x", 3],
    ["aG-k", 2],
    ["a===", 1],
  ] as const) {
    test(`base64 ${JSON.stringify(given)} is wrong at byte ${at}`, () => {
      expect(() => secretOf(given)).toThrow(`illegal base64 data at input byte ${at}`);
    });
  }
});

describe("types", () => {
  for (const [kind, body, message] of [
    ["configMap", { data: { k: 1 } }, "number into Go struct field ConfigMap.data of type string"],
    ["configMap", { data: [] }, "array into Go struct field ConfigMap.data of type map[string]string"],
    ["configMap", { metadata: "x" }, "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"],
    ["configMap", { immutable: "yes" }, "string into Go struct field ConfigMap.immutable of type bool"],
    ["configMap", "text", "string into Go value of type v1.ConfigMap"],
    [
      "pod",
      { spec: { containers: {} } },
      "object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ],
    [
      "pod",
      { spec: { containers: [{ ports: [{ containerPort: "80" }] }] } },
      "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ],
    [
      "pod",
      { spec: { priority: 2 ** 31 } },
      "number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
    ],
    [
      "pod",
      { spec: { activeDeadlineSeconds: 1.5 } },
      "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
    ],
    [
      "pod",
      { spec: { terminationGracePeriodSeconds: Number("9223372036854775807") } },
      "into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
    ],
    ["volume", { spec: { capacity: { storage: "abc" } } }, "quantities must match the regular expression"],
    [
      "volume",
      { spec: { capacity: { storage: true } } },
      "bool into Go struct field PersistentVolumeSpec.spec.capacity",
    ],
    [
      "lease",
      { spec: { renewTime: "2026-01-01T00:00:00Z" } },
      'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.0',
    ],
  ] as const) {
    test(`${kind} ${JSON.stringify(body)} is refused`, () => {
      expect(() => decode(kind, body)).toThrow(message);
    });
  }

  test("nanoseconds since 1970 are taken, though a number in JSON cannot hold them all", () => {
    const status = { creationTime: 1_731_695_000_123_456_768 };

    expect(decode("content", { status })).toEqual({ status });
  });
});

describe("unknown fields", () => {
  test("are left out and named with their path, in the order of the text", () => {
    const body = {
      metadata: { name: "x", zzz: 1 },
      foo: null,
      spec: { containers: [{ name: "a" }, { nmae: "b" }], bogus: { a: 1 } },
    };

    const { object, unknown } = decodeFields(schemas.pod, body);

    expect(object).toEqual({ metadata: { name: "x" }, spec: { containers: [{ name: "a" }, {}] } });
    expect(unknown).toEqual(["metadata.zzz", "foo", "spec.containers[1].nmae", "spec.bogus"]);
  });

  test("names are case-sensitive", () => {
    expect(decodeFields(schemas.configMap, { Data: { a: "b" } }).unknown).toEqual(["Data"]);
  });

  test("a hundred of them are named, of any length that fits a header", () => {
    const body = Object.fromEntries(
      Array.from({ length: 500 }, (_, at) => ["x".repeat(5_000) + String(at), 1]),
    );
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`f${at}`, 1]));

    expect(decodeFields(schemas.configMap, body).unknown).toEqual([`${"x".repeat(1_024)}...`]);
    expect(decodeFields(schemas.configMap, many).unknown).toHaveLength(100);
  });

  test("keys of prototypes are keys like any other", () => {
    const body: unknown = JSON.parse(
      '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "data": {"__proto__": "v", "toString": "w"}}',
    );

    const { object, unknown } = decodeFields(schemas.configMap, body);

    expect(JSON.stringify(object)).toBe('{"data":{"__proto__":"v","toString":"w"}}');
    expect(unknown).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("however deep an unknown field nests, it is only one unknown field", () => {
    const deep: unknown = JSON.parse(`{"foo":${"[".repeat(100_000)}${"]".repeat(100_000)}}`);

    expect(decodeFields(schemas.configMap, deep).unknown).toEqual(["foo"]);
  });

  test("what is passed on without a look inside may not nest without end", () => {
    const fieldsV1: unknown = JSON.parse(`${"[".repeat(1_000)}${"]".repeat(1_000)}`);

    expect(() => decode("configMap", { metadata: { managedFields: [{ fieldsV1 }] } })).toThrow(
      "deeper than 512",
    );
  });
});

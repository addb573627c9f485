import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { serveBadInput, type BadInputServer, type Protocol, type Sent } from "./bad-input.ts";

/**
 * Whatever a client sends gets its documented answer over the real socket, is stored only if it is good, and leaves the
 * server as it was: it goes on answering, logs no fault and reaches no prototype.
 *
 * Above 600 lines because it is one table, in the order of what a client could get wrong.
 */

let server: BadInputServer;
beforeAll(async () => {
  server = await serveBadInput();
  await send("http/2", post({ metadata: { name: "there" }, data: { k: "v" } }));
});
afterAll(() => server.stop());

const PROTOCOLS: readonly Protocol[] = ["http/1.1", "http/2"];
const MAPS = "/api/v1/namespaces/default/configmaps";
const MIB = 2 ** 20;
const PROTOTYPE = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));

let revision = 0;
beforeAll(() => {
  revision = server.store.revision;
});

afterEach(async () => {
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(PROTOTYPE);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  expect(server.faults).toEqual([]);
  for (const protocol of PROTOCOLS) {
    const { status, text } = await send(protocol, { path: `${MAPS}/there` });
    expect([status, JSON.parse(text)]).toMatchObject([200, { data: { k: "v" } }]);
  }
  expect(server.store.revision, "something was stored").toBe(revision);
});

function send(protocol: Protocol, sent: Sent) {
  return server.send(protocol, sent);
}

function post(body: unknown, query = ""): Sent {
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { method: "POST", path: `${MAPS}${query}`, type: "application/json", body: text };
}

function patch(kind: string, body: unknown, query = ""): Sent {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    method: "PATCH",
    path: `${MAPS}/there${query}`,
    type: `application/${kind}`,
    body: text,
  };
}

const JSON_PATCH = "json-patch+json";
const MERGE = "merge-patch+json";
const STRATEGIC = "strategic-merge-patch+json";
const APPLY = "apply-patch+yaml";
const APPLY_OPTIONS = "?fieldManager=m";

const UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap)";
const UNHANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap';

type Row = readonly [what: string, sent: Sent, status: number, reason: string, message: string];

function refuses(rows: readonly Row[]): void {
  for (const [what, sent, status, reason, message] of rows) {
    test(`${what} is ${status} ${reason}`, async () => {
      for (const protocol of PROTOCOLS) {
        const answer = await send(protocol, sent);

        expect([protocol, answer.status, answer.text]).toEqual([protocol, status, expect.anything()]);
        expect(answer.headers["content-type"]).toBe("application/json");
        expect(JSON.parse(answer.text)).toMatchObject({
          kind: "Status",
          status: "Failure",
          code: status,
          reason,
          message: expect.stringContaining(message),
        });
      }
    });
  }
}

function nested(levels: number, [open, close]: readonly [string, string], core = "1"): string {
  return open.repeat(levels) + core + close.repeat(levels);
}

describe("malformed JSON", () => {
  refuses([
    ["nothing at all", post(""), 400, "BadRequest", UNRECOGNIZED],
    ["half an object", post('{"metadata":{"name":"a"'), 400, "BadRequest", UNRECOGNIZED],
    ["something behind the object", post('{"metadata":{"name":"a"}} x'), 400, "BadRequest", UNRECOGNIZED],
    ["a trailing comma", post('{"metadata":{"name":"a"},}'), 400, "BadRequest", UNRECOGNIZED],
    ["a NUL byte", post("\0"), 400, "BadRequest", UNRECOGNIZED],
    ["a list", post("[]"), 400, "BadRequest", UNRECOGNIZED],
    ["null", post("null"), 400, "BadRequest", UNRECOGNIZED],
    ["a number", post("1e999"), 400, "BadRequest", UNRECOGNIZED],
    [
      "text that is not UTF-8",
      post(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
      400,
      "BadRequest",
      "not UTF-8 text",
    ],
    ["a merge patch cut in half", patch(MERGE, '{"data":'), 400, "BadRequest", "error decoding patch"],
    ["a merge patch that is a list", patch(MERGE, "[]"), 400, "BadRequest", "error decoding patch"],
    ["a JSON patch that is an object", patch(JSON_PATCH, "{}"), 400, "BadRequest", "error decoding patch"],
    ["a JSON patch of numbers", patch(JSON_PATCH, "[1]"), 400, "BadRequest", ""],
    ["a strategic patch that is a text", patch(STRATEGIC, '"x"'), 400, "BadRequest", ""],
    ["YAML that is none", patch(APPLY, "a: [b", APPLY_OPTIONS), 400, "BadRequest", ""],
    [
      "two YAML documents",
      patch(APPLY, "a: 1\n---\nb: 2\n", APPLY_OPTIONS),
      400,
      "BadRequest",
      "single document",
    ],
    [
      "deletion options cut in half",
      { method: "DELETE", path: `${MAPS}/there`, type: "application/json", body: "{" },
      400,
      "BadRequest",
      "",
    ],
    [
      "protobuf without its magic",
      { method: "POST", path: MAPS, type: "application/vnd.kubernetes.protobuf", body: "{}" },
      400,
      "BadRequest",
      UNRECOGNIZED,
    ],
    [
      "protobuf of random bytes behind its magic",
      {
        method: "POST",
        path: MAPS,
        type: "application/vnd.kubernetes.protobuf",
        body: Buffer.from("6b387300ffffffffff", "hex"),
      },
      400,
      "BadRequest",
      "",
    ],
    ["XML", { ...post("<a/>"), type: "application/xml" }, 415, "UnsupportedMediaType", "unknown format"],
    ["a patch of no known kind", patch("json", "{}"), 415, "UnsupportedMediaType", ""],
  ]);
});

describe("wrong types and unknown fields", () => {
  refuses([
    ["a number for a text", post({ metadata: { name: "a" }, data: { k: 1 } }), 400, "BadRequest", UNHANDLED],
    ["a list for an object", post({ metadata: [] }), 400, "BadRequest", UNHANDLED],
    ["a text for labels", post({ metadata: { name: "a", labels: "x" } }), 400, "BadRequest", UNHANDLED],
    ["an object for a name", post({ metadata: { name: {} } }), 400, "BadRequest", UNHANDLED],
    ["a number for the kind", post({ kind: 1 }), 400, "BadRequest", UNRECOGNIZED],
    [
      "another kind",
      post({ kind: "Secret", apiVersion: "v1" }),
      400,
      "BadRequest",
      "cannot be handled as a ConfigMap",
    ],
    ["a kind nobody has", post({ kind: "__proto__" }), 400, "BadRequest", "cannot be handled as a ConfigMap"],
    [
      "base64 that is none",
      post({ metadata: { name: "a" }, binaryData: { k: "%" } }),
      400,
      "BadRequest",
      UNHANDLED,
    ],
    ["a name that is a path", post({ metadata: { name: "../../etc" } }), 422, "Invalid", "metadata.name"],
    ["no name", post({}), 422, "Invalid", "name or generateName is required"],
    [
      "another namespace",
      post({ metadata: { name: "a", namespace: "b" } }),
      400,
      "BadRequest",
      "does not match the namespace",
    ],
    ["a patch to another type", patch(MERGE, { data: { k: 1 } }), 422, "Invalid", "patch"],
    [
      "a patch to another name",
      patch(MERGE, { metadata: { name: "b" } }),
      400,
      "BadRequest",
      "does not match the name on the URL",
    ],
    [
      "unknown fields under Strict, all of them",
      post({ metadata: { name: "a", bogus: 1 }, spec: 1 }, "?fieldValidation=Strict"),
      400,
      "BadRequest",
      'strict decoding error: unknown field "metadata.bogus", unknown field "spec"',
    ],
    [
      "a key twice under Strict",
      post('{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}', "?fieldValidation=Strict"),
      400,
      "BadRequest",
      'duplicate field "data.a"',
    ],
    [
      "an unknown field of a patch under Strict",
      patch(MERGE, { bogus: 1 }, "?fieldValidation=Strict"),
      422,
      "Invalid",
      'unknown field "bogus"',
    ],
    ["a validation nobody knows", post({}, "?fieldValidation=Maybe"), 422, "Invalid", "fieldValidation"],
    ["a dry run nobody knows", post({}, "?dryRun=Some"), 422, "Invalid", "dryRun"],
    [
      "a field manager of 129 bytes",
      post({}, `?fieldManager=${"m".repeat(129)}`),
      422,
      "Invalid",
      "fieldManager",
    ],
  ]);

  test("unknown fields are dropped with a warning each, whatever they are called", async () => {
    const names = ["bogus", "\r\nset-cookie: a", 'quo"te', "ключ", "__proto__"];
    const fields = names.map((name) => `${JSON.stringify(name)}:1`).join();
    const body = `{"metadata":{"name":"warned"},${fields}}`;
    for (const protocol of PROTOCOLS) {
      const { status, headers, text } = await send(protocol, post(body, "?dryRun=All"));

      expect(status).toBe(201);
      expect(Object.keys(JSON.parse(text) as object).sort()).toEqual(["apiVersion", "kind", "metadata"]);
      expect(String(headers["warning"]).split(", 299 - ")).toHaveLength(names.length);
      expect(headers["set-cookie"]).toBeUndefined();
    }
  });
});

describe("too much of it", () => {
  const big = (bytes: number) => `{"metadata":{"name":"a"},"data":{"k":"${"x".repeat(bytes)}"}}`;
  const limit = "Request entity too large: limit is 3145728";
  refuses([
    ["a body of 3 MiB and a little", post(big(3 * MIB)), 413, "RequestEntityTooLarge", limit],
    ["a body of 12 MiB", post(big(12 * MIB)), 413, "RequestEntityTooLarge", limit],
    ["a patch of 4 MiB", patch(MERGE, big(4 * MIB)), 413, "RequestEntityTooLarge", limit],
    ["data above 1 MiB", post(big(1.1 * MIB)), 422, "Invalid", "Too long"],
    [
      "10,001 operations of a JSON patch",
      patch(
        JSON_PATCH,
        Array.from({ length: 10_001 }, () => ({ op: "test", path: "/x", value: null })),
      ),
      413,
      "RequestEntityTooLarge",
      "maximum operations in a JSON patch is 10000",
    ],
    [
      "200,000 unknown fields",
      post(`{${Array.from({ length: 200_000 }, (_, i) => `"f${i}":1`).join()}}`, "?fieldValidation=Strict"),
      400,
      "BadRequest",
      "strict decoding error",
    ],
    [
      "annotations above 256 KiB",
      post({ metadata: { name: "a", annotations: { k: "x".repeat(300_000) } } }),
      422,
      "Invalid",
      "metadata.annotations",
    ],
  ]);

  test("headers above 16 kB are refused and the next request is answered", async () => {
    const text = await server.raw(`GET /api HTTP/1.1\r\nhost: a\r\nx: ${"x".repeat(100_000)}\r\n\r\n`);

    expect(text).toMatch(/^HTTP\/1\.1 431 /);
  });
});

/** Each line has nine of the line before: 9 to the power of `lines` in a few hundred bytes. */
function aliasBomb(lines: number): string {
  const line = (index: number) =>
    `l${index}: &l${index} [${Array(9)
      .fill(`*l${index - 1}`)
      .join()}]\n`;
  return `l0: &l0 [x]\n${Array.from({ length: lines }, (_, index) => line(index + 1)).join("")}`;
}

describe("deep nesting", () => {
  const lists = ["[", "]"] as const;
  const objects = ['{"a":', "}"] as const;
  const managed = `{"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${nested(5_000, ['{"f:a":', "}"], "{}")}}]}}`;
  refuses([
    ["100,000 lists", post(nested(100_000, lists)), 400, "BadRequest", ""],
    ["100,000 objects", post(nested(100_000, objects)), 400, "BadRequest", ""],
    [
      "an unknown field of 100,000 lists",
      post(`{"metadata":{"name":"a"},"x":${nested(100_000, lists)}}`),
      400,
      "BadRequest",
      "",
    ],
    ["managed fields 5,000 deep", post(managed, "?dryRun=All"), 400, "BadRequest", "levels"],
    [
      "managed fields 5,000 deep, unvalidated",
      post(managed, "?fieldValidation=Ignore&dryRun=All"),
      400,
      "BadRequest",
      "",
    ],
    ["a merge patch 100,000 deep", patch(MERGE, nested(100_000, objects)), 400, "BadRequest", "levels"],
    [
      "a JSON patch 100,000 deep",
      patch(JSON_PATCH, `[{"op":"add","path":"/data/x","value":${nested(100_000, lists)}}]`),
      422,
      "Invalid",
      "the server rejected our request",
    ],
    [
      "a strategic patch 100,000 deep",
      patch(STRATEGIC, nested(100_000, objects)),
      400,
      "BadRequest",
      "levels",
    ],
    [
      "an applied object 100,000 deep in JSON",
      patch(APPLY, nested(100_000, objects), APPLY_OPTIONS),
      400,
      "BadRequest",
      "levels",
    ],
    [
      "an applied object 100,000 deep in YAML",
      patch(APPLY, nested(100_000, lists), APPLY_OPTIONS),
      400,
      "BadRequest",
      "levels",
    ],
    ["a bomb of YAML aliases", patch(APPLY, aliasBomb(8), APPLY_OPTIONS), 400, "BadRequest", "alias"],
  ]);
});

test("where nothing is validated, an unknown field is dropped however deep it is", async () => {
  const body = `{"metadata":{"name":"a"},"x":${nested(100_000, ["[", "]"])}}`;
  for (const protocol of PROTOCOLS) {
    const { status, text } = await send(protocol, post(body, "?fieldValidation=Ignore&dryRun=All"));

    expect(status).toBe(201);
    expect(JSON.parse(text)).not.toHaveProperty("x");
  }
});

describe("keys that are members of every object", () => {
  const evil =
    '{"metadata":{"name":"a"},"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
  refuses([
    [
      "a body that names prototypes",
      post(evil, "?fieldValidation=Strict"),
      400,
      "BadRequest",
      'unknown field "__proto__", unknown field "constructor"',
    ],
    [
      "a merge patch of a prototype",
      patch(MERGE, '{"__proto__":{"polluted":1}}', "?fieldValidation=Strict"),
      422,
      "Invalid",
      'unknown field "__proto__"',
    ],
    [
      "a strategic patch of a prototype",
      patch(STRATEGIC, '{"__proto__":{"polluted":1}}', "?fieldValidation=Strict"),
      422,
      "Invalid",
      'unknown field "__proto__"',
    ],
    [
      "a JSON patch below a prototype",
      patch(JSON_PATCH, [{ op: "add", path: "/__proto__/polluted", value: 1 }]),
      422,
      "Invalid",
      "the server rejected our request",
    ],
    [
      "a JSON patch below a constructor",
      patch(JSON_PATCH, [{ op: "add", path: "/constructor/prototype/polluted", value: 1 }]),
      422,
      "Invalid",
      "the server rejected our request",
    ],
    [
      "an applied prototype",
      patch(
        APPLY,
        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"},"__proto__":{"polluted":1}}`,
        `${APPLY_OPTIONS}&fieldValidation=Strict`,
      ),
      400,
      "BadRequest",
      "__proto__",
    ],
    [
      "labels named so",
      post('{"metadata":{"name":"a","labels":{"__proto__":"polluted"}}}'),
      422,
      "Invalid",
      "metadata.labels",
    ],
    [
      "a field selector of a prototype",
      { path: "/api/v1/pods?fieldSelector=__proto__%3D1" },
      400,
      "BadRequest",
      "field label not supported: __proto__",
    ],
    [
      "a field selector of a constructor",
      { path: `${MAPS}?fieldSelector=constructor%3D1` },
      400,
      "BadRequest",
      '"constructor" is not a known field selector',
    ],
    [
      "a resource named __proto__",
      { path: "/api/v1/__proto__" },
      404,
      "NotFound",
      "could not find the requested resource",
    ],
    [
      "a resource named constructor",
      { path: "/apis/storage.k8s.io/v1/constructor" },
      404,
      "NotFound",
      "could not find the requested resource",
    ],
    [
      "a version named toString",
      { path: "/api/toString" },
      404,
      "NotFound",
      "could not find the requested resource",
    ],
    [
      "a subresource named __proto__",
      { path: `${MAPS}/there/__proto__` },
      404,
      "NotFound",
      "could not find the requested resource",
    ],
    [
      "an object named __proto__",
      { path: `${MAPS}/__proto__` },
      404,
      "NotFound",
      'configmaps "__proto__" not found',
    ],
    [
      "a namespace named __proto__",
      { ...post({ metadata: { name: "a" } }), path: "/api/v1/namespaces/__proto__/configmaps" },
      404,
      "NotFound",
      'namespaces "__proto__" not found',
    ],
  ]);

  test("a label that nobody set selects nothing, though every object inherits its name", async () => {
    for (const key of ["constructor", "toString", "hasOwnProperty"]) {
      const { status, text } = await send("http/2", { path: `${MAPS}?labelSelector=${key}` });

      expect([status, JSON.parse(text)]).toMatchObject([200, { items: [] }]);
    }
  });
});

describe("selectors and other parameters", () => {
  const list = (query: string): Sent => ({ path: `${MAPS}?${query}` });
  const label = (text: string) => list(`labelSelector=${encodeURIComponent(text)}`);
  const field = (text: string) => list(`fieldSelector=${encodeURIComponent(text)}`);
  const parse = "unable to parse requirement";
  refuses([
    [
      "two words",
      label("a b"),
      400,
      "BadRequest",
      `${parse}: found 'b', expected: in, notin, =, ==, !=, gt, lt`,
    ],
    ["an open bracket", label("a in (b"), 400, "BadRequest", parse],
    ["no key", label("=b"), 400, "BadRequest", "found '=', expected: !, identifier"],
    ["a key with blanks and signs", label("a/b/c=d"), 400, "BadRequest", parse],
    ["a value of 64 characters", label(`a=${"x".repeat(64)}`), 400, "BadRequest", parse],
    ["a comparison with a text", label("a>b"), 400, "BadRequest", ""],
    ["a comma alone", label(","), 400, "BadRequest", "found ',', expected: !, identifier"],
    ["1,000 brackets", label("a in (".repeat(1_000)), 400, "BadRequest", parse],
    [
      "a field selector without a sign",
      field("x"),
      400,
      "BadRequest",
      "invalid selector: 'x'; can't understand 'x'",
    ],
    [
      "a field nobody selects by",
      field("data.k=v"),
      400,
      "BadRequest",
      '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ["a field selector that ends in a backslash", field("metadata.name=a\\"), 400, "BadRequest", "invalid"],
    ["a limit that is a word", list("limit=many"), 400, "BadRequest", "limit"],
    ["a limit past all integers", list("limit=99999999999999999999"), 400, "BadRequest", "limit"],
    ["a version that is a word", list("resourceVersion=new"), 400, "BadRequest", "resourceVersion"],
    ["a negative version", list("resourceVersion=-1"), 400, "BadRequest", "resourceVersion"],
    ["a match without a version", list("resourceVersionMatch=Exact"), 422, "Invalid", "resourceVersionMatch"],
    [
      "a match nobody knows",
      list("resourceVersion=1&resourceVersionMatch=Near"),
      422,
      "Invalid",
      "resourceVersionMatch",
    ],
    ["a token that is none", list("continue=%00%ff"), 400, "BadRequest", "continue"],
    [
      "a token with a version and continue",
      list("continue=abc&resourceVersion=1"),
      400,
      "BadRequest",
      "specifying resource version is not allowed when using continue",
    ],
    [
      "initial events for a list",
      list("sendInitialEvents=true"),
      422,
      "Invalid",
      "sendInitialEvents is forbidden for list",
    ],
    [
      "a watch with initial events and no match",
      list("watch=1&sendInitialEvents=true"),
      422,
      "Invalid",
      "resourceVersionMatch",
    ],
    ["a watch with a selector that is none", list("watch=1&labelSelector=a%20b"), 400, "BadRequest", parse],
    ["a timeout that is a word", list("watch=1&timeoutSeconds=soon"), 400, "BadRequest", "timeoutSeconds"],
  ]);
});

describe("paths", () => {
  const resource = "the server could not find the requested resource";
  refuses([
    ["an escaped slash in a name", { path: `${MAPS}/a%2Fb` }, 404, "NotFound", resource],
    [
      "an escaped slash in a namespace",
      { path: "/api/v1/namespaces/a%2Fb/configmaps" },
      404,
      "NotFound",
      resource,
    ],
    ["dots in place of a name", { path: `${MAPS}/%2e%2e` }, 404, "NotFound", ""],
    [
      "dots in place of a namespace",
      { path: "/api/v1/namespaces/%2e%2e/configmaps/there" },
      404,
      "NotFound",
      "",
    ],
    ["a NUL in a name", { path: `${MAPS}/there%00` }, 404, "NotFound", "not found"],
    [
      "a namespaced object without its namespace",
      { path: "/api/v1/configmaps/there" },
      404,
      "NotFound",
      resource,
    ],
    [
      "a cluster's object in a namespace",
      { path: "/api/v1/namespaces/default/nodes" },
      404,
      "NotFound",
      resource,
    ],
    ["a version nobody serves", { path: "/api/v2/pods" }, 404, "NotFound", resource],
    [
      "something below a subresource",
      { path: "/api/v1/namespaces/default/pods/a/status/b" },
      404,
      "NotFound",
      resource,
    ],
    ["a name of 5,000 characters", { path: `${MAPS}/${"a".repeat(5_000)}` }, 404, "NotFound", "not found"],
    [
      "POST to an object",
      { ...post({}), path: `${MAPS}/there` },
      405,
      "MethodNotAllowed",
      "does not allow this method",
    ],
    [
      "PUT to a collection",
      { ...post({}), method: "PUT" },
      405,
      "MethodNotAllowed",
      "does not allow this method",
    ],
    [
      "DELETE across namespaces",
      { method: "DELETE", path: "/api/v1/configmaps" },
      405,
      "MethodNotAllowed",
      "does not allow this method",
    ],
    ["OPTIONS", { method: "OPTIONS", path: MAPS }, 405, "MethodNotAllowed", "does not allow this method"],
    [
      "a method nobody has",
      { method: "PROPFIND", path: MAPS },
      405,
      "MethodNotAllowed",
      "does not allow this method",
    ],
  ]);

  for (const path of [
    "//api/v1/namespaces",
    "/api//v1/namespaces",
    `${MAPS}/../secrets`,
    "/api/v1/namespaces/default/configmaps//there",
    "/%",
    "/%ff",
    "/apis/no.such.group/v1",
    "/apis/__proto__/v1",
    "/../../etc/passwd",
    "/healthz/../api",
  ]) {
    test(`GET ${path} names nothing`, async () => {
      for (const protocol of PROTOCOLS) {
        const { status, text } = await send(protocol, { path });

        expect([protocol, path, status]).toEqual([protocol, path, 404]);
        expect(text).not.toContain('"items"');
      }
    });
  }

  test("what is not HTTP is refused in HTTP, and two lengths are not believed", async () => {
    const head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: a\r\n";
    for (const bytes of [
      "\x16\x03\x01 hello\r\n\r\n",
      "GET /api HTTP/9.9\r\n\r\n",
      "GET api HTTP/1.1\r\nhost: a\r\n\r\n",
      `${head}content-length: -1\r\n\r\n`,
      `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n{}`,
      `${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${head}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    ]) {
      expect(await server.raw(bytes), bytes).toMatch(/^HTTP\/1\.1 400 /);
    }
  });
});

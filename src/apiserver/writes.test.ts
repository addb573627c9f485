import { describe, expect, test } from "vitest";
import { NAMESPACE_WAIT_MS } from "./prerequisites.ts";
import { givenServer } from "./scenario.testing.ts";

const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/t/leases";
const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";
const MERGE = { type: "application/merge-patch+json" };
const STRATEGIC = { type: "application/strategic-merge-patch+json" };
const JSON_PATCH = { type: "application/json-patch+json" };

describe("create", () => {
  test("the server sets uid, time and version, whatever the client says; the answer is what is stored", async () => {
    const { send, ok, store, clock } = await givenServer();

    const { status, body } = await send("POST", CONFIG_MAPS, {
      metadata: {
        name: "a",
        uid: "mine",
        creationTimestamp: null,
        generation: 7,
        managedFields: [{}],
        selfLink: "x",
      },
      data: { k: "v" },
    });

    expect(status).toBe(201);
    expect(body).toEqual({
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: {
        name: "a",
        namespace: "t",
        uid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4/) as string,
        resourceVersion: String(store.revision),
        creationTimestamp: clock.wall().toISOString().replace(".000", ""),
        managedFields: [expect.objectContaining({ operation: "Update", fieldsType: "FieldsV1" })],
      },
      data: { k: "v" },
    });
    expect(await ok("GET", `${CONFIG_MAPS}/a`)).toEqual(body);
  });

  test("generateName keeps 58 characters and adds five", async () => {
    const { ok } = await givenServer();

    const { metadata } = await ok("POST", CONFIG_MAPS, { metadata: { generateName: `${"a".repeat(80)}-` } });

    expect(metadata.name).toMatch(/^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  test("a name that is taken is 409 AlreadyExists", async () => {
    const { ok, send } = await givenServer();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } });

    const { status, body } = await send("POST", CONFIG_MAPS, { metadata: { name: "a" } });

    expect([status, body.reason, body.message]).toEqual([
      409,
      "AlreadyExists",
      'configmaps "a" already exists',
    ]);
    expect(body.details).toEqual({ name: "a", kind: "configmaps" });
  });

  test("status is the controllers' to set: a create cannot bring it, and defaults stand in", async () => {
    const { ok } = await givenServer();

    const attachment = await ok("POST", ATTACHMENTS, {
      metadata: { name: "va" },
      spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "p" } },
      status: { attached: true },
    });

    expect(attachment.status).toEqual({ attached: false });
  });

  test("a dry run answers as if and stores nothing", async () => {
    const { send, store } = await givenServer();
    const before = store.revision;

    const dry = await send("POST", `${CONFIG_MAPS}?dryRun=All`, { metadata: { name: "dry" } });

    expect(dry.status).toBe(201);
    expect(dry.body.metadata).not.toHaveProperty("resourceVersion");
    expect((await send("GET", `${CONFIG_MAPS}/dry`)).status).toBe(404);
    expect(store.revision).toBe(before);
  });

  test("stringData of a Secret is folded into data and never shown", async () => {
    const { ok } = await givenServer();

    const secret = await ok("POST", "/api/v1/namespaces/t/secrets", {
      metadata: { name: "s" },
      data: { a: "AA==" },
      stringData: { b: "x" },
    });

    expect(secret).not.toHaveProperty("stringData");
    expect(secret.data).toEqual({ a: "AA==", b: "eA==" });
  });

  const named = { metadata: { name: "b" } };
  for (const [what, path, body, status, message] of [
    [
      "a namespace that is not there",
      "/api/v1/namespaces/nope/configmaps",
      named,
      404,
      'namespaces "nope" not found',
    ],
    ["no name", CONFIG_MAPS, { metadata: {} }, 422, "name or generateName is required"],
    ["a bad name", CONFIG_MAPS, { metadata: { name: "Bad_Name" } }, 422, "lowercase RFC 1123 subdomain"],
    [
      "a namespace name with a dot",
      "/api/v1/namespaces",
      { metadata: { name: "a.b" } },
      422,
      "RFC 1123 label",
    ],
    [
      "another namespace in the body",
      CONFIG_MAPS,
      { metadata: { name: "b", namespace: "o" } },
      400,
      "does not match",
    ],
    [
      "a resourceVersion",
      CONFIG_MAPS,
      { metadata: { name: "b", resourceVersion: "5" } },
      400,
      "should not be set",
    ],
    ["another kind", CONFIG_MAPS, { kind: "Secret", ...named }, 400, "cannot be handled as a ConfigMap"],
    ["another version", CONFIG_MAPS, { apiVersion: "v2", ...named }, 400, "cannot be handled as a ConfigMap"],
    ["broken JSON", CONFIG_MAPS, '{"bad', 400, "must be of type ConfigMap"],
    ["a list", CONFIG_MAPS, "[]", 400, "must be of type ConfigMap"],
    ["nothing", CONFIG_MAPS, "", 400, "must be of type ConfigMap"],
    [
      "labels that are no strings",
      CONFIG_MAPS,
      { metadata: { name: "b", labels: { a: 1 } } },
      400,
      "cannot unmarshal number into Go struct field",
    ],
    [
      "200,000 nested lists",
      CONFIG_MAPS,
      `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      400,
      "nests deeper",
    ],
    ["an unknown dryRun", `${CONFIG_MAPS}?dryRun=foo`, named, 422, "dryRun"],
    ["an unknown fieldValidation", `${CONFIG_MAPS}?fieldValidation=Bogus`, named, 422, "fieldValidation"],
    ["all namespaces at once", "/api/v1/configmaps", named, 405, "does not allow this method"],
  ] as const) {
    test(`${what}: ${status}, and nothing is stored`, async () => {
      const { send, store, scheduler } = await givenServer();
      const before = store.revision;

      const sent = send("POST", path, body);
      await scheduler.runFor(NAMESPACE_WAIT_MS);
      const answer = await sent;

      expect(answer.status).toBe(status);
      expect(answer.body).toMatchObject({
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: status,
      });
      expect(answer.body.message).toContain(message);
      expect(store.revision).toBe(before);
    });
  }

  test("YAML is a body like any other, for POST and PUT, with warnings about its fields", async () => {
    const { send, ok } = await givenServer();
    const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: one\n  k: two\nfoo: 1\n";

    const created = await send("POST", CONFIG_MAPS, yaml, { type: "application/yaml" });
    const replaced = await ok("PUT", `${CONFIG_MAPS}/a`, yaml.replace("two", "three"), {
      type: "application/yaml",
    });
    const strict = await send("POST", `${CONFIG_MAPS}?fieldValidation=Strict`, yaml, {
      type: "application/yaml",
    });

    expect([created.status, created.body.data]).toEqual([201, { k: "two" }]);
    expect(created.headers["warning"]).toBe(
      '299 - "unknown field \\"foo\\"", 299 - "duplicate field \\"data.k\\""',
    );
    expect(replaced.data).toEqual({ k: "three" });
    expect(strict.status).toBe(400);
  });

  test("what is neither JSON nor YAML nor protobuf is 415 and says what is", async () => {
    const { send } = await givenServer();

    const { status, body } = await send("POST", CONFIG_MAPS, "a,b", { type: "text/csv" });

    expect([status, body.message]).toEqual([
      415,
      "the body of the request was in an unknown format - accepted media types include: " +
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    ]);
  });

  test("a body above 3 MiB is 413; protobuf without its magic is 400", async () => {
    const { send } = await givenServer();

    const large = await send("POST", CONFIG_MAPS, {
      metadata: { name: "a" },
      data: { k: "x".repeat(3_300_000) },
    });
    const proto = await send("POST", CONFIG_MAPS, "k9s\0", { type: "application/vnd.kubernetes.protobuf" });

    expect([large.status, large.body.message]).toEqual([413, "Request entity too large: limit is 3145728"]);
    expect([proto.status, proto.body.reason]).toEqual([400, "BadRequest"]);
  });

  test("a key named __proto__ is data like any other", async () => {
    const { send, ok } = await givenServer();

    await send(
      "POST",
      CONFIG_MAPS,
      '{"metadata":{"name":"p"},"data":{"__proto__":"x"},"__proto__":{"polluted":1}}',
    );

    expect(Object.hasOwn((await ok("GET", `${CONFIG_MAPS}/p`)).data, "__proto__")).toBe(true);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe("update", () => {
  async function given(object: object = { metadata: { name: "a" }, data: { k: "1" } }) {
    const server = await givenServer();
    return { ...server, stored: await server.ok("POST", CONFIG_MAPS, object) };
  }

  test("two clients that read the same version: one is 200, the other 409, and the first's word stands", async () => {
    const { send, ok, stored } = await given();

    const [first, second] = await Promise.all(
      ["2", "3"].map((k) => send("PUT", `${CONFIG_MAPS}/a`, { ...stored, data: { k } })),
    );

    expect([first?.status, second?.status]).toEqual([200, 409]);
    expect(second?.body).toMatchObject({
      reason: "Conflict",
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    });
    expect((await ok("GET", `${CONFIG_MAPS}/a`)).data).toEqual({ k: "2" });
  });

  test("an identical object is 200 with the same version and makes no revision", async () => {
    const { send, store, stored } = await given();
    const before = store.revision;

    const { status, body } = await send("PUT", `${CONFIG_MAPS}/a`, stored);

    expect([status, body]).toEqual([200, stored]);
    expect(store.revision).toBe(before);
  });

  test("without a version it replaces, but the server's own fields stay", async () => {
    const { ok, stored } = await given();

    const updated = await ok("PUT", `${CONFIG_MAPS}/a`, { metadata: { name: "a" }, data: { z: "1" } });

    expect(updated.data).toEqual({ z: "1" });
    expect(updated.metadata).toEqual({
      ...stored.metadata,
      resourceVersion: updated.metadata.resourceVersion,
      managedFields: [expect.objectContaining({ fieldsV1: { "f:data": { ".": {}, "f:z": {} } } })],
    });
  });

  for (const [what, metadata, status, message] of [
    ["another uid", { name: "a", uid: "0" }, 409, "UID in precondition"],
    ["another name", { name: "b" }, 400, "does not match the name on the URL (a)"],
    ["another namespace", { name: "a", namespace: "o" }, 400, "does not match the namespace"],
  ] as const) {
    test(`${what} in the body is ${status}`, async () => {
      const { send } = await given();

      const answer = await send("PUT", `${CONFIG_MAPS}/a`, { metadata });

      expect(answer.status).toBe(status);
      expect(answer.body.message).toContain(message);
    });
  }

  test("what is not there is 404, except that leases and events are created", async () => {
    const { send } = await givenServer();

    expect((await send("PUT", `${CONFIG_MAPS}/zz`, { metadata: { name: "zz" } })).status).toBe(404);
    expect((await send("PUT", `${LEASES}/l`, { metadata: { name: "l" }, spec: {} })).status).toBe(201);
    const event = { metadata: { name: "e" }, involvedObject: { kind: "Pod", name: "p", namespace: "t" } };
    expect((await send("PUT", "/api/v1/namespaces/t/events/e", event)).status).toBe(201);
  });

  test("kinds with several writers want a version: 422 without, named by their plural", async () => {
    const { ok, send } = await givenServer();
    await ok("PUT", `${LEASES}/l`, { metadata: { name: "l" } });

    const { status, body } = await send("PUT", `${LEASES}/l`, {
      metadata: { name: "l" },
      spec: { holderIdentity: "y" },
    });

    expect([status, body.details.kind]).toEqual([422, "leases"]);
    expect(body.details.causes[0]).toMatchObject({
      reason: "FieldValueInvalid",
      field: "metadata.resourceVersion",
    });
  });

  test("generation counts changes of the spec: pods from 1, CSI drivers from nothing", async () => {
    const { ok } = await givenServer();
    const pods = "/api/v1/namespaces/t/pods";
    const drivers = "/apis/storage.k8s.io/v1/csidrivers";
    const pod = await ok("POST", pods, {
      metadata: { name: "p" },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    const driver = await ok("POST", drivers, { metadata: { name: "d" }, spec: {} });
    expect([pod.metadata.generation, driver.metadata.generation]).toEqual([1, undefined]);

    const podLabelled = await ok("PATCH", `${pods}/p`, { metadata: { labels: { a: "b" } } }, MERGE);
    const podChanged = await ok("PATCH", `${pods}/p`, { spec: { activeDeadlineSeconds: 5 } }, MERGE);
    const driverChanged = await ok("PATCH", `${drivers}/d`, { spec: { requiresRepublish: true } }, MERGE);

    expect([podLabelled, podChanged, driverChanged].map(({ metadata }) => metadata.generation)).toEqual([
      1, 2, 1,
    ]);
  });
});

describe("status", () => {
  test("the object and its status are written apart", async () => {
    const { ok } = await givenServer();
    const claims = "/api/v1/namespaces/t/persistentvolumeclaims";
    const claim = await ok("POST", claims, {
      metadata: { name: "c" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    });

    const main = await ok("PUT", `${claims}/c`, { ...claim, status: { phase: "Bound" } });
    const status = await ok("PUT", `${claims}/c/status`, {
      ...claim,
      metadata: { ...main.metadata, labels: { l: "2" } },
      spec: { volumeName: "x" },
      status: { phase: "Bound" },
    });

    expect(main.status).toEqual({ phase: "Pending" });
    expect([status.status, status.spec]).toEqual([{ phase: "Bound" }, claim.spec]);
    expect(status.metadata.labels).toEqual({ l: "2" });
  });

  test("an attachment's status cannot touch its finalizers", async () => {
    const { ok } = await givenServer();
    await ok("POST", ATTACHMENTS, {
      metadata: { name: "va", finalizers: ["ex.io/f"] },
      spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "pv" } },
    });

    const patch = { metadata: { finalizers: null, labels: { a: "b" } }, status: { attached: true } };
    const patched = await ok("PATCH", `${ATTACHMENTS}/va/status`, patch, MERGE);

    expect(patched.status).toEqual({ attached: true });
    expect(patched.metadata).toMatchObject({ finalizers: ["ex.io/f"] });
    expect(patched.metadata.labels).toBeUndefined();
  });
});

describe("patch", () => {
  async function given() {
    const server = await givenServer();
    await server.ok("POST", CONFIG_MAPS, { metadata: { name: "a" }, data: { k: "1" } });
    return server;
  }

  test("a hundred merge patches at once are all applied", async () => {
    const { ok, store } = await given();
    const before = store.revision;

    await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        ok("PATCH", `${CONFIG_MAPS}/a`, { metadata: { annotations: { [`n${n}`]: "x" } } }, MERGE),
      ),
    );

    const { metadata } = await ok("GET", `${CONFIG_MAPS}/a`);
    expect(Object.keys(metadata.annotations ?? {})).toHaveLength(100);
    expect(store.revision).toBe(before + 100);
  });

  test("a finalizer is added under a test that there is none; the second time that test fails", async () => {
    const { send } = await given();
    const operations = [
      { op: "test", path: "/metadata/finalizers", value: null },
      { op: "add", path: "/metadata/finalizers", value: ["ex.io/f"] },
    ];

    const first = await send("PATCH", `${CONFIG_MAPS}/a`, operations, JSON_PATCH);
    const second = await send("PATCH", `${CONFIG_MAPS}/a`, operations, JSON_PATCH);

    expect([first.status, first.body.metadata.finalizers]).toEqual([200, ["ex.io/f"]]);
    expect([second.status, second.body.reason, second.body.message]).toEqual([
      422,
      "Invalid",
      "the server rejected our request due to an error in our request",
    ]);
  });

  test("a version in the patch is a precondition", async () => {
    const { send } = await given();

    const { status } = await send(
      "PATCH",
      `${CONFIG_MAPS}/a`,
      { metadata: { resourceVersion: "3" }, data: {} },
      MERGE,
    );

    expect(status).toBe(409);
  });

  test("a strategic patch cannot change the kind, and does not fail for trying", async () => {
    const { ok } = await given();

    const patched = await ok("PATCH", `${CONFIG_MAPS}/a`, { kind: "Pod", data: { l: "2" } }, STRATEGIC);

    expect(patched).toMatchObject({ kind: "ConfigMap", data: { k: "1", l: "2" } });
  });

  for (const [what, type, body, status, message] of [
    ["no type", "", "{}", 415, "415: Unsupported Media Type"],
    ["broken JSON", "application/merge-patch+json", "{", 400, "error decoding patch"],
    ["a merge patch that is a list", "application/merge-patch+json", "[]", 400, "error decoding patch"],
    [
      "another name",
      "application/merge-patch+json",
      '{"metadata":{"name":"b"}}',
      400,
      "does not match the name",
    ],
    [
      "another kind",
      "application/merge-patch+json",
      '{"kind":"Pod"}',
      422,
      "patch: Invalid value: converting (v1.Pod) to (core.ConfigMap): unknown conversion",
    ],
  ] as const) {
    test(`${what} is ${status}`, async () => {
      const { send } = await given();

      const answer = await send("PATCH", `${CONFIG_MAPS}/a`, body, { type });

      expect(answer.status).toBe(status);
      expect(answer.body.message).toContain(message);
    });
  }
});

test("/approval of a certificate request changes its conditions and nothing else of its status", async () => {
  const { ok } = await givenServer();
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const request = Buffer.from("-----BEGIN CERTIFICATE REQUEST-----").toString("base64");
  const spec = { request, signerName: "ex.io/signer", usages: ["client auth"] };
  await ok("POST", requests, { metadata: { name: "r" }, spec });
  const approved = { type: "Approved", status: "True", reason: "ByHand" };
  const merge = { type: "application/merge-patch+json" };

  await ok(
    "PATCH",
    `${requests}/r/approval`,
    { status: { certificate: "bm90IG1pbmU=", conditions: [approved] } },
    merge,
  );
  const read = await ok("GET", `${requests}/r/approval`);
  const put = await ok("PUT", `${requests}/r/approval`, {
    ...read,
    status: { conditions: [approved, { type: "Extra", status: "True" }] },
  });

  expect(read["status"]).toMatchObject({ conditions: [approved] });
  expect(read["status"]).not.toHaveProperty("certificate");
  expect((put["status"] as { conditions: unknown[] }).conditions).toHaveLength(2);
});

import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createClient } from "./api-client.ts";
import { LATENCY_CUT_MIN } from "./concurrency.ts";
import { configMaps } from "../api/config-map.ts";
import { volumeAttachments } from "../api/volume-attachment.ts";
import { KubeError } from "../errors.ts";
import type { TransportRequest, TransportResponse } from "../transport/transport.ts";

type Answer = Partial<TransportResponse> | Error | "hang";

/** A client whose server answers from a script; the last answer repeats. */
function given(...script: readonly [Answer, ...Answer[]]) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const sent: (TransportRequest & { readonly atMs: number })[] = [];
  async function answer(request: TransportRequest): Promise<TransportResponse> {
    sent.push({ ...request, atMs: scheduler.nowMs });
    const next = script[Math.min(sent.length, script.length) - 1];
    if (next === "hang") await clock.sleep(10_000_000, request.signal);
    if (next instanceof Error) throw next;
    return { status: 200, headers: {}, body: "{}", ...(next as Partial<TransportResponse>) };
  }
  const transport = {
    request: answer,
    stream: async (request: TransportRequest) => {
      const response = await answer(request);
      async function* body() {
        yield Buffer.from(response.body);
      }
      return { ...response, body: body() };
    },
    close: async () => undefined,
  };
  const client = createClient({ transport, clock, random: createSeededRandom(2) });
  /** Lets virtual time pass until the call is over. */
  async function outcome<T>(call: Promise<T>): Promise<T | KubeError> {
    let result: T | KubeError | undefined;
    void call.then(
      (value) => (result = value),
      (error: unknown) => (result = error as KubeError),
    );
    await scheduler.runUntilTrue(() => result !== undefined, { withinMs: 600_000 });
    return result as T | KubeError;
  }
  return { client, sent, outcome };
}

const web = { namespace: "default", name: "web" };
const lost = new KubeError("ConnectionLost", "reset");
const refused = new KubeError("Unreachable", "refused");
const status = (code: number, reason: string, headers: Record<string, string> = {}): Answer => ({
  status: code,
  headers,
  body: JSON.stringify({ kind: "Status", status: "Failure", reason, code, message: `it says ${reason}` }),
});
const object = { metadata: web, data: { a: "1" } };

describe("what goes over the wire", () => {
  for (const [what, call, method, path, body] of [
    ["get", (c) => c.get(configMaps, web), "GET", "/api/v1/namespaces/default/configmaps/web", undefined],
    [
      "get, cluster scoped",
      (c) => c.get(volumeAttachments, { name: "csi-1" }),
      "GET",
      "/apis/storage.k8s.io/v1/volumeattachments/csi-1",
      undefined,
    ],
    [
      "list",
      (c) => c.list(configMaps, { labelSelector: "a in (b,c)", limit: 5 }),
      "GET",
      "/api/v1/configmaps?labelSelector=a+in+%28b%2Cc%29&limit=5",
      undefined,
    ],
    [
      "create",
      (c) => c.create(configMaps, object),
      "POST",
      "/api/v1/namespaces/default/configmaps?fieldManager=mooring",
      { apiVersion: "v1", kind: "ConfigMap", ...object },
    ],
    [
      "update of status",
      (c) => c.update(configMaps, object, { subresource: "status", dryRun: true }),
      "PUT",
      "/api/v1/namespaces/default/configmaps/web/status?fieldManager=mooring&dryRun=All",
      { apiVersion: "v1", kind: "ConfigMap", ...object },
    ],
    [
      "delete",
      (c) => c.delete(configMaps, web, { preconditions: { uid: "u" }, gracePeriodSeconds: 0 }),
      "DELETE",
      "/api/v1/namespaces/default/configmaps/web",
      { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid: "u" }, gracePeriodSeconds: 0 },
    ],
    [
      "forced apply",
      (c) =>
        c.patch(configMaps, web, { type: "apply", value: { a: 1 }, force: true }, { fieldManager: "me" }),
      "PATCH",
      "/api/v1/namespaces/default/configmaps/web?force=true&fieldManager=me",
      { a: 1 },
    ],
  ] as const satisfies readonly (readonly [
    string,
    (c: ReturnType<typeof given>["client"]) => Promise<unknown>,
    string,
    string,
    unknown,
  ])[]) {
    test(what, async () => {
      const { client, sent, outcome } = given({});

      await outcome<unknown>(call(client));

      expect(sent[0]).toMatchObject({ method, path });
      expect(sent[0]?.body === undefined ? undefined : JSON.parse(sent[0].body)).toEqual(body);
    });
  }

  for (const [patch, type] of [
    [{ type: "json", operations: [{ op: "remove", path: "/x" }] }, "application/json-patch+json"],
    [{ type: "merge", value: {} }, "application/merge-patch+json"],
    [{ type: "strategic", value: {} }, "application/strategic-merge-patch+json"],
    [{ type: "apply", value: {} }, "application/apply-patch+yaml"],
  ] as const) {
    test(`a ${patch.type} patch says ${type}`, async () => {
      const { client, sent, outcome } = given({});

      await outcome(client.patch(configMaps, web, patch));

      expect(sent[0]?.headers?.["content-type"]).toBe(type);
    });
  }

  test("a streaming list asks for initial events, bookmarks and the match that goes with them", async () => {
    const { client, sent, outcome } = given({});

    await outcome(client.watch(configMaps, { sendInitialEvents: true, timeoutSeconds: 300 }));

    const query = new URLSearchParams(sent[0]?.path.split("?")[1]);
    expect(Object.fromEntries(query)).toEqual({
      watch: "true",
      allowWatchBookmarks: "true",
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      timeoutSeconds: "300",
    });
  });
});

test("a field we have never heard of survives read, modify, write", async () => {
  const stored = { metadata: web, data: {}, brandNew: { nested: [1, 2] } };
  const { client, sent, outcome } = given({ body: JSON.stringify(stored) });

  const read = await outcome(client.get(configMaps, web));
  await outcome(client.update(configMaps, { ...(read as typeof stored), data: { a: "1" } }));

  expect(JSON.parse(sent[1]?.body ?? "")).toMatchObject({ brandNew: { nested: [1, 2] }, data: { a: "1" } });
});

describe("errors carry the server's reason", () => {
  for (const [answer, code] of [
    [status(404, "NotFound"), "NotFound"],
    [status(409, "AlreadyExists"), "AlreadyExists"],
    [status(409, "Conflict"), "Conflict"],
    [status(410, "Gone"), "Expired"],
    [status(422, "Invalid"), "Invalid"],
    [{ status: 403, body: "<html>proxy says no</html>" }, "Forbidden"],
    [{ status: 409, body: "" }, "Conflict"],
    [{ status: 302, body: "" }, "BadResponse"],
    [{ status: 200, body: "not json" }, "BadResponse"],
  ] as const) {
    test(`${JSON.stringify(answer).slice(0, 60)} is ${code}`, async () => {
      const { client, outcome } = given(answer);

      expect(await outcome(client.create(configMaps, object))).toMatchObject({ code });
    });
  }

  test("the message says what was attempted, on what", async () => {
    const { client, outcome } = given(status(404, "NotFound"));

    const error = await outcome(client.get(configMaps, web));

    expect((error as KubeError).message).toBe("NotFound: get configmaps default/web: it says NotFound");
  });

  test("a watch that is refused says so as an error, not as an empty stream", async () => {
    const { client, outcome } = given(status(410, "Expired"));

    expect(await outcome(client.watch(configMaps, { resourceVersion: "5" }))).toMatchObject({
      code: "Expired",
    });
  });
});

describe("what is sent again", () => {
  const get = (c: ReturnType<typeof given>["client"]) => c.get(configMaps, web);
  const create = (c: ReturnType<typeof given>["client"]) => c.create(configMaps, object);
  const apply = (c: ReturnType<typeof given>["client"]) =>
    c.patch(configMaps, web, { type: "apply", value: {} });
  const setAbsolute = (c: ReturnType<typeof given>["client"]) =>
    c.patch(configMaps, web, { type: "merge", value: { data: { a: "1" } } }, { repeatable: true });

  for (const [what, call, failure, tries] of [
    ["a read after a lost answer", get, lost, 2],
    ["a read after a 500", get, status(500, "InternalError"), 2],
    ["a read of nothing", get, status(404, "NotFound"), 1],
    ["a write that never left", create, refused, 2],
    ["a write that was turned away", create, status(429, "TooManyRequests"), 2],
    [
      "a write that was told to come back",
      create,
      status(503, "ServiceUnavailable", { "retry-after": "1" }),
      2,
    ],
    ["a write that broke something", create, status(500, "InternalError"), 1],
    ["a write whose answer was lost", create, lost, 1],
    ["an apply whose answer was lost", apply, lost, 2],
    ["an absolute patch whose answer was lost", setAbsolute, lost, 2],
  ] as const) {
    test(`${what}: ${tries === 1 ? "not" : "yes"}`, async () => {
      const { client, sent, outcome } = given(failure, {});

      await outcome<unknown>(call(client));

      expect(sent).toHaveLength(tries);
    });
  }

  test("Retry-After is never cut short, and gives up at once when the deadline is nearer", async () => {
    const patient = given(status(429, "TooManyRequests", { "retry-after": "7" }), {});
    await patient.outcome(patient.client.get(configMaps, web));
    expect((patient.sent[1]?.atMs ?? 0) - (patient.sent[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(7_000);

    const hurried = given(status(429, "TooManyRequests", { "retry-after": "7" }));
    const error = await hurried.outcome(hurried.client.get(configMaps, web, { deadlineMs: 5_000 }));

    expect(error).toMatchObject({ code: "TooManyRequests", retryAfterMs: 7_000 });
    expect(hurried.sent).toHaveLength(1);
  });

  test("tries come farther and farther apart, and end with the deadline", async () => {
    const { client, sent, outcome } = given(refused);

    const error = await outcome(client.get(configMaps, web, { deadlineMs: 30_000 }));

    expect(error).toMatchObject({ code: "Unreachable" });
    expect(sent.length).toBeGreaterThan(5);
    expect(sent.length).toBeLessThan(15);
    expect(sent.at(-1)?.atMs).toBeLessThan(30_000);
  });

  test("a server that never answers is a deadline whose outcome is unknown", async () => {
    const { client, sent, outcome } = given("hang");

    const error = await outcome(client.create(configMaps, object, { deadlineMs: 5_000 }));

    expect(error).toMatchObject({ code: "DeadlineExceeded", outcomeUnknown: true });
    expect(sent).toHaveLength(1);
  });

  test("a request that waits for its turn has not failed yet: its deadline begins when it may be sent", async () => {
    const hangs = Array.from({ length: LATENCY_CUT_MIN }, () => "hang" as const);
    const { client, sent, outcome } = given("hang", ...hangs.slice(1), {});
    for (const _ of hangs) client.get(configMaps, web, { deadlineMs: 20_000 }).catch(() => undefined);

    const answer = await outcome(client.create(configMaps, object, { deadlineMs: 5_000 }));

    expect(answer).toEqual({});
    expect(sent.at(-1)?.atMs).toBe(20_000);
  });

  test("a caller who gives up gets his own reason", async () => {
    const { client, outcome } = given("hang");
    const controller = new AbortController();
    const call = outcome(client.get(configMaps, web, { signal: controller.signal }));

    controller.abort(new Error("leadership lost"));

    expect(await call).toMatchObject({ message: "leadership lost" });
  });
});

describe("a delete whose answer was lost", () => {
  const uid = { preconditions: { uid: "u-1" } };

  test("with a uid it is sent again, and finding nothing then means that it worked", async () => {
    const { client, sent, outcome } = given(lost, status(404, "NotFound"));

    expect(await outcome(client.delete(configMaps, web, uid).then(() => "deleted"))).toBe("deleted");
    expect(sent).toHaveLength(2);
  });

  test("without a uid it might hit a namesake, so the caller has to look", async () => {
    const { client, sent, outcome } = given(lost, {});

    expect(await outcome(client.delete(configMaps, web))).toMatchObject({
      code: "ConnectionLost",
      outcomeUnknown: true,
    });
    expect(sent).toHaveLength(1);
  });

  test("finding nothing the first time is an error like any other", async () => {
    const { client, outcome } = given(status(404, "NotFound"));

    expect(await outcome(client.delete(configMaps, web, uid))).toMatchObject({ code: "NotFound" });
  });
});

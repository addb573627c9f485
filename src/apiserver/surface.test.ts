import { describe, expect, test } from "vitest";
import { createBell } from "./bell.ts";
import { TRUSTED } from "./guard.ts";
import { KINDS } from "./kinds.ts";
import { replaceObject } from "./replace.ts";
import { keyFor } from "./request.ts";
import { givenServer } from "./scenario.testing.ts";

describe("paths", () => {
  for (const [method, path, status, kind] of [
    ["GET", "/api", 200, "APIVersions"],
    ["GET", "/api/", 200, "APIVersions"],
    ["GET", "/apis", 200, "APIGroupList"],
    ["GET", "/apis/storage.k8s.io", 200, "APIGroup"],
    ["GET", "/api/v1", 200, "APIResourceList"],
    ["GET", "/apis/storage.k8s.io/v1", 200, "APIResourceList"],
    ["GET", "/api/v1/namespaces/t", 200, "Namespace"],
    ["GET", "/api/v1/namespaces/t/status", 200, "Namespace"],
    ["GET", "/api/v1/namespaces/t/pods", 200, "PodList"],
    ["GET", "/api/v1/namespaces/t/pods/", 200, "PodList"],
    ["GET", "/api/v2", 404, "Status"],
    ["GET", "/api/v1/foos", 404, "Status"],
    ["GET", "/api/v1/pods/p", 404, "Status"],
    ["GET", "/api/v1/namespaces/t/nodes", 404, "Status"],
    ["GET", "/api/v1/namespaces/t/configmaps/a/status", 404, "Status"],
    ["GET", "/api/v1/namespaces/t/configmaps/a%2Fb", 404, "Status"],
    ["GET", "/apis/storage.k8s.io/v9/storageclasses", 404, "Status"],
    ["GET", "/apis/nope.io/v1", 404, undefined],
    ["GET", "/nope", 404, undefined],
    ["GET", "//api/v1/namespaces", 404, undefined],
    ["GET", "/api/v1/%", 404, undefined],
    ["POST", "/api/v1", 405, "Status"],
    ["POST", "/api/v1/namespaces/t/pods/p", 405, "Status"],
    ["PUT", "/api/v1/namespaces/t/pods", 405, "Status"],
    ["DELETE", "/api/v1/namespaces/t/status", 405, "Status"],
    ["OPTIONS", "/api/v1/namespaces/t/pods/p", 405, "Status"],
    ["HEAD", "/api/v1/namespaces/t/pods/p", 405, "Status"],
  ] as const) {
    test(`${method} ${path} is ${status} ${kind ?? "plain text"}`, async () => {
      const { send } = await givenServer();

      const answer = await send(method, path);

      expect([answer.status, answer.body.kind]).toEqual([status, kind]);
      expect(answer.headers["content-type"]).toMatch(
        kind === undefined ? /^text\/plain/ : /^application\/json$/,
      );
    });
  }

  test("health is ok, each check by its name", async () => {
    const { send } = await givenServer();

    for (const path of ["/healthz", "/livez", "/readyz", "/livez/ping"]) {
      expect((await send("GET", path)).text).toBe("ok");
    }
    expect((await send("GET", "/readyz?verbose")).text).toBe(
      "[+]ping ok\n[+]store ok\nreadyz check passed\n",
    );
    expect((await send("GET", "/readyz/nope")).status).toBe(404);
  });

  test("discovery lists every kind with its verbs, status beside it", async () => {
    const { ok } = await givenServer();

    const core = (await ok("GET", "/api/v1")) as unknown as {
      resources: { name: string; verbs: string[] }[];
    };
    const names = core.resources.map(({ name }) => name);

    expect(names).toEqual(expect.arrayContaining(["pods", "pods/status", "persistentvolumes", "events"]));
    expect(core.resources.find(({ name }) => name === "namespaces")?.verbs).not.toContain("deletecollection");
    const kinds = KINDS.filter(({ group }) => group === "").map(({ plural }) => plural);
    expect(names.filter((name) => !name.includes("/")).sort()).toEqual(["bindings", ...kinds].sort());
  });

  test("every answer carries an audit id, the client's own where it gave one", async () => {
    const { send } = await givenServer();

    const own = await send("GET", "/api/v1/pods", undefined, { headers: { "audit-id": "mine" } });
    const made = await send("GET", "/api/v1/pods");

    expect(own.headers).toMatchObject({ "audit-id": "mine", "cache-control": "no-cache, private" });
    expect(made.headers["audit-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });

  for (const [accept, status] of [
    ["application/json", 200],
    ["", 200],
    ["*/*", 200],
    ["application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200],
    ["application/vnd.kubernetes.protobuf, */*", 200],
    ["text/html,application/xhtml+xml,*/*;q=0.8", 200],
    ["application/json;as=Table;v=v1;g=meta.k8s.io", 200],
    ["application/json;as=Graph;v=v1;g=meta.k8s.io", 406],
    ["application/*", 406],
    ["text/html", 406],
  ] as const) {
    test(`Accept: ${accept || "(empty)"} is ${status}`, async () => {
      const { send } = await givenServer();

      expect((await send("GET", "/api/v1/pods", undefined, { headers: { accept } })).status).toBe(status);
    });
  }

  test("pretty indents", async () => {
    const { send } = await givenServer();

    expect((await send("GET", "/api/v1/namespaces/t?pretty=true")).text).toContain('\n  "metadata": {\n');
    expect((await send("GET", "/api/v1/namespaces/t?pretty=false")).text.split("\n")).toHaveLength(2);
  });
});

describe("under concurrency", () => {
  test("a write that meets another looks again, and gives up with 409 after five", async () => {
    const { store, clock, ok } = await givenServer();
    await ok("POST", "/api/v1/namespaces/t/configmaps", { metadata: { name: "a" } });
    const [kind] = KINDS.filter(({ plural }) => plural === "configmaps");
    let interruptions = 0;
    const contended = (times: number) =>
      Object.create(store, {
        update: {
          value: (...args: Parameters<typeof store.update>) =>
            ++interruptions <= times ? Promise.resolve({ kind: "conflict" }) : store.update(...args),
        },
        get: { value: (...args: Parameters<typeof store.get>) => store.get(...args) },
      }) as typeof store;
    const random = { float: () => 0, int: () => 0, fork: () => random };
    const replacement = (value: string) => ({
      kind: kind!,
      key: keyFor(kind!, "t", "a"),
      subresource: undefined,
      dryRun: false,
      rights: TRUSTED,
      desire: (current: { metadata: object }) => ({ ...current, data: { value } }),
    });

    const patient = await replaceObject({ store: contended(4), clock, random }, replacement("1"));
    interruptions = 0;
    const hopeless = replaceObject({ store: contended(5), clock, random }, replacement("2"));

    expect(JSON.parse(patient)).toMatchObject({ data: { value: "1" } });
    await expect(hopeless).rejects.toMatchObject({ status: { code: 409, reason: "Conflict" } });
  });

  test("a bell rung while nobody waits is heard by the next to wait", async () => {
    const bell = createBell();
    bell.ring();
    await bell.wait();

    let woken = false;
    const waiting = bell.wait().then(() => (woken = true));
    await Promise.resolve();
    expect(woken).toBe(false);
    bell.ring();
    await waiting;

    expect(woken).toBe(true);
  });

  test("one seed makes the same uids and names, however many reads come in between", async () => {
    const make = async (reads: number) => {
      const { ok } = await givenServer();
      for (let read = 0; read < reads; read++) await ok("GET", "/api/v1/pods");
      return ok("POST", "/api/v1/namespaces/t/configmaps", { metadata: { generateName: "x-" } });
    };

    expect(await make(0)).toEqual(await make(7));
  });
});

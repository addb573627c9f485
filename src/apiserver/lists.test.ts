import { describe, expect, test } from "vitest";
import { givenServer, type Answer } from "./scenario.testing.ts";

const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";

/** `c0` to `c6`, labelled by parity. */
async function givenSeven() {
  const server = await givenServer();
  for (let n = 0; n < 7; n++) {
    await server.ok("POST", CONFIG_MAPS, {
      metadata: { name: `c${n}`, labels: { par: n % 2 === 0 ? "even" : "odd" } },
    });
  }
  const names = async (query: string) => namesOf((await server.send("GET", `${CONFIG_MAPS}${query}`)).body);
  return { ...server, names };
}

function namesOf(list: Answer): unknown[] {
  return list.items.map(({ metadata }) => metadata.name);
}

describe("pages", () => {
  test("seven objects by three come as 3, 3, 1 of one revision, whatever is written in between", async () => {
    const { ok, send } = await givenSeven();
    const first = await ok("GET", `${CONFIG_MAPS}?limit=3`);

    await ok("POST", CONFIG_MAPS, { metadata: { name: "c00" } });
    await ok("DELETE", `${CONFIG_MAPS}/c4`);
    const second = await ok("GET", `${CONFIG_MAPS}?limit=3&continue=${first.metadata.continue ?? ""}`);
    const third = (await send("GET", `${CONFIG_MAPS}?limit=3&continue=${second.metadata.continue ?? ""}`))
      .body;

    expect([first, second, third].map(namesOf)).toEqual([["c0", "c1", "c2"], ["c3", "c4", "c5"], ["c6"]]);
    expect([first, second, third].map((page) => page.metadata.remainingItemCount)).toEqual([4, 1, undefined]);
    expect(new Set([first, second, third].map((page) => page.metadata.resourceVersion)).size).toBe(1);
    expect(third.metadata.continue).toBeUndefined();
  });

  test("a page with a selector is filled with matching items and does not count the rest", async () => {
    const { ok } = await givenSeven();

    const first = await ok("GET", `${CONFIG_MAPS}?limit=3&labelSelector=par%3Deven`);
    const second = await ok(
      "GET",
      `${CONFIG_MAPS}?limit=3&labelSelector=par%3Deven&continue=${first.metadata.continue ?? ""}`,
    );

    expect([first, second].map(namesOf)).toEqual([["c0", "c2", "c4"], ["c6"]]);
    expect(first.metadata.remainingItemCount).toBeUndefined();
    expect(second.metadata.continue).toBeUndefined();
  });

  test("pages across namespaces go on in the next namespace", async () => {
    const { ok } = await givenSeven();
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "u" } });
    await ok("POST", "/api/v1/namespaces/u/configmaps", { metadata: { name: "a" } });

    const first = await ok("GET", "/api/v1/configmaps?limit=7");
    const second = await ok("GET", `/api/v1/configmaps?limit=7&continue=${first.metadata.continue ?? ""}`);

    expect(namesOf(second)).toEqual(["a"]);
  });

  test("a token older than the history is 410 with one that resumes at the current state", async () => {
    const { ok, send, store } = await givenSeven();
    const first = await ok("GET", `${CONFIG_MAPS}?limit=3`);
    await ok("POST", CONFIG_MAPS, { metadata: { name: "c5a" } });
    await store.compact(store.revision);

    const refused = await send("GET", `${CONFIG_MAPS}?limit=9&continue=${first.metadata.continue ?? ""}`);
    const resumed = await ok(
      "GET",
      `${CONFIG_MAPS}?limit=9&continue=${refused.body.metadata.continue ?? ""}`,
    );

    expect(refused).toMatchObject({ status: 410, body: { reason: "Expired", code: 410 } });
    expect(namesOf(resumed)).toEqual(["c3", "c4", "c5", "c5a", "c6"]);
    expect(resumed.metadata.resourceVersion).toBe(String(store.revision));
  });

  for (const [query, message] of [
    ["?continue=gibberish", /invalid continue token/],
    [`?continue=${Buffer.from("{}").toString("base64url")}`, /invalid continue token/],
    ["?limit=abc", /limit/],
    ["?resourceVersion=abc", /resourceVersion/],
    ["?limit=2&continue=x&resourceVersion=5", /not allowed when using continue/],
  ] as const) {
    test(`${query} is 400`, async () => {
      const { send } = await givenServer();

      const { status, body } = await send("GET", `${CONFIG_MAPS}${query}`);

      expect([status, body.reason]).toEqual([400, "BadRequest"]);
      expect(body.message).toMatch(message);
    });
  }

  test("a limit of zero or less is no limit", async () => {
    const { names } = await givenSeven();

    expect(await names("?limit=0")).toHaveLength(7);
    expect(await names("?limit=-1")).toHaveLength(7);
  });
});

describe("which state a list shows", () => {
  test("resourceVersion 0 shows the current state and knows no pages", async () => {
    const { ok } = await givenSeven();

    const list = await ok("GET", `${CONFIG_MAPS}?resourceVersion=0&limit=2`);

    expect(list.items).toHaveLength(7);
    expect(list.metadata.continue).toBeUndefined();
  });

  test("Exact shows the state of that revision, also when a limit implies it", async () => {
    const { ok, names } = await givenSeven();
    const { metadata } = await ok("GET", CONFIG_MAPS);
    await ok("DELETE", `${CONFIG_MAPS}/c0`);

    expect(
      await names(`?resourceVersion=${metadata.resourceVersion ?? ""}&resourceVersionMatch=Exact`),
    ).toHaveLength(7);
    expect(await names(`?resourceVersion=${metadata.resourceVersion ?? ""}&limit=9`)).toHaveLength(7);
    expect(
      await names(`?resourceVersion=${metadata.resourceVersion ?? ""}&resourceVersionMatch=NotOlderThan`),
    ).toHaveLength(6);
    expect(await names(`?resourceVersion=${metadata.resourceVersion ?? ""}`)).toHaveLength(6);
  });

  test("Exact at a compacted revision is 410, NotOlderThan is not", async () => {
    const { send, store } = await givenSeven();
    await store.compact(store.revision);

    const exact = await send("GET", `${CONFIG_MAPS}?resourceVersion=3&resourceVersionMatch=Exact`);
    const newer = await send("GET", `${CONFIG_MAPS}?resourceVersion=3`);

    expect([exact.status, exact.body.reason]).toEqual([410, "Expired"]);
    expect(newer.status).toBe(200);
  });

  test("a version far in the future is 504 after three seconds, in the form that clients relist on", async () => {
    const { send, scheduler } = await givenServer();
    const asked = send("GET", `${CONFIG_MAPS}?resourceVersion=999999`);

    await scheduler.runFor(3_000);

    const { status, headers, body } = await asked;
    expect([status, body.reason, body.details.causes[0]?.reason]).toEqual([
      504,
      "Timeout",
      "ResourceVersionTooLarge",
    ]);
    expect(headers["retry-after"]).toBe("1");
  });

  test("whoever waits for such a version when the server stops is asked to come again", async () => {
    const { handler } = await givenServer();
    const server = new AbortController();
    const asked = ["", "/x"].map((name) =>
      handler({
        method: "GET",
        path: `${CONFIG_MAPS}${name}?resourceVersion=999999`,
        headers: {},
        body: "",
        signal: server.signal,
      }),
    );

    server.abort(new Error("the server is stopping"));

    for (const { status, headers, body } of await Promise.all(asked)) {
      expect([status, headers["retry-after"]]).toEqual([503, "1"]);
      expect(body).toContain('"reason":"ServiceUnavailable"');
    }
  });

  test("a version that comes within three seconds is waited for", async () => {
    const { send, ok, store } = await givenServer();
    const asked = send("GET", `${CONFIG_MAPS}?resourceVersion=${store.revision + 1}`);

    await ok("POST", CONFIG_MAPS, { metadata: { name: "new" } });

    expect(namesOf((await asked).body)).toEqual(["new"]);
  });

  for (const query of [
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=Exact&resourceVersion=0",
    "resourceVersionMatch=Sometimes&resourceVersion=5",
    "resourceVersionMatch=Exact&continue=x",
    "sendInitialEvents=true",
  ]) {
    test(`?${query} is 422 on ListOptions`, async () => {
      const { send } = await givenServer();

      const { status, body } = await send("GET", `${CONFIG_MAPS}?${query}`);

      expect([status, body.reason, body.details.kind]).toEqual([422, "Invalid", "ListOptions"]);
    });
  }

  test("a namespace that does not exist lists as empty, at the store's revision", async () => {
    const { send, store } = await givenServer();

    const { status, body } = await send("GET", "/api/v1/namespaces/nonexist/configmaps");

    expect(status).toBe(200);
    expect(body).toEqual({
      kind: "ConfigMapList",
      apiVersion: "v1",
      metadata: { resourceVersion: String(store.revision) },
      items: [],
    });
  });

  test("items of a list go without kind and apiVersion, single objects do not", async () => {
    const { ok } = await givenSeven();

    const list = await ok("GET", `${CONFIG_MAPS}?limit=1`);
    const single = await ok("GET", `${CONFIG_MAPS}/c0`);

    expect({ kind: "ConfigMap", apiVersion: "v1", ...list.items[0] }).toEqual(single);
    expect(list.items[0]).not.toHaveProperty("kind");
  });
});

describe("selectors", () => {
  for (const [selector, expected] of [
    ["labelSelector=par%3Dodd", ["c1", "c3", "c5"]],
    ["labelSelector=par+notin+(odd)", ["c0", "c2", "c4", "c6"]],
    ["labelSelector=!par", []],
    ["fieldSelector=metadata.name%3Dc1", ["c1"]],
    ["fieldSelector=metadata.name!%3Dc1,metadata.namespace%3Dt", ["c0", "c2", "c3", "c4", "c5", "c6"]],
    ["fieldSelector=metadata.namespace%3Dother", []],
  ] as const) {
    test(`${selector} selects ${expected.join(" ") || "nothing"}`, async () => {
      const { names } = await givenSeven();

      expect(await names(`?${selector}`)).toEqual(expected);
    });
  }

  test("pods are found by their node; volume attachments know no such field", async () => {
    const { ok, send } = await givenServer();
    for (const [name, nodeName] of [
      ["a", "n1"],
      ["b", "n2"],
    ] as const) {
      await ok("POST", "/api/v1/namespaces/t/pods", {
        metadata: { name },
        spec: { nodeName, containers: [{ name: "c", image: "i" }] },
      });
    }

    const onNode = await ok("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed");
    const attachments = await send(
      "GET",
      "/apis/storage.k8s.io/v1/volumeattachments?fieldSelector=spec.nodeName%3Dn1",
    );
    const unknown = await send("GET", "/api/v1/pods?fieldSelector=spec.foo%3D1");

    expect(namesOf(onNode)).toEqual(["a"]);
    expect([attachments.status, attachments.body.message]).toEqual([
      400,
      '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ]);
    expect([unknown.status, unknown.body.message]).toEqual([400, "field label not supported: spec.foo"]);
  });

  test("events are found by what they are about, also when that has no namespace", async () => {
    const { ok } = await givenServer();
    const events = "/api/v1/namespaces/default/events";
    await ok("POST", events, { metadata: { name: "e1" }, involvedObject: { kind: "Node", name: "n1" } });
    await ok("POST", "/api/v1/namespaces/t/events", {
      metadata: { name: "e2" },
      involvedObject: { kind: "Pod", name: "p", namespace: "t" },
    });

    const found = await ok(
      "GET",
      "/api/v1/events?fieldSelector=involvedObject.name%3Dn1,involvedObject.namespace%3D",
    );

    expect(namesOf(found)).toEqual(["e1"]);
  });

  test("a selector that cannot be read is 400", async () => {
    const { send } = await givenServer();

    expect((await send("GET", `${CONFIG_MAPS}?labelSelector=a+b+c`)).status).toBe(400);
    expect((await send("GET", `${CONFIG_MAPS}?fieldSelector=metadata.name`)).body.message).toBe(
      "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
    );
  });
});

test("an event that names no source is found by the controller that reports it", async () => {
  const { ok, send } = await givenServer();
  const regarding = { kind: "Pod", namespace: "t", name: "web" };
  await ok("POST", "/apis/events.k8s.io/v1/namespaces/t/events", {
    metadata: { name: "new" },
    regarding,
    ...{ eventTime: "2026-11-18T01:00:00.000000Z", action: "Do", reason: "Done", type: "Normal" },
    ...{ reportingController: "a-controller", reportingInstance: "a-controller-0" },
  });
  await ok("POST", "/api/v1/namespaces/t/events", {
    metadata: { name: "old" },
    involvedObject: regarding,
    source: { component: "kubelet" },
  });
  const from = async (source: string) =>
    namesOf((await send("GET", `/api/v1/namespaces/t/events?fieldSelector=source%3D${source}`)).body);

  expect(await from("a-controller")).toEqual(["new"]);
  expect(await from("kubelet")).toEqual(["old"]);
});

import { describe, expect, test } from "vitest";
import type { ReportFilter, VolumeReport, VolumesReport } from "../attach-detach/report.ts";
import { createPromMetrics } from "../base/prom-metrics.ts";
import { localOnly, respond, text, type EndpointRequest, type EndpointRoutes } from "./endpoint.ts";
import { healthRoutes, type HealthCheck } from "./health.ts";
import { metricsRoute } from "./metrics-page.ts";
import { volumesRoute } from "./volumes-page.ts";

const LOCAL = { host: "127.0.0.1:10257", remoteAddress: "127.0.0.1" };

function get(routes: EndpointRoutes, url: string, request: Partial<EndpointRequest> = {}) {
  return respond(routes, { method: "GET", url, ...LOCAL, ...request });
}

describe("the endpoint of a process", () => {
  const routes = { "/page": () => text(200, "here"), "/other": () => text(200, "there") };

  test("answers GET and HEAD of a page, with any query", async () => {
    expect(await get(routes, "/page?a=b?c")).toMatchObject({ status: 200, body: "here" });
    expect(await get(routes, "/page", { method: "HEAD" })).toMatchObject({ status: 200 });
  });

  for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"]) {
    test(`refuses ${method}, and says what it takes`, async () => {
      const answer = await get(routes, "/page", { method });

      expect(answer).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
      expect(JSON.parse(answer.body)).toMatchObject({
        kind: "Status",
        reason: "MethodNotAllowed",
        code: 405,
      });
    });
  }

  for (const url of [
    "/",
    "",
    "/page/",
    "/pages",
    "/__proto__",
    "/constructor",
    "*",
    "http://x/page",
    "/%70age",
  ]) {
    test(`does not know ${JSON.stringify(url)}, and says what there is`, async () => {
      const answer = await get(routes, url);

      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body)).toMatchObject({
        reason: "NotFound",
        message: "there is no such page; these are: /page, /other",
      });
    });
  }
});

describe("a page for this machine only", () => {
  const routes = { "/debug": localOnly(() => text(200, "secret")) };

  for (const [remoteAddress, host, status] of [
    ["127.0.0.1", "127.0.0.1:10257", 200],
    ["127.3.2.1", "localhost:10257", 200],
    ["::1", "[::1]:10257", 200],
    ["::ffff:127.0.0.1", "127.0.0.1", 200],
    ["10.0.0.7", "10.0.0.8:10257", 403],
    ["::ffff:10.0.0.7", "10.0.0.8:10257", 403],
    ["", "127.0.0.1", 403],
    // A name that an attacker lets point at 127.0.0.1 for a browser on this machine.
    ["127.0.0.1", "attacker.example:10257", 403],
    ["127.0.0.1", "", 403],
  ] as const) {
    test(`a client at ${remoteAddress || "nowhere"} that asks ${host || "nobody"} gets ${status}`, async () => {
      const answer = await get(routes, "/debug", { remoteAddress, host });

      expect(answer.status).toBe(status);
      expect(answer.body.includes("secret")).toBe(status === 200);
    });
  }
});

describe("health", () => {
  const check = (name: string, problem?: string): HealthCheck => ({ name, problem: () => problem });

  test("is ok in two letters, or a line a check when asked", async () => {
    const routes = healthRoutes({ live: [check("a")], ready: [check("b")] });

    expect(await get(routes, "/livez")).toMatchObject({ status: 200, body: "ok" });
    expect((await get(routes, "/livez?verbose")).body).toBe("[+]ping ok\n[+]a ok\nlivez check passed\n");
    expect((await get(routes, "/healthz?verbose")).body).toBe("[+]ping ok\n[+]a ok\nhealthz check passed\n");
    expect((await get(routes, "/readyz?verbose=1")).body).toBe("[+]ping ok\n[+]b ok\nreadyz check passed\n");
  });

  test("says what is wrong, and what is not, with 500", async () => {
    const routes = healthRoutes({ live: [], ready: [check("a"), check("b", "no pods yet")] });

    expect(await get(routes, "/readyz")).toMatchObject({
      status: 500,
      body: "[+]ping ok\n[+]a ok\n[-]b failed: no pods yet\nreadyz check failed\n",
    });
    expect((await get(routes, "/livez")).status).toBe(200);
  });

  test("can leave a check out, or ask for one alone", async () => {
    const routes = healthRoutes({ live: [check("a"), check("b", "broken")], ready: [] });

    expect((await get(routes, "/livez?exclude=b")).status).toBe(200);
    expect((await get(routes, "/livez?exclude=b&verbose")).body).toContain("[+]b excluded: ok\n");
    expect((await get(routes, "/livez/a")).body).toBe("ok");
    expect(await get(routes, "/livez/b")).toMatchObject({
      status: 500,
      body: "[-]b failed: broken\nlivez check failed\n",
    });
    expect((await get(routes, "/livez/c")).status).toBe(404);
  });

  test("of a check that throws is bad, not unknown", async () => {
    const broken: HealthCheck = {
      name: "a",
      problem: () => {
        throw new Error("oops");
      },
    };

    expect((await get(healthRoutes({ live: [broken], ready: [] }), "/livez")).body).toContain(
      "[-]a failed: the check itself failed: oops\n",
    );
  });
});

test("scrapes at the same time share one rendering; the next one renders anew", async () => {
  const metrics = createPromMetrics();
  let asked = 0;
  metrics.gauge({ name: "asked", help: "x", collect: (gauge) => gauge.set(++asked) });
  const routes = { "/metrics": metricsRoute(metrics) };

  const answers = await Promise.all([get(routes, "/metrics"), get(routes, "/metrics")]);
  const later = await get(routes, "/metrics");

  expect(answers.map(({ body }) => /^asked (\d+)$/m.exec(body)?.[1])).toEqual(["1", "1"]);
  expect(later.body).toMatch(/^asked 2$/m);
  expect(later.contentType).toContain("text/plain");
});

describe("/debug/volumes", () => {
  const volume = (name: string): VolumeReport => ({
    volume: name,
    node: "a",
    wantedBy: [],
    state: "attached",
    listed: true,
    mounted: false,
  });

  function given(volumes: readonly VolumeReport[] | undefined) {
    const filters: ReportFilter[] = [];
    const routes = {
      "/debug/volumes": volumesRoute({
        report(filter): VolumesReport | undefined {
          filters.push(filter);
          return volumes && { time: "2026-01-01T00:00:00Z", active: true, volumes, unresolved: [] };
        },
        leader: () => ({ identity: "me", holder: "me" }),
        now: () => new Date(0),
      }),
    };
    return { routes, filters };
  }

  test("gives the report of the term, and who leads", async () => {
    const { routes, filters } = given([volume("v")]);

    const { status, contentType, body } = await get(routes, "/debug/volumes");

    expect([status, contentType]).toEqual([200, "application/json"]);
    expect(JSON.parse(body)).toEqual({
      time: "2026-01-01T00:00:00Z",
      active: true,
      identity: "me",
      holder: "me",
      volumes: [volume("v")],
      unresolved: [],
    });
    expect(filters).toEqual([{ waitingOnly: false, limit: 1_001 }]);
  });

  test("of a process that does not lead is empty and inactive", async () => {
    const { body } = await get(given(undefined).routes, "/debug/volumes");

    expect(JSON.parse(body)).toMatchObject({ active: false, volumes: [], time: "1970-01-01T00:00:00.000Z" });
  });

  test("passes every filter on", async () => {
    const { routes, filters } = given([]);

    await get(routes, "/debug/volumes?volume=kubernetes.io/csi/d%5Eh&node=n&pod=ns/p&waiting&limit=5&pretty");

    expect(filters).toEqual([
      { volume: "kubernetes.io/csi/d^h", node: "n", pod: "ns/p", waitingOnly: true, limit: 6 },
    ]);
  });

  test("says when more were left out, and only then", async () => {
    const { routes } = given([volume("v"), volume("w")]);

    const cut = JSON.parse((await get(routes, "/debug/volumes?limit=1")).body) as VolumesReport;
    const whole = JSON.parse((await get(routes, "/debug/volumes?limit=2")).body) as VolumesReport;

    expect(cut).toMatchObject({ leftOut: expect.stringContaining("more than 1 match") });
    expect(cut.volumes.map(({ volume }) => volume)).toEqual(["v"]);
    expect(whole).not.toHaveProperty("leftOut");
    expect(whole.volumes).toHaveLength(2);
  });

  for (const [query, message] of [
    ["limit=0", /limit: give a whole number from 1 to 10000/],
    ["limit=10001", /limit/],
    ["limit=-1", /limit/],
    ["waiting=perhaps", /waiting: give true or false/],
    ["pretty=2", /pretty/],
    ["pod=web", /pod: give NAMESPACE\/NAME/],
    ["nodes=a", /nodes: not one of volume, node, pod/],
    ["node=a&node=b", /node: given more than once/],
  ] as const) {
    test(`refuses ?${query}`, async () => {
      const answer = await get(given([]).routes, `/debug/volumes?${query}`);

      expect(answer.status).toBe(400);
      expect((JSON.parse(answer.body) as { message: string }).message).toMatch(message);
    });
  }

  test("is not for other machines", async () => {
    const answer = await get(given([]).routes, "/debug/volumes", { remoteAddress: "10.1.2.3" });

    expect(answer.status).toBe(403);
  });
});

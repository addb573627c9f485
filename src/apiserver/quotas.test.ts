import { describe, expect, test } from "vitest";
import { givenServer } from "./scenario.testing.ts";

const SPACE = "/api/v1/namespaces/t";
const MERGE = { type: "application/merge-patch+json" };
const C = { name: "c", image: "i" };

async function given(hard: Readonly<Record<string, string>>, more: object = {}) {
  const server = await givenServer();
  await server.ok("POST", `${SPACE}/resourcequotas`, { metadata: { name: "q" }, spec: { hard, ...more } });
  const used = async () =>
    ((await server.ok("GET", `${SPACE}/resourcequotas/q`))["status"] as { used?: unknown }).used;
  const pod = (name: string, spec: object = {}) =>
    server.send("POST", `${SPACE}/pods`, { metadata: { name }, spec: { containers: [C], ...spec } });
  const map = (name: string) => server.send("POST", `${SPACE}/configmaps`, { metadata: { name } });
  return { ...server, used, pod, map };
}

describe("a quota", () => {
  test("lets in what fits, says what is used, and refuses the rest in the words of a real server", async () => {
    const { map, used } = await given({ configmaps: "1" });

    const first = await map("a");
    const second = await map("b");

    expect(first.status).toBe(201);
    expect(await used()).toEqual({ configmaps: "1" });
    expect([second.status, second.body.message]).toEqual([
      403,
      'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1',
    ]);
  });

  test("has one place for one of many that come at once", async () => {
    const { map, used } = await given({ "count/configmaps": "3" });

    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => map(`m${index}`)));

    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    expect(await used()).toEqual({ "count/configmaps": "3" });
  });

  test("gives a place back with the object, and none is lost by a creation that failed", async () => {
    const { map, ok } = await given({ configmaps: "1" });
    await map("a");
    await ok("DELETE", `${SPACE}/configmaps/a`);

    const statuses = [(await map("a")).status, (await map("a")).status, (await map("b")).status];

    expect(statuses).toEqual([201, 409, 403]);
  });

  test("is asked by a dry run, which takes no place", async () => {
    const { send, map } = await given({ configmaps: "1" });
    const body = { metadata: { name: "a" } };

    const tried = await send("POST", `${SPACE}/configmaps?dryRun=All`, body);

    expect([tried.status, (await map("a")).status]).toEqual([201, 201]);
    expect((await send("POST", `${SPACE}/configmaps?dryRun=All`, { metadata: { name: "b" } })).status).toBe(
      403,
    );
  });

  test("for processors wants every container to say what it needs", async () => {
    const { pod, used } = await given({ "limits.cpu": "1", cpu: "500m" });
    const cpu = (requests: string, limits: string) => ({
      containers: [{ ...C, resources: { requests: { cpu: requests }, limits: { cpu: limits } } }],
    });

    const silent = await pod("a");
    const fits = await pod("b", cpu("300m", "400m"));
    const beyond = await pod("c", cpu("300m", "400m"));

    expect(silent.body.message).toContain("failed quota: q: must specify cpu for: c; limits.cpu for: c");
    expect(fits.status).toBe(201);
    expect(beyond.body.message).toContain(
      "exceeded quota: q, requested: cpu=300m, used: cpu=300m, limited: cpu=500m",
    );
    expect(await used()).toEqual({ "limits.cpu": "400m", cpu: "300m" });
  });

  test("counts services by what they ask of nodes and balancers", async () => {
    const { send } = await given({ "services.nodeports": "1", "services.loadbalancers": "1" });
    const service = async (name: string, spec: object) =>
      (
        await send("POST", `${SPACE}/services`, {
          metadata: { name },
          spec: { selector: { app: "a" }, ports: [{ port: 80 }], ...spec },
        })
      ).status;

    expect(await service("plain", {})).toBe(201);
    expect(await service("node", { type: "NodePort" })).toBe(201);
    expect(await service("both", { type: "LoadBalancer" })).toBe(403);
    expect(await service("balanced", { type: "LoadBalancer", allocateLoadBalancerNodePorts: false })).toBe(
      201,
    );
    expect(await service("more", { type: "LoadBalancer", allocateLoadBalancerNodePorts: false })).toBe(403);
  });

  for (const [scope, inside, outside] of [
    ["BestEffort", {}, { containers: [{ ...C, resources: { requests: { cpu: "1" } } }] }],
    ["NotBestEffort", { containers: [{ ...C, resources: { requests: { cpu: "1" } } }] }, {}],
    ["Terminating", { activeDeadlineSeconds: 9 }, {}],
    ["NotTerminating", {}, { activeDeadlineSeconds: 9 }],
  ] as const) {
    test(`with scope ${scope} is about those pods alone`, async () => {
      const { pod } = await given({ pods: "1" }, { scopes: [scope] });

      const statuses = [];
      for (const [index, spec] of [inside, outside, outside, inside].entries())
        statuses.push((await pod(`p${index}`, spec)).status);

      expect(statuses).toEqual([201, 201, 201, 403]);
    });
  }

  test("holds for a claim that grows, and lets one shrink or stay that was there before it", async () => {
    const { send, ok } = await given({ "requests.storage": "3Gi" });
    const size = (storage: string) => ({ resources: { requests: { storage } } });
    const claims = `${SPACE}/persistentvolumeclaims`;
    await ok("POST", "/apis/storage.k8s.io/v1/storageclasses", {
      metadata: { name: "fast" },
      ...{ provisioner: "ex.io/p", allowVolumeExpansion: true },
    });
    for (const name of ["a", "b"]) {
      const spec = {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "fast",
        volumeName: "v",
        ...size("1Gi"),
      };
      await ok("POST", claims, { metadata: { name }, spec });
      await ok("PATCH", `${claims}/${name}/status`, { status: { phase: "Bound" } }, MERGE);
    }
    const grow = async (name: string, storage: string) => {
      const { status, body } = await send("PATCH", `${claims}/${name}`, { spec: size(storage) }, MERGE);
      return status === 200 ? "grown" : body.message;
    };

    expect(await grow("a", "3Gi")).toContain(
      "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi",
    );
    expect(
      (await Promise.all([grow("a", "2Gi"), grow("b", "2Gi")])).filter((said) => said === "grown"),
    ).toHaveLength(1);
    await ok("PATCH", `${SPACE}/resourcequotas/q`, { spec: { hard: { "requests.storage": "1Gi" } } }, MERGE);
    expect((await send("PATCH", `${claims}/a`, { metadata: { labels: { l: "x" } } }, MERGE)).status).toBe(
      200,
    );
  });

  test("of another namespace counts nothing here", async () => {
    const { ok, send } = await given({ configmaps: "0" });
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "u" } });

    const { status } = await send("POST", "/api/v1/namespaces/u/configmaps", { metadata: { name: "a" } });

    expect(status).toBe(201);
  });
});

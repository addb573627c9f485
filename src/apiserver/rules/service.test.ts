import { describe, expect, test } from "vitest";
import { givenServer, type Answer } from "../scenario.testing.ts";
import type { ObjectStore } from "../store/store.ts";
import { changing, creating, stored } from "./given.testing.ts";

const SERVICES = "/api/v1/namespaces/t/services";
const MERGE = { type: "application/merge-patch+json" };

interface Spec {
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly ports: readonly { readonly nodePort?: number; readonly targetPort?: unknown }[];
  readonly [field: string]: unknown;
}

const specOf = (answer: Answer) => answer["spec"] as Spec;
const service = (name: string, spec: object) => ({
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});

/** A store that commits a turn later, as one on a disk does. */
function slow(inner: ObjectStore): ObjectStore {
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const call = value.bind(target) as (...parts: unknown[]) => unknown;
      if (name !== "create" && name !== "update") return call;
      return async (...parts: unknown[]) => {
        await Promise.resolve();
        return call(...parts);
      };
    },
  });
}

describe("what a Service is given:", () => {
  test("an address of the range, and the defaults of the real server", async () => {
    const { ok } = await givenServer();

    const spec = specOf(await ok("POST", SERVICES, service("a", {})));

    expect(spec).toEqual({
      clusterIP: expect.stringMatching(/^10\.(9[6-9]|10\d|11[01])\.\d+\.\d+$/) as unknown,
      clusterIPs: [spec.clusterIP],
      internalTrafficPolicy: "Cluster",
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
      sessionAffinity: "None",
      type: "ClusterIP",
    });
  });

  test("a hundred have a hundred addresses and a hundred node ports", async () => {
    const { ok } = await givenServer();

    const made = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        ok("POST", SERVICES, service(`s${index}`, { type: "NodePort" })),
      ),
    );

    expect(new Set(made.map((one) => specOf(one).clusterIP)).size).toBe(100);
    expect(new Set(made.map((one) => specOf(one).ports[0]?.nodePort)).size).toBe(100);
  });

  test("one of many that ask for the same address or node port at once", async () => {
    for (const spec of [
      { clusterIP: "10.96.7.7" },
      { type: "NodePort", ports: [{ port: 80, nodePort: 30_777 }] },
    ]) {
      const { send } = await givenServer({ wrapServerStore: slow });

      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) => send("POST", SERVICES, service(`s${index}`, spec))),
      );

      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(11).fill(422)]);
    }
  });

  test("one of many that are changed to the same node port at once", async () => {
    const { ok, send } = await givenServer({ wrapServerStore: slow });
    for (const name of ["a", "b", "c"]) await ok("POST", SERVICES, service(name, { type: "NodePort" }));
    const change = { spec: { ports: [{ port: 80, nodePort: 30_777 }] } };

    const answers = await Promise.all(
      ["a", "b", "c"].map((name) => send("PATCH", `${SERVICES}/${name}`, change, MERGE)),
    );

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422]);
  });

  test("what a creation that failed had asked for is free again", async () => {
    const { ok, send } = await givenServer({ wrapServerStore: slow });
    await ok("POST", SERVICES, service("a", {}));

    const again = await send("POST", SERVICES, service("a", { clusterIP: "10.96.7.7" }));

    expect(again.status).toBe(409);
    expect(specOf(await ok("POST", SERVICES, service("b", { clusterIP: "10.96.7.7" }))).clusterIP).toBe(
      "10.96.7.7",
    );
  });

  for (const [what, spec, expected] of [
    [
      "headless",
      { clusterIP: "None", selector: { a: "b" } },
      { clusterIP: "None", clusterIPs: ["None"], ipFamilyPolicy: "SingleStack" },
    ],
    [
      "headless without a selector",
      { clusterIP: "None" },
      { ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" },
    ],
    [
      "an address that is asked for",
      { clusterIP: "10.96.7.7" },
      { clusterIP: "10.96.7.7", clusterIPs: ["10.96.7.7"] },
    ],
    [
      "affinity",
      { sessionAffinity: "ClientIP" },
      { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } },
    ],
    [
      "a load balancer",
      { type: "LoadBalancer" },
      { allocateLoadBalancerNodePorts: true, externalTrafficPolicy: "Cluster" },
    ],
  ] as const) {
    test(what, async () => {
      const { ok } = await givenServer();

      expect(specOf(await ok("POST", SERVICES, service("a", spec)))).toMatchObject(expected);
    });
  }

  test("an external name has no address", async () => {
    const { ok } = await givenServer();

    const spec = specOf(
      await ok("POST", SERVICES, {
        metadata: { name: "a" },
        spec: { type: "ExternalName", externalName: "ex.io" },
      }),
    );

    expect(spec).toEqual({ type: "ExternalName", externalName: "ex.io", sessionAffinity: "None" });
  });

  test("an address or a node port that another one has is refused", async () => {
    const { ok, send } = await givenServer();
    await ok(
      "POST",
      SERVICES,
      service("a", { clusterIP: "10.96.7.7", type: "NodePort", ports: [{ port: 80, nodePort: 30_080 }] }),
    );

    const address = await send("POST", SERVICES, service("b", { clusterIP: "10.96.7.7" }));
    const port = await send(
      "POST",
      SERVICES,
      service("c", { type: "NodePort", ports: [{ port: 80, nodePort: 30_080 }] }),
    );

    expect(address.status).toBe(422);
    expect(address.text).toContain("failed to allocate IP 10.96.7.7: provided IP is already allocated");
    expect(port.text).toContain("provided port is already allocated");
  });
});

describe("a change", () => {
  test("that leaves out what was allocated means no change", async () => {
    const { ok } = await givenServer();
    const before = specOf(await ok("POST", SERVICES, service("a", { type: "NodePort" })));

    const after = specOf(await ok("PUT", `${SERVICES}/a`, service("a", { type: "NodePort" })));

    expect(after).toEqual(before);
  });

  test("to ClusterIP closes node ports, and to ExternalName gives the address back", async () => {
    const { ok } = await givenServer();
    await ok("POST", SERVICES, service("a", { type: "NodePort" }));

    const closed = specOf(await ok("PATCH", `${SERVICES}/a`, { spec: { type: "ClusterIP" } }, MERGE));
    const named = specOf(
      await ok(
        "PATCH",
        `${SERVICES}/a`,
        { spec: { type: "ExternalName", externalName: "ex.io", clusterIP: null, clusterIPs: null } },
        MERGE,
      ),
    );

    expect(closed.ports[0]).not.toHaveProperty("nodePort");
    expect(named).not.toHaveProperty("clusterIP");
  });

  test("of the address is refused", () => {
    const old = stored("Service", { spec: { ports: [{ port: 80 }], clusterIP: "10.96.0.9" } });

    expect(
      changing("Service", old, { ...old, spec: { ...(old["spec"] as object), clusterIP: "10.96.0.8" } }),
    ).toEqual(["Invalid spec.clusterIPs[0]"]);
  });
});

for (const [what, spec, problem] of [
  ["no ports", { ports: [] }, "spec.ports"],
  ["two ports without names", { ports: [{ port: 80 }, { port: 81 }] }, "spec.ports[0].name"],
  ["a port beyond all", { ports: [{ port: 70_000 }] }, "Invalid spec.ports[0].port"],
  [
    "a node port of a ClusterIP",
    { ports: [{ port: 80, nodePort: 30_000 }] },
    "Forbidden spec.ports[0].nodePort",
  ],
  ["an unknown type", { ports: [{ port: 80 }], type: "Odd" }, "spec.type"],
  ["an external name of nothing", { type: "ExternalName" }, "spec.externalName"],
] as const) {
  test(`refused: ${what}`, () => {
    expect(creating("Service", { spec }).join("\n")).toContain(problem);
  });
}

test("refused: a name that begins with a digit", () => {
  expect(creating("Service", { spec: { ports: [{ port: 80 }] } }, { name: "1a" }).join()).toContain(
    "Invalid metadata.name",
  );
});

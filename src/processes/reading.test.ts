import { expect, test } from "vitest";
import type { Client } from "../kube/client/client.ts";
import { KubeError, type KubeErrorCode } from "../kube/errors.ts";
import { createMemoryWorld } from "../kube/config/memory-world.testing.ts";
import { createCluster } from "../views/cluster.ts";
import { localKubeconfig } from "./cluster-reading.ts";
import { attacherWaits, controllerWaits, nodePage, nodeWaits } from "./debug-reading.ts";
import { readObjects } from "./reading.ts";

/** A server that refuses some lists, named `pods` for all namespaces and `pods shop` for one. */
function server(refused: Readonly<Record<string, KubeErrorCode>>, pages = 1): Pick<Client, "list"> {
  return {
    list: ((resource: { plural: string }, options: { namespace?: string; continue?: string } = {}) => {
      const place =
        options.namespace === undefined ? resource.plural : `${resource.plural} ${options.namespace}`;
      const code = refused[place];
      if (code !== undefined) return Promise.reject(new KubeError(code, place));
      const page = Number(options.continue ?? 1);
      const next = page < pages ? { continue: String(page + 1) } : {};
      return Promise.resolve({ metadata: next, items: [{ metadata: { name: `${place} ${page}` } }] });
    }) as Client["list"],
  };
}

const options = { namespace: "shop" };

test("every page of every kind is read", async () => {
  const objects = await readObjects(server({}, 3), options);

  expect(objects.pods.map(({ metadata }) => metadata.name)).toEqual(["pods 1", "pods 2", "pods 3"]);
  expect(objects.storageClasses).toHaveLength(3);
  expect(objects.unread).toEqual([]);
});

test("a right that is missing is named, and the rest is read", async () => {
  const objects = await readObjects(
    server({ volumeattachments: "Forbidden", csinodes: "NotFound" }),
    options,
  );

  expect(objects.unread).toEqual([
    { kind: "attachments", right: "list volumeattachments.storage.k8s.io", why: "not permitted" },
    { kind: "csiNodes", right: "list csinodes.storage.k8s.io", why: "the server has no such kind" },
  ]);
  expect(objects.pods).toHaveLength(1);
});

test("whoever may read one namespace only is answered about that one", async () => {
  const { pods, claims, unread } = await readObjects(
    server({
      pods: "Forbidden",
      persistentvolumeclaims: "Forbidden",
      "persistentvolumeclaims shop": "Forbidden",
    }),
    options,
  );

  expect(pods.map(({ metadata }) => metadata.name)).toEqual(["pods shop 1"]);
  expect(claims).toEqual([]);
  expect(unread).toMatchObject([{ kind: "pods", readNamespace: "shop" }, { kind: "claims" }]);
  expect(unread[1]).not.toHaveProperty("readNamespace");
});

test("only what the question needs is read, and an optional kind that is not installed is no missing right", async () => {
  const objects = await readObjects(
    server({ volumesnapshots: "NotFound", resourcequotas: "Forbidden", "resourcequotas shop": "Forbidden" }),
    { ...options, kinds: ["pods", "snapshots", "statefulSets", "resourceQuotas"] },
  );

  expect(objects.statefulSets).toHaveLength(1);
  expect(objects.claims).toEqual([]);
  expect(objects.notAsked).toContain("claims");
  expect(objects.notServed).toEqual(["snapshots"]);
  expect(objects.unread).toMatchObject([{ kind: "resourceQuotas", right: "list resourcequotas" }]);
  const cluster = createCluster(objects, 0);
  expect(
    (["pods", "claims", "snapshots", "resourceQuotas"] as const).map((kind) => cluster.knows(kind)),
  ).toEqual([true, false, true, false]);
});

test("an answer from half a reading is no answer: other failures end it", async () => {
  await expect(readObjects(server({ nodes: "Unreachable" }), options)).rejects.toMatchObject({
    code: "Unreachable",
  });
});

test("who may read nothing is told what to ask for", async () => {
  const all = [
    "pods",
    "persistentvolumeclaims",
    "persistentvolumes",
    "volumeattachments",
    "nodes",
    "csinodes",
  ];
  const refused = [...all, "csidrivers", "storageclasses", "events"].flatMap((name) => [
    name,
    `${name} shop`,
  ]);
  const nobody = server(Object.fromEntries(refused.map((name) => [name, "Forbidden"])));

  await expect(readObjects(nobody, options)).rejects.toThrow(/Forbidden: .*ask for the ClusterRole view/);
});

test("what Mooring says is taken as far as it is understood", () => {
  const waitingFor = {
    reason: "backoff",
    frozen: false,
    since: "2026-01-01T00:00:00Z",
    until: 7,
    message: "no",
  };
  const volumes = [{ volume: "v", node: "a", waitingFor }, { volume: "w" }, null];

  expect(
    controllerWaits({ volumes, unresolved: [{ pod: "shop/web", volume: "data", waitingFor }] }, 0),
  ).toMatchObject([
    { volume: "v", node: "a", pod: "", reason: "backoff", sinceMs: Date.UTC(2026, 0), untilMs: undefined },
    { volume: "data", pod: "shop/web" },
  ]);
  expect(
    attacherWaits({ attachments: [{ persistentVolume: "pv", node: "a", waitingFor }] }, 0),
  ).toMatchObject([{ process: "attacher", persistentVolume: "pv", frozen: false }]);
  expect(controllerWaits("nonsense", 0)).toEqual([]);
});

test("how long ago and in how long is told by the clock of whoever asks, however far that of the page is off", () => {
  const nowMs = Date.UTC(2026, 0, 1, 12);
  const at = (ms: number) => new Date(nowMs + ms).toISOString();
  for (const offMs of [-600_000, 0, 600_000]) {
    const waitingFor = { reason: "backoff", since: at(offMs - 3_000), until: at(offMs + 5_000) };
    const time = at(offMs);
    const expected = [{ sinceMs: nowMs - 3_000, untilMs: nowMs + 5_000 }];
    const pods = [{ pod: "shop/web", waitingFor }];

    expect(controllerWaits({ time, volumes: [{ waitingFor }] }, nowMs)).toMatchObject(expected);
    expect(attacherWaits({ time, attachments: [{ waitingFor }] }, nowMs)).toMatchObject(expected);
    expect(nodeWaits({ time, volumes: [{ pods }] }, nowMs)).toMatchObject(expected);
    expect(nodeWaits({ time, unresolved: [{ since: at(offMs - 3_000) }] }, nowMs)).toMatchObject([
      { sinceMs: nowMs - 3_000 },
    ]);
  }
});

test("of a node's page, who waits for a volume, who leaves it and what cannot be followed are told apart", () => {
  const waitingFor = { reason: "backoff", message: "busy", until: "2026-01-01T00:00:00Z" };
  const pods = [
    { pod: "shop/web", wanted: true, waitingFor: { reason: "step-running", message: "unmounting" } },
    { pod: "shop/old", wanted: false, waitingFor },
    { pod: "shop/ok", wanted: true },
  ];
  const volumes = [{ volume: "v", pods }, { volume: "w", pods: [], waitingFor }, { volume: "x" }, 7];
  const unresolved = [
    { pod: "shop/new", volume: "data", since: "2026-01-01T00:00:00Z", message: "no claim" },
  ];

  expect(nodeWaits({ node: "a", volumes, unresolved }, 0)).toMatchObject([
    { process: "node", node: "a", volume: "v", pod: "shop/web", leaving: false, reason: "step-running" },
    { process: "node", node: "a", volume: "v", pod: "shop/old", leaving: true, untilMs: Date.UTC(2026, 0) },
    { process: "node", node: "a", volume: "w", pod: "", leaving: true, message: "busy" },
    { volume: "data", pod: "shop/new", leaving: false, reason: "unresolved", sinceMs: Date.UTC(2026, 0) },
  ]);
  expect(nodeWaits([null], 0)).toEqual([]);
});

for (const [name, world, expected] of [
  ["KUBECONFIG is what kubectl would use", { env: { KUBECONFIG: "/k" }, files: local("/k") }, undefined],
  ["so is ~/.kube/config", { files: local("/home/me/.kube/config") }, undefined],
  ["without either the cluster of this directory is meant", { files: local() }, ".mooring/admin.kubeconfig"],
  ["with nothing, loading says where it looked", { files: {} }, undefined],
] as const) {
  test(name, async () => {
    expect(await localKubeconfig(createMemoryWorld(world))).toBe(expected);
  });
}

function local(...others: readonly string[]): Record<string, string> {
  return Object.fromEntries([".mooring/admin.kubeconfig", ...others].map((file) => [file, "kind: Config"]));
}

test("of a node's page the mounts are kept, and a page that says nothing proves nothing", () => {
  const volumes = [
    {
      volume: "v",
      pods: [
        { uid: "u", state: "mounted" },
        { uid: "w", state: "not-mounted" },
      ],
    },
  ];

  expect(nodePage({ node: "a", synced: true, volumes })).toEqual({
    node: "a",
    synced: true,
    mounts: [
      { volume: "v", podUid: "u", state: "mounted" },
      { volume: "v", podUid: "w", state: "not-mounted" },
    ],
  });
  expect(nodePage([null])).toEqual({ node: "", synced: false, mounts: [] });
});

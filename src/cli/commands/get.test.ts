import { CommanderError } from "commander";
import { expect, test } from "vitest";
import { getCommand } from "./get.ts";
import { whyCommand } from "./why.ts";

async function get(...args: string[]): Promise<unknown[]> {
  const calls: unknown[] = [];
  const command = getCommand((...call) => Promise.resolve(void calls.push(...call)));
  await command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parseAsync(args, { from: "user" });
  expect(calls.at(-1)).toMatchObject({ requestTimeout: 10_000 });
  return withoutTimeout(calls);
}

/** Which every question has. */
function withoutTimeout(calls: readonly unknown[]): unknown[] {
  const { requestTimeout: _, ...flags } = calls.at(-1) as { readonly requestTimeout: number };
  return [...calls.slice(0, -1), flags];
}

async function why(...args: string[]): Promise<unknown[]> {
  const calls: unknown[] = [];
  const command = whyCommand((...call) => Promise.resolve(void calls.push(...call)));
  await command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parseAsync(args, { from: "user" });
  expect(calls.at(-1)).toMatchObject({ requestTimeout: 10_000 });
  return withoutTimeout(calls);
}

test("get takes a list, a format, a namespace and where Mooring answers", async () => {
  expect(await get("volumes")).toEqual(["volumes", { output: "table" }]);
  expect(await get("nodes", "-o", "wide", "-w", "-A")).toEqual([
    "nodes",
    { output: "wide", watch: true, allNamespaces: true },
  ]);
  expect(await get("drivers", "-n", "shop", "--controller-endpoint", "http://h:1/")).toEqual([
    "drivers",
    { output: "table", namespace: "shop", controllerEndpoint: "http://h:1" },
  ]);
  expect(await get("nodes", "--node-endpoint", "http://h:1/", "--node-endpoint", "http://h:2")).toEqual([
    "nodes",
    { output: "table", nodeEndpoint: ["http://h:1", "http://h:2"] },
  ]);
});

for (const [text, subject] of [
  ["pod/web", { kind: "pod", name: "web" }],
  ["po/web", { kind: "pod", name: "web" }],
  ["pvc/data", { kind: "pvc", name: "data" }],
  ["persistentvolume/pv-1", { kind: "pv", name: "pv-1" }],
  ["nodes/a", { kind: "node", name: "a" }],
  ["va/csi-1", { kind: "va", name: "csi-1" }],
  ["volumeattachments.storage.k8s.io/csi-1", { kind: "va", name: "csi-1" }],
  ["sts/db", { kind: "statefulset", name: "db" }],
  ["StatefulSet/db", { kind: "statefulset", name: "db" }],
  ["deploy/web", { kind: "deployment", name: "web" }],
  ["deployments.apps/web", { kind: "deployment", name: "web" }],
  ["vs/nightly", { kind: "volumesnapshot", name: "nightly" }],
  ["sc/fast", { kind: "storageclass", name: "fast" }],
  ["csidriver/csi.example.com", { kind: "csidriver", name: "csi.example.com" }],
  ["sts db", { kind: "statefulset", name: "db" }],
  ["pod web", { kind: "pod", name: "web" }],
] as const) {
  test(`why ${text} asks about a ${subject.kind}`, async () => {
    expect(await why(...text.split(" "))).toEqual([subject, { output: "text" }]);
  });
}

test("why -A asks about everything that is stuck", async () => {
  expect(await why("-A", "-o", "wide")).toEqual(["everything", { output: "wide", allNamespaces: true }]);
});

for (const [run, args] of [
  [get, ["kittens"]],
  [get, []],
  [get, ["volumes", "-o", "xml"]],
  [get, ["volumes", "-A", "-n", "shop"]],
  [get, ["volumes", "--controller-endpoint", "localhost"]],
  [why, ["web"]],
  [why, ["pod/"]],
  [why, ["constructor/x"]],
  [why, ["pod/a/b"]],
  [why, ["pod/a", "pod/b"]],
  [why, ["pod/a", "b"]],
  [why, ["pod", "a", "b"]],
  [why, ["pod"]],
  [why, []],
  [why, ["configmap/a"]],
  [why, ["-A", "pod/a"]],
  [why, ["-A", "-n", "shop"]],
  [why, ["pod/a", "-o", "xml"]],
] as const) {
  test(`${run.name} ${args.join(" ")} is misuse`, async () => {
    await expect(run(...args)).rejects.toThrow(CommanderError);
  });
}

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { turnsOf } from "../bench/attach-detach/turns.ts";
import { tableOf, type Part } from "../conformance/bench/peer-report.ts";
import { plot } from "../conformance/bench/plot.ts";
import { countRequests } from "../conformance/bench/requests.ts";
import { figureOf } from "../conformance/bench/rounds.ts";
import { until } from "../conformance/harness/until.ts";
import { createBinaries, Unavailable } from "../conformance/peers/binaries.ts";
import { moduleText } from "../conformance/peers/go-module.ts";
import { KUBERNETES_PINS } from "../conformance/peers/pins.ts";
import { line } from "../conformance/report.ts";
import { SUITES } from "../conformance/suites/all.ts";

/** What the conformance command decides without a cluster; the rest of it needs the real programs. */

describe("go.mod of a real program", () => {
  test("libraries that lie in a folder of Kubernetes are taken from the registry, in its version", () => {
    const original = "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";

    const text = moduleText({ version: "v1.36.3" }, original);

    expect(text).toBe("module peers\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n");
  });

  test("a neighbour's folder is dropped, since its version is required anyway", () => {
    const original =
      "module etcd\n\nreplace (\n\tetcd/api/v3 => ../api\n\tx => y v1\n)\nrequire etcd/api/v3 v3.6.8\n";

    const text = moduleText({ version: "v3.6.8" }, original);

    expect(text).toBe("module peers\n\nreplace (\n\tx => y v1\n)\nrequire etcd/api/v3 v3.6.8\n");
  });
});

describe("comparison with a peer", () => {
  const comparison = {
    title: "10 pods",
    figures: [
      { name: "attaches/s", better: "more", ours: 300, peer: 100 },
      { name: "RSS MiB", better: "less", ours: 100, peer: 50 },
      { name: "CPU s", better: "less", ours: 1, peer: undefined },
    ],
  } as const;
  const part: Part = {
    name: "controllers",
    date: "2026-11-16",
    machine: "2 cores",
    kubernetes: "v1.36.3",
    minutes: 3,
    loadBefore: 0.5,
    loadAfter: 2,
    comparisons: [comparison],
  };

  test("the last column says how many times better ours is, whichever direction is better", () => {
    const rows = tableOf(part).split("\n").slice(4);

    expect(rows).toEqual([
      "| attaches/s | 300 | 100 | 3.00 |",
      "| RSS MiB | 100 | 50.0 | 0.50 |",
      "| CPU s | 1.00 | – | – |",
    ]);
  });

  test("the plot has a bar for every figure that both sides have", () => {
    const bars = plot([part]).match(/<rect x=/g);

    expect(bars).toHaveLength(2);
  });
});

describe("rounds", () => {
  test("each contestant has one turn a round, and who begins changes", () => {
    expect(turnsOf(["ours", "peer"], 3)).toEqual(["ours", "peer", "peer", "ours", "ours", "peer"]);
  });

  test("a figure is the mean of its rounds, and there is none of a peer that was not there", () => {
    const figure = figureOf({ ours: [{ ms: 10 }, { ms: 20 }], peer: [] }, ["ms", "less", ({ ms }) => ms]);

    expect(figure).toEqual({ name: "ms", better: "less", ours: 15, peer: undefined });
  });
});

describe("real programs", () => {
  const binaries = createBinaries({
    kubernetes: KUBERNETES_PINS[0],
    cache: "/nonexistent",
    folders: [],
    buildMsLeft: () => 0,
  });

  test("once the time for builds is over, what is not in the cache is left out with a line that says so", async () => {
    const needed = binaries.need("kube-apiserver");

    await expect(needed).rejects.toThrow(
      /^kube-apiserver v1\.\d+\.\d+: not built, the time for builds is over/,
    );
  });

  test("what cannot be had at all is known before minutes are spent on building the others", async () => {
    const needed = binaries.need("kube-apiserver", "csi-of-nobody");

    await expect(needed).rejects.toThrow("csi-of-nobody: not built by this command; put it into");
    await expect(needed).rejects.toBeInstanceOf(Unavailable);
  });
});

test("requests are counted by verb, resource and subresource, whatever their answer was", () => {
  const metrics = [
    "# TYPE apiserver_request_total counter",
    'apiserver_request_total{code="200",resource="nodes",subresource="status",verb="PATCH"} 7',
    'apiserver_request_total{code="409",resource="nodes",subresource="status",verb="PATCH"} 2',
    'apiserver_request_total{code="200",resource="nodes",subresource="",verb="PATCH"} 100',
    'apiserver_request_total{code="0",resource="nodes",subresource="",verb="WATCH"} 1000',
  ].join("\n");

  expect(countRequests(metrics, ["PATCH nodes/status"])).toBe(9);
});

test("nobody waits for an answer when the program that would give it has ended", async () => {
  const signal = AbortSignal.abort("etcd ended by itself");

  const waiting = until("claim bound", 60_000, () => Promise.reject(new Error("refused")), signal);

  await expect(waiting).rejects.toThrow("claim bound: given up, etcd ended by itself");
});

test("a suite that could not be run is called left out, never passed", () => {
  const outcome = {
    suite: "driver",
    claim: "",
    version: "v1.36.3",
    result: "unsupported",
    detail: "no Go",
    seconds: 0,
  };

  expect(line({ ...outcome, result: "unsupported" })).toMatch(/^left out: driver .* no Go$/);
});

test("every suite has a name of its own, and the page has the marks that results are written between", () => {
  const names = SUITES.map(({ name }) => name);
  const page = readFileSync(resolve(import.meta.dirname, "../docs/conformance.md"), "utf8");

  expect(new Set(names).size).toBe(names.length);
  for (const mark of ["begin suites", "end suites", "begin peer", "end peer"])
    expect(page).toContain(`<!-- ${mark} -->`);
});

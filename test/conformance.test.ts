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
import {
  complaints,
  dealOut,
  disagreements,
  leftOutNames,
  passingNames,
} from "../conformance/e2e/judgement.ts";
import { SPEC_LISTS } from "../conformance/e2e/lists.ts";
import { countsTable, specsPage } from "../conformance/e2e/page.ts";
import { line } from "../conformance/report.ts";
import { SUITES } from "../conformance/suites/all.ts";
import { PATIENCE } from "../conformance/suites/suite.ts";
import { informersOf, noneStuck } from "../conformance/suites/informers-said.ts";

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

test("in the 25 minutes of .ci/run every suite but the slow one begins, even if all before it took their usual time", () => {
  const ci = readFileSync(resolve(import.meta.dirname, "../.ci/run"), "utf8");
  const secondsInAll = Number(/--minutes (\d+)/.exec(ci)?.[1]) * 60;
  let seconds = 0;
  const left = SUITES.filter(({ usualSeconds }) => {
    const begins = secondsInAll - seconds >= usualSeconds * PATIENCE;
    if (begins) seconds += usualSeconds;
    return !begins;
  });

  expect(left.map(({ name }) => name)).toEqual(["e2e-slow"]);
});

describe("specs of Kubernetes' own suite", () => {
  test("each is in one list, and one that is in none, or gone, is a sentence", () => {
    const ours = ["[sig-auth] a [Conformance]", "[sig-auth] b [Conformance]", "[sig-auth] b [Conformance]"];
    const theirs = ["[sig-auth] a [Conformance]", "[sig-node] new [Conformance]", "[sig-network] not asked"];

    expect(disagreements(theirs, ours)).toEqual([
      "in no list: [sig-node] new [Conformance]",
      "no such spec: [sig-auth] b [Conformance]",
      "no such spec: [sig-auth] b [Conformance]",
      "listed twice: [sig-auth] b [Conformance]",
    ]);
  });

  test("ours name no spec twice, and every reason that is given is used", () => {
    const { passing, slow, leftOut } = SPEC_LISTS;
    const names = [...passingNames(passing), ...passingNames(slow), ...leftOutNames(leftOut)];

    expect(new Set(names).size).toBe(names.length);
    expect(countsTable(SPEC_LISTS).split("\n").at(-1)).not.toContain("| 0 |");
  });

  test("a spec that has no result, or another than passed, is a complaint", () => {
    const result = (name: string, state: string) => ({ name, state, seconds: 1, message: "why" });

    expect(
      complaints(["a", "b", "c"], [result("a", "passed"), result("b", "timedout"), result("x", "failed")]),
    ).toEqual(["b: timedout, why", "c: was not run"]);
  });

  test("lanes have every spec once", () => {
    expect(dealOut(["a", "b", "c", "d", "e"], 3)).toEqual([["a", "d"], ["b", "e"], ["c"]]);
    expect(dealOut(["a"], 3)).toEqual([["a"]]);
  });

  test("the pages are those that the lists make", () => {
    const read = (name: string) => readFileSync(resolve(import.meta.dirname, "../docs", name), "utf8");

    expect(read("conformance.md")).toContain(
      `<!-- begin e2e -->\n\n${countsTable(SPEC_LISTS)}\n\n<!-- end e2e -->`,
    );
    expect(read("conformance/e2e.md")).toBe(specsPage(SPEC_LISTS, KUBERNETES_PINS[0].version));
  });
});

describe("informers of a real program, by its log", () => {
  const synced = [
    'I1 reflector.go:1] "Caches populated" logger="x" type="*v1.Pod" reflector="r"',
    'I1 shared_informer.go:1] "Waiting for caches to sync"',
    'I1 shared_informer.go:1] "Caches are synced"',
  ].join("\n");
  const refused =
    'E1 reflector.go:2] "Failed to watch" err="failed to list *v1.Job: (get jobs.batch: \\"no\\")" type="*v1.Job"';

  test("all are filled and nobody waits", () => {
    expect(informersOf(synced)).toEqual({ filled: ["v1.Pod"], refused: [], waiting: 0 });
    expect(noneStuck("kube-scheduler", synced)).toBe(1);
  });

  test("one refusal is enough, however well it goes on", () => {
    expect(() => noneStuck("kube-scheduler", `${refused}\n${synced}`)).toThrow(
      /^kube-scheduler: 1 kinds refused: failed to list \*v1.Job/,
    );
  });

  test("whoever still waits is stuck, and a log without caches proves nothing", () => {
    expect(() => noneStuck("m", `${synced}\n"Waiting for caches to sync"`)).toThrow("1 still wait");
    expect(() => noneStuck("m", "")).toThrow("no cache is filled");
  });
});

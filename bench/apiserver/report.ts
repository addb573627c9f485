import { cpus, totalmem } from "node:os";
import type { FanOutResult, ListResult, RateResult } from "./load.ts";

/** What one contestant did. */
export interface Findings {
  readonly write1: RateResult;
  readonly write64: RateResult;
  readonly fill: RateResult;
  readonly get: RateResult;
  readonly listWhole: ListResult;
  readonly listPaged: ListResult;
  readonly fanOut: FanOutResult;
  /** Once all objects are there; undefined for a server that nobody named the processes of. */
  readonly memory: Memory | undefined;
  readonly memoryAfterLists: Memory | undefined;
}

/** Of all processes of a server together. */
export interface Memory {
  readonly rssBytes: number;
  /** The most so far, of each process by itself. */
  readonly rssPeakBytes: number;
}

export interface Sides {
  readonly store: string;
  readonly objects: number;
  readonly ours: Findings;
  readonly peer: Findings | undefined;
}

export function judge({ objects, ours, peer }: Sides): string[] {
  const missed: string[] = [];
  for (const [who, findings] of [
    ["ours", ours],
    ["the peer", peer],
  ] as const) {
    if (findings === undefined) continue;
    for (const list of [findings.listWhole, findings.listPaged])
      // A cluster puts a ConfigMap of its own into every namespace.
      if (list.objects < objects || list.objects > objects + 1)
        missed.push(`${who}: a list has ${list.objects} objects of ${objects}`);
    if (findings.write1.count === 0 || findings.get.count === 0) missed.push(`${who}: nothing was answered`);
  }
  return missed;
}

const FIGURES: readonly (readonly [string, (findings: Findings) => number, "more" | "less"])[] = [
  ["writes/s, 1 writer", ({ write1 }) => write1.perSecond, "more"],
  ["  p99 ms", ({ write1 }) => write1.p99Ms, "less"],
  ["writes/s, 64 writers", ({ write64 }) => write64.perSecond, "more"],
  ["  p99 ms", ({ write64 }) => write64.p99Ms, "less"],
  ["writes/s while filling", ({ fill }) => fill.perSecond, "more"],
  ["GETs/s, 32 in flight", ({ get }) => get.perSecond, "more"],
  ["  p99 ms", ({ get }) => get.p99Ms, "less"],
  ["whole list, ms", ({ listWhole }) => listWhole.ms, "less"],
  ["list in pages of 500, ms", ({ listPaged }) => listPaged.ms, "less"],
  ["watch events/s", ({ fanOut }) => fanOut.eventsPerSecond, "more"],
  ["one write to the last watcher, ms", ({ fanOut }) => fanOut.lastWatcherMs, "less"],
  ["RSS with all objects, MiB", ({ memory }) => toMib(memory?.rssBytes), "less"],
  ["RSS after all lists, MiB", ({ memoryAfterLists }) => toMib(memoryAfterLists?.rssBytes), "less"],
  ["RSS peak, MiB", ({ memoryAfterLists }) => toMib(memoryAfterLists?.rssPeakBytes), "less"],
];

export function table({ store, objects, ours, peer }: Sides): string {
  const lines = [`${objects} objects of 1 kB; ours keeps them in: ${store}`];
  lines.push(row("WHAT", "OURS", peer === undefined ? "" : "PEER", peer === undefined ? "" : "RATIO"));
  for (const [name, figure, better] of FIGURES) {
    const [mine, theirs] = [figure(ours), peer === undefined ? undefined : figure(peer)];
    lines.push(row(name, show(mine), theirs === undefined ? "" : show(theirs), ratio(mine, theirs, better)));
  }
  return `${lines.join("\n")}\n`;
}

function row(...[name = "", ...columns]: readonly string[]): string {
  return (name.padEnd(36) + columns.map((column) => column.padStart(12)).join("")).trimEnd();
}

/** How many times better ours is. */
function ratio(mine: number, theirs: number | undefined, better: "more" | "less"): string {
  if (theirs === undefined || Number.isNaN(mine + theirs)) return "";
  return (better === "more" ? mine / theirs : theirs / mine).toFixed(2);
}

function show(value: number): string {
  return Number.isNaN(value) ? "-" : value.toFixed(value < 100 ? 1 : 0);
}

export function toJson(sides: Sides, { tiny, ok }: { tiny: boolean; ok: boolean }): string {
  const { store, objects, ours, peer } = sides;
  return JSON.stringify({
    bench: "apiserver",
    ratio: peer === undefined ? null : round(ours.write64.perSecond / peer.write64.perSecond),
    ok,
    tiny,
    store,
    objects,
    ours: summaryOf(ours),
    peer: peer === undefined ? null : summaryOf(peer),
    machine: `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.version}`,
  });
}

function summaryOf(findings: Findings) {
  const { write1, write64, fill, get, listWhole, listPaged, fanOut, memory, memoryAfterLists } = findings;
  return {
    writesPerSecond1: round(write1.perSecond),
    writeP99Ms1: round(write1.p99Ms),
    writesPerSecond64: round(write64.perSecond),
    writeP99Ms64: round(write64.p99Ms),
    fillPerSecond: round(fill.perSecond),
    getsPerSecond: round(get.perSecond),
    getP99Ms: round(get.p99Ms),
    listWholeMs: round(listWhole.ms),
    listPagedMs: round(listPaged.ms),
    listBytes: listWhole.bytes,
    eventsPerSecond: round(fanOut.eventsPerSecond),
    events: fanOut.events,
    lastWatcherMs: round(fanOut.lastWatcherMs),
    // NaN, where nobody looked, is null in JSON.
    rssMib: round(toMib(memory?.rssBytes)),
    rssAfterListsMib: round(toMib(memoryAfterLists?.rssBytes)),
    rssPeakMib: round(toMib(memoryAfterLists?.rssPeakBytes)),
  };
}

function toMib(bytes: number | undefined): number {
  return bytes === undefined ? NaN : bytes / 2 ** 20;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

import { expect, test } from "vitest";
import { storyOf } from "./story.ts";
import { renderStorySvg } from "./story-svg.ts";
import { renderStory } from "./story-text.ts";
import type { TraceLine } from "./trace.ts";

const d1 = { volume: "d1" };
const lines: readonly TraceLine[] = [
  { atMs: 0, who: "attacher", what: "starts" },
  { atMs: 1_000, who: "workload", what: "claim db is created", about: { claim: "db" } },
  {
    atMs: 2_000,
    who: "workload",
    what: "claim db is bound to d1",
    about: { ...d1, claim: "db", persistentVolume: "pvc-1" },
  },
  { atMs: 2_500, who: "workload", what: "claim web is bound to d2", about: { volume: "d2", claim: "web" } },
  {
    atMs: 3_000,
    who: "controller",
    what: "VolumeAttachment of d1 on node-1 is created",
    about: { ...d1, node: "node-1", to: "attacher" },
  },
  { atMs: 3_500, who: "plan", what: "kill process=attacher for=5.0s", about: { to: "attacher" } },
  { atMs: 3_600, who: "plan", what: "kill process=node-3 for=5.0s", about: { to: "node-3" } },
  {
    atMs: 4_000,
    who: "attacher",
    what: "ControllerPublishVolume d1 on node-1: refused",
    about: { ...d1, node: "node-1", to: "san" },
  },
  {
    atMs: 5_000,
    who: "attacher",
    what: "ControllerPublishVolume d1 on node-1: refused",
    about: { ...d1, node: "node-1", to: "san" },
  },
  { atMs: 6_000, who: "node-1", what: "NodeStageVolume d1", about: { ...d1, node: "node-1" } },
  { atMs: 7_000, who: "VIOLATION", what: "writers: node-1 writes to d1 while node-2 can" },
];
const story = storyOf(lines, { seed: 7, volume: "d1" });

test("it has what is about the volume under any of its names, the faults that met it, and what broke", () => {
  expect(story.participants).toEqual(["workload", "controller", "attacher", "storage", "node-1"]);
  expect(story.entries.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
    "message: claim db is created",
    "message: claim db is bound to d1",
    "message: VolumeAttachment on node-1 is created",
    "fault: kill process=attacher for=5.0s",
    "message: ControllerPublishVolume on node-1: refused",
    "message: NodeStageVolume",
    "broken: writers: node-1 writes to d1 while node-2 can",
  ]);
});

test("as text it fits into 100 columns, and says once what came twice", () => {
  const text = renderStory(story);

  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(text).toContain("ControllerPublishVolume on node-1: refused (2 times, until 5.0 s)");
  expect(text).toMatch(/3\.000 .*├─+► VolumeAttachment on node-1 is created/);
});

test("as SVG it is well formed and needs nothing else", () => {
  const svg = renderStorySvg(story);

  expect(svg).toMatch(/^<svg xmlns=/);
  expect(svg).toContain("prefers-color-scheme: dark");
  expect(svg.match(/<text/g)?.length).toBe(svg.match(/<\/text>/g)?.length);
  expect(svg).not.toMatch(/href|url\(|<script/);
});

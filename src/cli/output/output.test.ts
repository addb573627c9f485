import { expect, test } from "vitest";
import { createCluster } from "../../views/cluster.ts";
import { explain } from "../../views/explain.ts";
import { claim, cluster, NOW_MS, pendingClaim, pod, runningPod } from "../../views/objects.testing.ts";
import type { ClusterObjects } from "../../views/objects.ts";
import { explanationToJson } from "./explanation-json.ts";
import { formatExplanation } from "./explanation.ts";
import { LISTS } from "./lists.ts";
import { createLivePrinter, formatList, type OutputFormat } from "./printer.ts";
import { PLAIN, styleFor } from "./style.ts";
import { fitTable } from "./table.ts";

const at = (changes: Partial<ClusterObjects>) => createCluster(cluster(changes), NOW_MS);
const stuck = { claims: [pendingClaim()], volumes: [], attachments: [], storageClasses: [] };
const printing = (format: OutputFormat, namespace: string | undefined = "shop") =>
  ({ name: "volumes", list: LISTS.volumes, format, namespace, width: 80 }) as const;

test("a table is aligned, ends without spaces, and has the namespace only where several are shown", () => {
  expect(formatList(printing("table"), at({ pods: [runningPod()] })).stdout).toBe(
    ["POD  CLAIM  VOLUME  NODE    STATE    SINCE  WHY", "web  data   pv-1    node-a  mounted  3m"].join("\n"),
  );
  const all = { ...printing("wide"), namespace: undefined };
  expect(formatList(all, at({})).stdout).toMatch(/^NAMESPACE +POD .* ACCESS +CLASS +DRIVER +STATE/);
});

test("an empty list is no error: people are told, programs get an empty list", () => {
  const empty = { pods: [], claims: [], volumes: [] };

  expect(formatList(printing("table"), at(empty))).toEqual({
    stdout: "",
    stderr: "no volumes in namespace shop (-A shows all)",
  });
  expect(JSON.parse(formatList(printing("json"), at(empty)).stdout)).toEqual({
    kind: "List",
    of: "volumes",
    items: [],
  });
  expect(formatList(printing("yaml"), at(empty)).stdout).toBe("kind: List\nof: volumes\nitems: []");
});

test("another namespace is not shown unless it is asked for", () => {
  expect(formatList(printing("table", "other"), at({})).stdout).toBe("");
});

for (const [format, lines] of [
  [
    "table",
    [
      "POD  CLAIM  VOLUME  NODE    STATE    SINCE  WHY",
      /^web +data +node-a +unbound +10m\n {4}StorageClass/,
      /^web +data +pv-1 +node-a +mounted +3m$/,
      /^web +data +pv-1 +node-a +gone$/,
    ],
  ],
  ["json", [/^\{"type":"ADDED",.*"state":"unbound"/, /"type":"ADDED".*"mounted"/, /"type":"DELETED"/]],
] as const) {
  test(`live, as ${format}: a line for every change and silence while only time passes`, () => {
    const printed: string[] = [];
    const show = createLivePrinter(printing(format), (text) => printed.push(text));

    show(at(stuck));
    show(createCluster(cluster(stuck), NOW_MS + 5_000));
    show(at({ pods: [runningPod()] }));
    show(at({ pods: [], claims: [], volumes: [] }));

    const kept = printed.filter((line) => !/gone.*|DELETED.*unbound/.test(line) || /pv-1/.test(line));
    expect(kept).toHaveLength(lines.length);
    for (const [index, line] of lines.entries()) expect(kept[index]).toMatch(line);
  });
}

for (const [width, expected] of [
  [Infinity, "web  pvc-0a1b2c3d-0000-4000-8000-00000000f3e1  mounting  it waits"],
  [80, "web  pvc-0a1b2c3d-0000-4000-8000-00000000f3e1  mounting  it waits"],
  [40, "web  pvc-0a1b2c…00000f3e1  mounting\n    it waits"],
] as const)
  test(`a table that is watched from its first row on has room for names, at ${width} columns`, () => {
    const table = fitTable(["POD", "VOLUME", "STATE", "WHY"], [], width);

    const row = table.row(["web", "pvc-0a1b2c3d-0000-4000-8000-00000000f3e1", "mounting", "it waits"]);

    expect(row).toBe(expected);
  });

test("colours are for terminals, and only where they are wanted", () => {
  expect(styleFor({}, {})).toBe(PLAIN);
  expect(styleFor({ isTTY: true }, { NO_COLOR: "1" })).toBe(PLAIN);
  expect(styleFor({ isTTY: true }, { TERM: "dumb" })).toBe(PLAIN);
  expect(styleFor({ isTTY: true }, {}).bad("x")).toBe("\u001b[1;31mx\u001b[0m");
});

test("an explanation for programs has moments as the API writes them", () => {
  const answer = explain(at(stuck), { kind: "pod", name: "web", namespace: "shop" });

  const json = answer && explanationToJson(answer);

  expect(json).toMatchObject({ blocker: { reason: "class-missing", since: "2026-03-01T11:50:00.000Z" } });
  expect(JSON.stringify(json)).not.toContain("sinceMs");
});

test("other volumes of the pod are told in a line each", () => {
  const two = pod("web", {
    spec: {
      volumes: ["data", "logs"].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    },
  });
  const answer = explain(at({ pods: [two], claims: [claim()] }), {
    kind: "pod",
    name: "web",
    namespace: "shop",
  });

  const text = answer === undefined ? "" : formatExplanation(answer, NOW_MS, PLAIN);

  expect(text).toMatch(/^Pod shop\/web waits: claim shop\/logs does not exist\.\n/);
  expect(text).toMatch(/Takes part:\n {2}- volume data \(claim shop\/data\): /);
});

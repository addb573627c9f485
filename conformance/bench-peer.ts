import { mkdir, readFile, writeFile } from "node:fs/promises";
import { homedir, loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serveRole } from "../bench/child.ts";
import { compareAttachers } from "./bench/compare-attachers.ts";
import { compareControllers } from "./bench/compare-controllers.ts";
import { compareNodes } from "./bench/compare-nodes.ts";
import { tableOf, type CompareTask, type Comparison, type Part } from "./bench/peer-report.ts";
import { plot } from "./bench/plot.ts";
import { startControlPlane } from "./harness/control-plane.ts";
import { openStage, type Stage } from "./harness/stage.ts";
import { createBinaries, Unavailable, type Binaries } from "./peers/binaries.ts";
import { KUBERNETES_PINS } from "./peers/pins.ts";
import { machine, saveSection, today } from "./report.ts";

/**
 * `npm run bench:peer`: the same loads on ours and on the real program, in turns, each part on one real API server that
 * is fresh. Tables on stdout, the last line JSON; with --write also into docs, part by part.
 */
const USAGE = `usage: npm run bench:peer -- [--only PART,PART] [--tiny] [--write] [--cache DIR] [--bin DIR]...
  --only   of the parts nodes, attachers, controllers
  --tiny   small loads, to see that it works; the figures say nothing
  --write  tables, plot and figures into docs; parts that were not measured stay as they are
`;

const DOCS = fileURLToPath(new URL("../../docs/conformance/", import.meta.url));

/** No limit of the server is met, and no compaction falls into a measurement. */
const FOR_LOAD = [
  "--enable-priority-and-fairness=false",
  "--max-requests-inflight=20000",
  "--max-mutating-requests-inflight=20000",
  "--etcd-compaction-interval=30m",
];

const PARTS: readonly (readonly [string, (task: CompareTask) => Promise<Comparison[]>])[] = [
  ["nodes", compareNodes],
  ["attachers", compareAttachers],
  ["controllers", compareControllers],
];

/** What the children of a measurement do: bench/child.ts starts this very file for it. */
const ROLES = {
  "attach-detach-controller": async () => (await import("../bench/attach-detach/our-controller.ts")).control,
  "attach-detach-attacher": async () => (await import("../bench/attach-detach/attacher.ts")).attach,
  "attach-detach-load": async () => (await import("../bench/attach-detach/cluster-load.ts")).runClusterTask,
};

async function main(): Promise<number> {
  const options = parse();
  if (options === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  const { parts, tiny, write, cache, bin } = options;
  const [kubernetes] = KUBERNETES_PINS;
  const binaries = createBinaries({ kubernetes, cache, folders: bin, buildMsLeft: () => Infinity });
  const measured: Part[] = [];
  for (const [name, compare] of parts) {
    const part = await measure(name, { binaries, tiny, compare });
    if (part === undefined) continue;
    measured.push(part);
    process.stdout.write(`${tableOf(part)}\n\n`);
    if (write) await save(part);
  }
  process.stdout.write(`${JSON.stringify({ bench: "peer", tiny, parts: measured })}\n`);
  return 0;
}

function parse() {
  try {
    const { values } = parseArgs({
      args: process.argv.slice(2).filter((argument) => argument !== "--"),
      options: {
        only: { type: "string" },
        tiny: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        cache: { type: "string", default: join(homedir(), ".cache", "mooring-conformance") },
        bin: { type: "string", multiple: true, default: [] },
      },
    });
    const wanted = values.only?.split(",");
    const parts = PARTS.filter(([name]) => wanted?.includes(name) ?? true);
    return wanted !== undefined && parts.length !== wanted.length ? undefined : { ...values, parts };
  } catch {
    return undefined;
  }
}

interface PartTask {
  readonly binaries: Binaries;
  readonly tiny: boolean;
  readonly compare: (task: CompareTask) => Promise<Comparison[]>;
}

/** Undefined where a program is missing, which is said in a line. */
async function measure(name: string, { binaries, tiny, compare }: PartTask): Promise<Part | undefined> {
  const stage = await openStage("peer");
  const forget = closeOnSignal(stage);
  const startedAtMs = performance.now();
  const [loadBefore = NaN] = loadavg();
  try {
    const plane = await startControlPlane(stage, binaries, FOR_LOAD);
    const { gitVersion } = await plane.api.send<{ gitVersion: string }>("GET", "/version");
    const comparisons = await compare({ stage, plane, binaries, tiny }).finally(() => plane.close());
    const minutes = (performance.now() - startedAtMs) / 60_000;
    const loads = { loadBefore, loadAfter: loadavg()[0] ?? NaN };
    const where = { date: today(), machine: machine(), kubernetes: gitVersion };
    return { name, ...where, minutes, ...loads, comparisons };
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    process.stdout.write(`left out: ${name}: ${error.message}\n`);
    return undefined;
  } finally {
    await stage.close();
    forget();
  }
}

function closeOnSignal(stage: Stage): () => void {
  const close = () => void stage.close().finally(() => process.exit(1));
  process.once("SIGINT", close).once("SIGTERM", close);
  return () => void process.off("SIGINT", close).off("SIGTERM", close);
}

/** In the order of PARTS, whichever was measured last. */
async function save(part: Part): Promise<void> {
  await mkdir(DOCS, { recursive: true });
  const file = join(DOCS, "peer.json");
  const known = JSON.parse(await readFile(file, "utf8").catch(() => "[]")) as Part[];
  const parts = PARTS.flatMap(
    ([name]) => [part, ...known].find((candidate) => candidate.name === name) ?? [],
  );
  await writeFile(file, `${JSON.stringify(parts, null, 2)}\n`);
  await writeFile(join(DOCS, "peer.svg"), plot(parts));
  const links = [
    "![how many times better ours is](conformance/peer.svg)",
    "The same figures unrounded: [peer.json](conformance/peer.json).",
  ];
  await saveSection("peer", [...parts.map(tableOf), ...links].join("\n\n"));
}

if (process.argv[2] === "--role") await serveRole(ROLES, process.argv[3]);
else process.exitCode = await main();

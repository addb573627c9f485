import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createEstate } from "../bench/attach-detach/estate.ts";
import { volumeAttachments } from "../src/kube/api/volume-attachment.ts";
import { measureAttacher, prepareAttacherLoad, type AttacherSide } from "./bench/attacher-load.ts";
import { measureController, type ControllerSide } from "./bench/controller-load.ts";
import { createInstantDriver } from "./bench/instant-driver.ts";
import {
  comparisonsOf,
  plot,
  tableOf,
  type AttachDetachRun,
  type Comparison,
  type Figure,
} from "./bench/peer-report.ts";
import { figureOf, turnsOf, type Contestant, type Sides } from "./bench/rounds.ts";
import { ATTACH_DETACH, startController } from "./harness/cast.ts";
import { startControlPlane, type ControlPlane } from "./harness/control-plane.ts";
import { attachAtOnce, builderOf } from "./harness/fleet.ts";
import { startMooring } from "./harness/mooring.ts";
import { openStage, type Program, type Stage } from "./harness/stage.ts";
import { createBinaries, Unavailable, type Binaries } from "./peers/binaries.ts";
import { KUBERNETES_PINS } from "./peers/pins.ts";
import { machine, saveSection, today } from "./report.ts";

/**
 * `npm run bench:peer [-- --tiny] [--large] [--write] [--bin DIR] [--cache DIR]`: the same loads on ours and on the real
 * program, in turns, on one real API server; with --large also 20,000 volumes. Table on stdout, its last line JSON; with
 * --write also into docs.
 */
const BENCH = fileURLToPath(new URL("../bench/main.js", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/conformance/", import.meta.url));

/** No limit of the server is met, and no compaction falls into a measurement. */
const FOR_LOAD = [
  "--enable-priority-and-fairness=false",
  "--max-requests-inflight=20000",
  "--max-mutating-requests-inflight=20000",
  "--etcd-compaction-interval=30m",
];

interface Options {
  readonly tiny: boolean;
  readonly large: boolean;
  readonly write: boolean;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: process.argv.slice(2).filter((argument) => argument !== "--"),
    options: {
      tiny: { type: "boolean", default: false },
      large: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      cache: { type: "string", default: join(homedir(), ".cache", "mooring-conformance") },
      bin: { type: "string", multiple: true, default: [] },
    },
  });
  const [kubernetes] = KUBERNETES_PINS;
  const binaries = createBinaries({ kubernetes, cache: values.cache, folders: values.bin });
  const stage = await openStage("peer");
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stage.close().finally(() => process.exit(1)));
  try {
    await measure(stage, binaries, values);
    return 0;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    process.stdout.write(`left out: bench:peer: ${error.message}\n`);
    return 0;
  } finally {
    await stage.close();
  }
}

async function measure(stage: Stage, binaries: Binaries, { tiny, large, write }: Options): Promise<void> {
  const programs = await binaries.need("kube-controller-manager");
  const plane = await startControlPlane(stage, binaries, FOR_LOAD);
  const { gitVersion } = await plane.api.send<{ gitVersion: string }>("GET", "/version");
  try {
    const attachers = await compareAttachers(stage, { plane, binaries, count: tiny ? 100 : 1_000 });
    const controllers = await benchControllers(
      plane.kubeconfig,
      programs["kube-controller-manager"] ?? "",
      tiny,
    );
    const many = large ? await compareControllers(stage, plane, tiny) : [];
    const comparisons = [...comparisonsOf(controllers), ...many, ...attachers];
    const table = tableOf(comparisons);
    const result = { date: today(), machine: machine(), kubernetes: gitVersion, tiny, comparisons };
    process.stdout.write(`${table}\n${JSON.stringify(result)}\n`);
    if (write) await save(result, table);
  } finally {
    await plane.close();
  }
}

/** The benchmark of the attach/detach controller, as it is; a promise it missed is a figure here, not a failure. */
async function benchControllers(kubeconfig: string, peer: string, tiny: boolean): Promise<AttachDetachRun> {
  const options = ["--only", "cluster", "--kubeconfig", kubeconfig, "--peer-controller", peer];
  const args = ["--expose-gc", "--max-old-space-size=4096", BENCH, "attach-detach", ...options];
  const child = spawn(process.execPath, [...args, ...(tiny ? ["--tiny"] : [])], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await once(child, "close");
  const last = output.trimEnd().split("\n").at(-1) ?? "";
  const run = JSON.parse(last) as AttachDetachRun & { readonly error?: string };
  if (run.error !== undefined) throw new Error(`bench attach-detach: ${run.error}`);
  return run;
}

interface AttacherTask {
  readonly plane: ControlPlane;
  readonly binaries: Binaries;
  readonly count: number;
}

/** The first round is for server and driver to get warm, and does not count. */
async function compareAttachers(stage: Stage, task: AttacherTask): Promise<Comparison[]> {
  const { plane, binaries, count } = task;
  const found = await binaries.need("csi-attacher").catch((error: unknown) => {
    if (!(error instanceof Unavailable)) throw error;
    process.stdout.write(`left out: attacher load: ${error.message}\n`);
    return undefined;
  });
  const socket = stage.path("instant.sock");
  const driver = createInstantDriver(socket);
  await driver.start();
  try {
    await prepareAttacherLoad(plane.api, count);
    const flags = [`--csi-address=${socket}`, `--kubeconfig=${plane.kubeconfig}`];
    const fast = ["--kube-api-qps=5000", "--kube-api-burst=5000", "--worker-threads=100"];
    const start = {
      ours: async () => startMooring(stage, "attacher", [...flags, "--worker-threads=100"]),
      peer: async () => stage.start("csi-attacher", found?.["csi-attacher"] ?? "", [...flags, ...fast]),
    };
    const attachments = await plane.api.follow(volumeAttachments);
    const turns = turnsOf(found === undefined ? ["ours"] : ["ours", "peer"], 3);
    const sides = await measureInTurns(turns, start, (program) =>
      measureAttacher({ api: plane.api, attachments }, program, count),
    );
    const counted = { ours: sides.ours.slice(1), peer: sides.peer.slice(1) };
    const figures = ATTACHER_FIGURES.map((figure) => figureOf(counted, figure));
    return [{ title: `${count} VolumeAttachments at once, 100 workers`, figures }];
  } finally {
    await driver.stop({ graceMs: 1_000 });
  }
}

type FigureOf<Side> = readonly [string, Figure["better"], (side: Side) => number];

const ATTACHER_FIGURES: readonly FigureOf<AttacherSide>[] = [
  ["attaches/s", "more", ({ attachPerSecond }) => attachPerSecond],
  ["detaches/s", "more", ({ detachPerSecond }) => detachPerSecond],
  ["attach p50 ms", "less", ({ attach }) => attach.p50Ms],
  ["attach p99 ms", "less", ({ attach }) => attach.p99Ms],
  ["API requests a volume", "less", ({ requestsEach }) => requestsEach],
  ["CPU s", "less", ({ cpuMs }) => cpuMs / 1_000],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];

async function measureInTurns<Side>(
  turns: readonly (readonly Contestant[])[],
  start: Readonly<Record<Contestant, () => Promise<Program>>>,
  measureOne: (program: Program) => Promise<Side>,
): Promise<Sides<Side>> {
  const sides: Record<Contestant, Side[]> = { ours: [], peer: [] };
  for (const who of turns.flat()) {
    const program = await start[who]();
    sides[who].push(await measureOne(program));
    await program.end();
  }
  return sides;
}

const CONTROLLER_FIGURES: readonly FigureOf<ControllerSide>[] = [
  ["attaches/s", "more", ({ attachPerSecond }) => attachPerSecond],
  ["detaches/s", "more", ({ detachPerSecond }) => detachPerSecond],
  ["API requests a volume", "less", ({ requestsEach }) => requestsEach],
  ["CPU at rest, % of a core", "less", ({ idleCpuPercent }) => idleCpuPercent],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];

/** Both controllers on as many volumes as this command ever makes, two rounds in turns; last, since they stay there. */
async function compareControllers(stage: Stage, plane: ControlPlane, tiny: boolean): Promise<Comparison[]> {
  const estate = { name: "large", ...(tiny ? { nodes: 4, volumes: 40 } : { nodes: 1_000, volumes: 20_000 }) };
  const builder = builderOf(plane.api);
  await createEstate(builder, estate);
  const attachments = await plane.api.follow(volumeAttachments);
  attachAtOnce(plane.api, attachments);
  const sides = await measureInTurns(
    turnsOf(["ours", "peer"], 2),
    {
      ours: async () => startController(stage, plane.kubeconfig),
      peer: () => plane.startManager(ATTACH_DETACH),
    },
    (program) =>
      measureController(
        stage,
        { api: plane.api, attachments, estate, idleMs: tiny ? 1_000 : 30_000 },
        program,
      ),
  );
  const title = `${estate.volumes} pods at once, ${estate.nodes} nodes`;
  return [{ title, figures: CONTROLLER_FIGURES.map((figure) => figureOf(sides, figure)) }];
}

async function save(result: { readonly comparisons: readonly Comparison[] }, table: string): Promise<void> {
  await mkdir(DOCS, { recursive: true });
  await writeFile(join(DOCS, "peer.json"), `${JSON.stringify(result, null, 2)}\n`);
  await writeFile(join(DOCS, "peer.svg"), plot(result.comparisons));
  const { date, kubernetes } = result as unknown as { date: string; kubernetes: string };
  const head = `Run on ${date}, ${machine()}, kube-apiserver and kube-controller-manager ${kubernetes}.`;
  await saveSection(
    "peer",
    `${head}\n\n${table}\n![how many times better ours is](conformance/peer.svg)\n\nThe same figures unrounded: [peer.json](conformance/peer.json).`,
  );
}

process.exitCode = await main();

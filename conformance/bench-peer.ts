import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { volumeAttachments } from "../src/kube/api/volume-attachment.ts";
import { measureAttacher, prepareAttacherLoad, type AttacherSide } from "./bench/attacher-load.ts";
import { createInstantDriver } from "./bench/instant-driver.ts";
import { comparisonsOf, plot, tableOf, type AttachDetachRun, type Comparison } from "./bench/peer-report.ts";
import { startControlPlane, type ControlPlane } from "./harness/control-plane.ts";
import { startMooring } from "./harness/mooring.ts";
import { openStage, type Stage } from "./harness/stage.ts";
import { createBinaries, Unavailable, type Binaries } from "./peers/binaries.ts";
import { KUBERNETES_PINS } from "./peers/pins.ts";
import { machine, saveSection, today } from "./report.ts";

/**
 * `npm run bench:peer [-- --tiny] [--write] [--bin DIR] [--cache DIR]`: the same loads on ours and on the real program, in
 * turns, on one real API server. Table on stdout, its last line JSON; with --write also into docs.
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
  readonly write: boolean;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: process.argv.slice(2).filter((argument) => argument !== "--"),
    options: {
      tiny: { type: "boolean", default: false },
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

async function measure(stage: Stage, binaries: Binaries, { tiny, write }: Options): Promise<void> {
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
    const comparisons = [...comparisonsOf(controllers), ...attachers];
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

/** In turns, two each; the second counts, when server and driver are warm for both. */
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
    const ours = () => startMooring(stage, "attacher", [...flags, "--worker-threads=100"]);
    const peer = () => stage.start("csi-attacher", found?.["csi-attacher"] ?? "", [...flags, ...fast]);
    const attachments = await plane.api.follow(volumeAttachments);
    const turns = found === undefined ? [ours] : [ours, peer];
    const sides: AttacherSide[] = [];
    for (const start of [...turns, ...turns]) {
      const program = start();
      sides.push(await measureAttacher({ api: plane.api, attachments }, program, count));
      await program.end();
    }
    return [
      { title: `${count} VolumeAttachments at once, 100 workers`, ...figuresOf(sides.slice(turns.length)) },
    ];
  } finally {
    await driver.stop({ graceMs: 1_000 });
  }
}

function figuresOf(sides: readonly AttacherSide[]): Pick<Comparison, "figures"> {
  const row = (name: string, better: "more" | "less", of: (side: AttacherSide) => number) => {
    const [ours, peer] = sides.map(of);
    return { name, better, ours: ours ?? NaN, peer };
  };
  return {
    figures: [
      row("attaches/s", "more", ({ attachPerSecond }) => attachPerSecond),
      row("detaches/s", "more", ({ detachPerSecond }) => detachPerSecond),
      row("attach p50 ms", "less", ({ attach }) => attach.p50Ms),
      row("attach p99 ms", "less", ({ attach }) => attach.p99Ms),
      row("CPU s", "less", ({ cpuMs }) => cpuMs / 1_000),
      row("RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20),
    ],
  };
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

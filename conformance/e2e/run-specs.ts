import { spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";

/** One spec of Kubernetes' own suite, as its report has it. */
export interface SpecResult {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped" | (string & {});
  readonly seconds: number;
  /** First line of what it said, of one that did not pass. */
  readonly message: string;
}

interface SpecReport {
  readonly ContainerHierarchyTexts?: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly RunTime: number;
  readonly Failure?: { readonly Message?: string };
}

interface SuiteReport {
  readonly SpecReports?: readonly SpecReport[] | null;
}

export interface SpecsTask {
  readonly program: string;
  /** An empty folder for the reports and the output. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Listing takes 5 s on a machine at rest. */
const START_MS_MAX = 120_000;
const CONFORMANCE = "--ginkgo.label-filter=Conformance";

/** Every Conformance spec that the program has, without running any of them. */
export async function listSpecs(task: SpecsTask): Promise<string[]> {
  const flags = ["--ginkgo.dry-run", "--ginkgo.succinct"];
  const specs = await ginkgo(task, { lane: "list", flags, withinMs: START_MS_MAX });
  return specs.filter(({ state }) => state !== "skipped").map(({ name }) => name);
}

export interface Lane {
  readonly lane: string;
  readonly names: readonly string[];
  readonly kubeconfig: string;
  readonly kubectl: string;
  readonly withinMs: number;
}

/** These specs and no others, one after the other. What they say meanwhile is in the folder's `LANE.log`. */
export async function runSpecs(
  task: SpecsTask,
  { lane, names, kubeconfig, kubectl, withinMs }: Lane,
): Promise<SpecResult[]> {
  // A focus on nothing is one on everything.
  if (names.length === 0) return [];
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    // No pod has to run before the first spec.
    "--allowed-not-ready-nodes=-1",
    "--dump-logs-on-failure=false",
    `--ginkgo.focus=${focusOn(names)}`,
    `--ginkgo.timeout=${Math.ceil(withinMs / 1_000)}s`,
    // Their order is the same in every run.
    "--ginkgo.seed=1",
    "--ginkgo.silence-skips",
  ];
  const specs = await ginkgo(task, { lane, flags, withinMs: withinMs + START_MS_MAX });
  return specs.filter(({ state }) => state !== "skipped");
}

/** Runs the program and reads its report; a spec that fails makes the program fail too, which is no news then. */
async function ginkgo(
  { program, folder, signal }: SpecsTask,
  {
    lane,
    flags,
    withinMs,
  }: { readonly lane: string; readonly flags: readonly string[]; readonly withinMs: number },
): Promise<SpecResult[]> {
  const report = `${folder}/${lane}.json`;
  const log = `${folder}/${lane}.log`;
  const file = await open(log, "w");
  const shared = ["--provider=local", CONFORMANCE, "--ginkgo.no-color", `--ginkgo.json-report=${report}`];
  const child = spawn(program, [...shared, ...flags], {
    cwd: folder,
    stdio: ["ignore", file.fd, file.fd],
    signal,
    timeout: withinMs,
    // Asked politely it would go on to write its report into a folder that is about to go.
    killSignal: "SIGKILL",
  });
  await new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  await file.close();
  if (signal.aborted) throw new Error(`specs: given up, ${String(signal.reason)}`);
  const said = async () => (await readFile(log, "utf8")).trimEnd().slice(-600);
  return readReport(report).catch(async (error: unknown) => {
    throw new Error(`${error instanceof Error ? error.message : String(error)}: ${await said()}`);
  });
}

/** Names are matched at the end of the whole text, which begins with the suite's own. */
function focusOn(names: readonly string[]): string {
  const quoted = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return `(${quoted.join("|")})$`;
}

async function readReport(path: string): Promise<SpecResult[]> {
  const [suite] = JSON.parse(await readFile(path, "utf8")) as SuiteReport[];
  const specs = suite?.SpecReports ?? [];
  const setup = specs.find(({ LeafNodeType, State }) => LeafNodeType !== "It" && State === "failed");
  if (setup !== undefined)
    throw new Error(`${setup.LeafNodeType}: ${setup.Failure?.Message ?? ""}`.slice(0, 600));
  return specs.filter(({ LeafNodeType }) => LeafNodeType === "It").map(resultOf);
}

function resultOf({
  ContainerHierarchyTexts,
  LeafNodeText,
  State,
  RunTime,
  Failure,
}: SpecReport): SpecResult {
  return {
    name: [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(" "),
    state: State,
    seconds: RunTime / 1e9,
    message: (Failure?.Message ?? "").split("\n").slice(0, 2).join(" ").slice(0, 300),
  };
}

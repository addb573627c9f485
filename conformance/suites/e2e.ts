import {
  complaints,
  dealOut,
  disagreements,
  isDisruptive,
  isSerial,
  leftOutNames,
  passingNames,
} from "../e2e/judgement.ts";
import { SPEC_LISTS } from "../e2e/lists.ts";
import { listSpecs, runSpecs, type SpecsTask } from "../e2e/run-specs.ts";
import { startManager, startScheduler } from "../harness/control-plane.ts";
import { startEmbedded } from "../harness/embedded.ts";
import { startHollowNodes } from "../harness/hollow-nodes.ts";
import type { Performance } from "./suite.ts";

const { passing, slow, leftOut } = SPEC_LISTS;
/** Most of a spec is waiting: two cores carry six at a time. */
const LANES = 6;
const LANE_MS_MAX = 1_500_000;

/** What the server does itself stays with it and is judged as well; all other controllers are the real ones. */
const OURS = [
  "namespace-controller",
  "garbage-collector-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
  "persistentvolumeclaim-protection-controller",
  "persistentvolume-protection-controller",
  "volumeattributesclass-protection-controller",
  "clusterrole-aggregation-controller",
  "pod-garbage-collector-controller",
];

/** Kubernetes' own suite on `mooring apiserver`: every spec is listed, and every spec that is listed as passing passes. */
export async function e2e(performance: Performance): Promise<string> {
  const specs = await specsTask(performance, await performance.binaries.need(...PROGRAMS));
  const ours = [passing, slow].flatMap(passingNames).concat(leftOutNames(leftOut));
  const wrong = disagreements(await listSpecs(specs), ours);
  if (wrong.length > 0) throw new Error(`${wrong.length} specs: ${wrong.slice(0, 5).join("; ")}`);
  const passed = await judge(performance, {
    names: passingNames(passing),
    lanes: LANES,
    comesLast: isSerial,
  });
  return `${passed} of ${ours.length} specs passed`;
}

/** Those that wait minutes for something not to happen, all at once. */
export async function e2eSlow(performance: Performance): Promise<string> {
  const names = passingNames(slow);
  return `${await judge(performance, { names, lanes: names.length, comesLast: isDisruptive })} specs passed`;
}

const PROGRAMS = ["e2e.test", "kubectl", "kube-controller-manager", "kube-scheduler"];

interface Judgement {
  readonly names: readonly string[];
  readonly lanes: number;
  /** What wants the cluster for itself is run when all others are through. */
  readonly comesLast: (name: string) => boolean;
}

/** Answers how many passed, which is all of them. */
async function judge(performance: Performance, { names, lanes, comesLast }: Judgement): Promise<number> {
  const { stage, binaries } = performance;
  const programs = await binaries.need(...PROGRAMS);
  const specs = await specsTask(performance, programs);
  const server = await startEmbedded(stage);
  const { kubeconfig } = server;
  try {
    const controllers = ["*", ...OURS.map((name) => `-${name}`)].join(",");
    // Every 5 minutes by default, and a spec waits for the next time.
    const flags = ["--resource-quota-sync-period=15s"];
    await startManager(stage, { binaries, kubeconfig, controllers, flags });
    await startScheduler(stage, { binaries, kubeconfig });
    await startHollowNodes(stage, server.api, ["node-a", "node-b"]);
    const run = (lane: string, some: readonly string[]) =>
      runSpecs(specs, {
        lane,
        names: some,
        kubeconfig,
        kubectl: programs["kubectl"] ?? "",
        withinMs: LANE_MS_MAX,
      });
    const together = dealOut(
      names.filter((name) => !comesLast(name)),
      lanes,
    );
    const results = await Promise.all(together.map((some, index) => run(`lane-${index}`, some)));
    results.push(await run("last", names.filter(comesLast)));
    const failed = complaints(names, results.flat());
    if (failed.length > 0)
      throw new Error(`${failed.length} of ${names.length} failed: ${failed.slice(0, 5).join("; ")}`);
    return names.length;
  } finally {
    await server.close();
  }
}

async function specsTask(
  { stage }: Performance,
  programs: Readonly<Record<string, string>>,
): Promise<SpecsTask> {
  // The program is none of the stage's: one that is in the middle of a spec ends with it all the same.
  const stop = new AbortController();
  stage.atEnd(() => {
    stop.abort("the suite has ended");
    return Promise.resolve();
  });
  const signal = AbortSignal.any([stage.signal, stop.signal]);
  return { program: programs["e2e.test"] ?? "", folder: await stage.folder("specs"), signal };
}

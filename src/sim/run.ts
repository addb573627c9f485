import { volumeSnapshotClasses } from "../companions/kinds.ts";
import { DEFAULT_SNAPSHOT_CLASS } from "../companions/snapshotter/names.ts";
import type { KubeObject, Resource } from "../kube/object.ts";
import type { Act, ActFields, ActWeights } from "./act.ts";
import { Acts } from "./acts.ts";
import { makeDriver } from "./acts/drivers.ts";
import { Apps } from "./apps.ts";
import { explained, leftovers, unsettled } from "./checkers/at-rest.ts";
import { watchEverything } from "./checkers/checkers.ts";
import { chooseActs, type Choice } from "./choice.ts";
import { ensureDefaults } from "../processes/up/defaults.ts";
import { generatePlan, type Plan, type PlanOptions } from "./plan.ts";
import { SAN_DRIVER } from "./san.ts";
import type { TraceLine } from "./trace.ts";
import { World } from "./world.ts";

export interface RunOptions {
  /** How long things happen and go wrong. */
  readonly durationMs?: number;
  readonly nodes?: number;
  readonly apps?: number;
  /** How long a silent node keeps a volume that no pod uses any more; as upstream where left out. */
  readonly forceAfterMs?: number;
  /** Whether the loop driver is there, beside the other storage system; drawn where left out. */
  readonly loop?: boolean;
  /** Of the seed's own plan. */
  readonly weights?: ActWeights;
  /** Between two acts of that plan, on the average. */
  readonly everyMs?: number;
  /** Values that every act of a kind has in that plan, instead of those that were drawn. */
  readonly fields?: ActFields;
  /** Whom that plan kills, freezes and cuts off, each as often as it is named; all unless told otherwise. */
  readonly processes?: readonly string[];
  /** Instead of the seed's own. */
  readonly plan?: Plan;
  /** What of the plan is carried out; all unless told otherwise. */
  readonly choice?: Choice;
  /** Then the run is over, whatever is broken by then. */
  readonly untilMs?: number;
  /** Looks on; a run is the same with it and without. */
  readonly observer?: Observer;
  readonly onLine?: (line: TraceLine) => void;
  readonly logs?: boolean;
}

export interface Observer {
  /** Before an act is carried out. */
  onAct?(act: Act, world: World, apps: Apps): void;
  /** About once a simulated second. */
  onSecond?(world: World): void;
  /** `why` was asked about a pod that does not run, and its answer was judged. */
  onAnswer?(reason: string): void;
}

export interface RunResult {
  readonly seed: number;
  readonly plan: Plan;
  /** What was seen broken, oldest first. */
  readonly violations: readonly string[];
  /** When the first of them was seen. */
  readonly violatedAtMs?: number;
  readonly lines: readonly TraceLine[];
  readonly hash: string;
  readonly simulatedMs: number;
  readonly writes: number;
}

/** After the last fault. Back-offs of the programs grow to 5 minutes at most, timers of detaches to 6. */
const SETTLE_MS_MAX = 20 * 60_000;
const DURATION_MS = 10 * 60_000;

/** One seed: a cluster, ten minutes of a workload and everything that goes wrong, then rest, and what is left. */
export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const { durationMs = DURATION_MS, nodes = 3, apps: appCount = 4, onLine, logs = false } = options;
  const { untilMs = Infinity, observer, choice = {}, forceAfterMs, loop } = options;
  const world = new World(seed, {
    ...{ nodes, logs, ...(onLine && { onLine }) },
    ...(forceAfterMs !== undefined && { forceAfterMs }),
    ...(loop !== undefined && { loop }),
  });
  const { scheduler } = world;
  const clock = scheduler.createClock();
  const apps = new Apps({
    clock,
    client: world.client,
    objects: world.objects,
    random: world.random.fork("apps"),
  });
  const acts = new Acts(world, apps);
  const { weights, everyMs, fields, processes } = options;
  const drawn = { durationMs, apps: appCount, weights, everyMs, fields, processes };
  const plan = options.plan ?? planFor(world, drawn);
  await world.start();
  await makeClasses(world);
  const onAnswer = (reason: string) => observer?.onAnswer?.(reason);
  const check = everySecond(scheduler, always(watchEverything(world, { onAnswer })));
  apps.start();
  const chosen = chooseActs(plan, choice);
  // Also for a step that is left out: the order of everything before the first difference stays what it was.
  for (const [index, { atMs }] of plan.entries())
    clock.after(atMs, () => {
      const act = chosen[index];
      if (act === undefined) return;
      observer?.onAct?.(act, world, apps);
      acts.perform(act);
    });
  const look = everySecond(
    scheduler,
    always(() => observer?.onSecond?.(world)),
  );
  const isOver = () => {
    check();
    if (observer !== undefined) look();
    return world.violations.length > 0 || scheduler.nowMs >= untilMs;
  };
  await scheduler.runUntilTrue(isOver, { withinMs: durationMs });
  if (!isOver()) await comeToRest(world, { apps, acts, isOver });
  const violatedAtMs = world.trace.lines.find(({ who }) => who === "VIOLATION")?.atMs;
  const { nowMs: simulatedMs } = scheduler;
  const hash = world.trace.hash();
  world.end();
  return {
    ...(violatedAtMs !== undefined && { violatedAtMs }),
    seed,
    plan,
    violations: world.violations,
    lines: world.trace.lines,
    hash,
    simulatedMs,
    writes: world.data.writes,
  };
}

/** The plan of a seed that is not run. */
export function planOf(
  seed: number,
  { durationMs = DURATION_MS, nodes = 3, apps = 4 }: Pick<RunOptions, "durationMs" | "nodes" | "apps"> = {},
): Plan {
  return planFor(new World(seed, { nodes, logs: false }), { durationMs, apps });
}

/** Where apps get their volumes from, each as often as it is named. */
const SAN_CLASSES = ["san", "san", "san-wait", "san-retain", "static"];
const LOOP_CLASSES = ["loop", "loop", "loop", "loop-wait", "loop-wait", "loop-retain"];

type Drawn = Omit<PlanOptions, "nodes" | "spareNodes" | "processes" | "classes"> & {
  readonly processes?: readonly string[] | undefined;
};

function planFor(world: World, { processes, ...options }: Drawn): Plan {
  return generatePlan(world.random.fork("plan"), {
    ...options,
    nodes: [...world.nodes.keys()],
    spareNodes: world.spareNodes,
    processes: processes ?? [...world.processes.keys()],
    classes: [...SAN_CLASSES, ...(world.loopPool === undefined ? [] : LOOP_CLASSES)],
  });
}

async function comeToRest(
  world: World,
  { apps, acts, isOver }: { apps: Apps; acts: Acts; isOver: () => boolean },
): Promise<void> {
  const { scheduler, trace } = world;
  trace.add("plan", "everything is healed");
  let isHealed = false;
  void acts.heal().then(() => (isHealed = true));
  // What somebody is still at would else come after the workload was removed, and be left for good.
  const settled = () => isOver() || (isHealed && unsettled(world, apps).length === 0);
  if (!(await scheduler.runUntilTrue(everySecond(scheduler, settled), { withinMs: SETTLE_MS_MAX })))
    world.violate(
      [
        `settles: ${SETTLE_MS_MAX / 60_000} minutes after the last fault ${unsettled(world, apps).join("; ")}`,
        ...explained(world, apps),
      ].join("; "),
    );
  if (isOver()) return;
  trace.add("plan", "the workload is removed");
  acts.removeWorkload();
  const empty = () => isOver() || leftovers(world).length === 0;
  if (!(await scheduler.runUntilTrue(everySecond(scheduler, empty), { withinMs: SETTLE_MS_MAX })))
    world.violate(`leaks: ${leftovers(world).join("; ")}`);
}

/** Looks once a simulated second instead of after every timer. */
function everySecond(scheduler: { readonly nowMs: number }, holds: () => boolean): () => boolean {
  let lookedMs = -Infinity;
  return () => {
    if (scheduler.nowMs - lookedMs < 1_000) return false;
    lookedMs = scheduler.nowMs;
    return holds();
  };
}

/** Something to do at every look. */
function always(work: () => void): () => boolean {
  return () => {
    work();
    return false;
  };
}

type Fields = KubeObject & Readonly<Record<string, unknown>>;

const storageClasses: Resource<Fields> = {
  ...{ group: "storage.k8s.io", version: "v1", plural: "storageclasses", kind: "StorageClass" },
  namespaced: false,
};

async function makeClasses({ client, loopPool }: World): Promise<void> {
  await makeDriver(client);
  const classes = {
    san: {},
    "san-wait": { volumeBindingMode: "WaitForFirstConsumer" },
    "san-retain": { reclaimPolicy: "Retain" },
    // Whose volumes are all made by hand.
    static: { provisioner: "kubernetes.io/no-provisioner" },
  };
  for (const [name, fields] of Object.entries(classes))
    await client.create(storageClasses, {
      metadata: { name },
      provisioner: SAN_DRIVER,
      allowVolumeExpansion: true,
      ...fields,
    });
  await client.create(volumeSnapshotClasses, {
    metadata: { name: "san", annotations: { [DEFAULT_SNAPSHOT_CLASS]: "true" } },
    ...{ driver: SAN_DRIVER, deletionPolicy: "Delete" },
  });
  // As `mooring up` has them.
  if (loopPool !== undefined) await ensureDefaults(client);
}

import type { Random } from "../base/random.ts";
import type { Act, ActFields } from "./act.ts";
import { drawAct, drawApp, type DrawOptions, type Names } from "./draws.ts";

export interface Step {
  readonly atMs: number;
  readonly act: Act;
}

export type Plan = readonly Step[];

export interface PlanOptions extends DrawOptions {
  /** How long things happen and go wrong. */
  readonly durationMs: number;
  /** Between two acts, on the average. */
  readonly everyMs?: number | undefined;
  /** Values that every act of a kind has, instead of those that were drawn. */
  readonly fields?: ActFields | undefined;
}

const EVERY_MS = 12_000;
/** So long the cluster is left alone at first. */
const QUIET_MS = 5_000;

/** A plan of one seed. */
export function generatePlan(random: Random, options: PlanOptions): Plan {
  const { durationMs, apps, everyMs = EVERY_MS, fields = {} } = options;
  const steps: Step[] = [];
  for (let at = 0; at < apps; at++)
    steps.push({
      atMs: QUIET_MS + random.int(20_000),
      act: { ...drawApp(random, `app${at}`, options), ...fields["add-app"] },
    });
  const names = namesOf(random, options);
  for (let atMs = QUIET_MS; ;) {
    atMs += random.float() * 2 * everyMs;
    if (atMs >= durationMs) break;
    const act = drawAct(random, options, names);
    steps.push({ atMs: Math.round(atMs), act: { ...act, ...fields[act.kind] } as Act });
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}

/** So many nodes are left at least. */
const NODES_MIN = 3;

/** Of a plan whose first apps have their names. */
function namesOf(random: Random, { apps, ...options }: PlanOptions): Names {
  const nodes = [...options.nodes];
  const processes = [...options.processes];
  const spare = [...options.spareNodes];
  let nextApp = apps;
  let nextSnapshot = 0;
  const snapshots: string[] = [];
  const some = () => random.int(Math.max(1, snapshots.length));
  return {
    nodes,
    processes,
    newNode() {
      const name = spare.shift();
      if (name !== undefined) {
        nodes.push(name);
        // The same as on the first.
        for (const process of options.processes)
          if (/^node-1($|-)/.test(process)) processes.push(process.replace("node-1", name));
      }
      return name;
    },
    goneNode() {
      if (nodes.length <= NODES_MIN) return undefined;
      const [name = ""] = nodes.splice(random.int(nodes.length), 1);
      const staying = processes.filter((process) => process !== name && !process.startsWith(`${name}-`));
      processes.splice(0, processes.length, ...staying);
      return name;
    },
    newApp: () => `app${nextApp++}`,
    newSnapshot() {
      const name = `snap${nextSnapshot++}`;
      snapshots.push(name);
      return name;
    },
    snapshot: () => snapshots[some()],
    goneSnapshot: () => snapshots.splice(some(), 1)[0],
  };
}

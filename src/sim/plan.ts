import { chance, pick, type Random } from "../base/random.ts";
import type { AccessMode } from "./apps.ts";

/** What happens to a simulated cluster: workload and faults, as data, so that a failing run can be cut down to what it needs. */
export type Act =
  | {
      readonly kind: "add-app";
      readonly app: string;
      readonly mode: AccessMode;
      readonly storageClass: string;
      /** A raw block device instead of a filesystem. */
      readonly block: boolean;
      readonly node: string | undefined;
    }
  /** Its process ends by itself, and the pod is over although nobody deletes it. */
  | { readonly kind: "finish-pod"; readonly app: string }
  | { readonly kind: "remove-app"; readonly app: string }
  | {
      readonly kind: "delete-pod";
      readonly app: string;
      readonly force: boolean;
      readonly node: string | undefined;
    }
  | { readonly kind: "grow"; readonly app: string }
  | { readonly kind: "drain"; readonly node: string; readonly forMs: number }
  | { readonly kind: "delete-node"; readonly node: string }
  | {
      readonly kind: "foreign-attachment";
      readonly app: string;
      readonly node: string;
      /** Under the name that ours would have on this node. */
      readonly disguisedFor: string | undefined;
      readonly forMs: number;
    }
  | { readonly kind: "power-off"; readonly node: string; readonly forMs: number; readonly taint: boolean }
  | { readonly kind: "kill"; readonly process: string; readonly forMs: number }
  | { readonly kind: "stop"; readonly process: string; readonly forMs: number }
  | { readonly kind: "freeze"; readonly process: string; readonly forMs: number }
  | { readonly kind: "kill-server"; readonly forMs: number }
  | {
      readonly kind: "link";
      readonly process: string;
      readonly state: "cut" | "half-open" | "lagging";
      readonly forMs: number;
    }
  | { readonly kind: "lossy"; readonly process: string; readonly rate: number; readonly forMs: number }
  | {
      readonly kind: "driver-faults";
      readonly machine: string;
      readonly rate: number;
      readonly slowMs: number;
      readonly forMs: number;
    }
  | { readonly kind: "pool-full"; readonly forMs: number }
  | { readonly kind: "rename-node-id"; readonly node: string }
  /** A mount that answers nobody, or that a process of the host keeps busy. */
  | { readonly kind: "hang-mount" | "hold-mount"; readonly node: string; readonly forMs: number }
  /** Somebody, or NTP, sets the clock of the machine that a process runs on. */
  | { readonly kind: "set-clock"; readonly process: string; readonly byMs: number }
  /** The CSIDriver object is deleted, and made again after a while. */
  | { readonly kind: "delete-csi-driver"; readonly forMs: number }
  | { readonly kind: "stuck"; readonly node: string; readonly forMs: number };

export interface Step {
  readonly atMs: number;
  readonly act: Act;
}

export type Plan = readonly Step[];

export interface PlanOptions {
  readonly nodes: readonly string[];
  readonly processes: readonly string[];
  readonly classes: readonly string[];
  /** How long things happen and go wrong. */
  readonly durationMs: number;
  readonly apps: number;
  /** How often acts of these kinds are drawn, instead of as usual. */
  readonly weights?: ActWeights | undefined;
  /** Between two acts, on the average. */
  readonly everyMs?: number | undefined;
}

export type ActWeights = Partial<Readonly<Record<Act["kind"], number>>>;

const EVERY_MS = 12_000;
/** So long the cluster is left alone at first. */
const QUIET_MS = 5_000;

/** A plan of one seed. */
export function generatePlan(random: Random, options: PlanOptions): Plan {
  const { durationMs, apps, everyMs = EVERY_MS } = options;
  const steps: Step[] = [];
  for (let at = 0; at < apps; at++)
    steps.push({ atMs: QUIET_MS + random.int(20_000), act: addApp(random, `app${at}`, options) });
  let next = apps;
  for (let atMs = QUIET_MS; ;) {
    atMs += random.float() * 2 * everyMs;
    if (atMs >= durationMs) break;
    const act = drawAct(random, options, () => `app${next++}`);
    steps.push({ atMs: Math.round(atMs), act });
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}

function addApp(random: Random, app: string, { nodes, classes }: PlanOptions): Act {
  const mode = pick(random, ["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"] as const);
  const storageClass = pick(random, classes);
  const block = chance(random, 0.2);
  return { kind: "add-app", app, mode, storageClass, block, node: someNode(random, nodes) };
}

const someNode = (random: Random, nodes: readonly string[]) =>
  chance(random, 0.6) ? pick(random, nodes) : undefined;

/** Short ones often, long ones now and then: timers of minutes have to pass too. */
function drawMs(random: Random, msMax: number): number {
  return Math.round(msMax * random.float() ** 3) + 100;
}

const DAY = 600_000;
const LINKS = ["cut", "cut", "cut", "half-open", "lagging"] as const;

/** How often each is drawn, against the others. */
const WEIGHTS: readonly (readonly [Act["kind"], number])[] = [
  ["add-app", 2],
  ["remove-app", 2],
  ["delete-pod", 14],
  ["grow", 2],
  ["drain", 3],
  ["delete-node", 1],
  ["foreign-attachment", 2],
  ["power-off", 4],
  ["kill", 8],
  ["stop", 3],
  ["freeze", 5],
  ["kill-server", 2],
  ["link", 6],
  ["lossy", 6],
  ["driver-faults", 5],
  ["pool-full", 1],
  ["rename-node-id", 1],
  ["finish-pod", 3],
  ["hang-mount", 1],
  ["hold-mount", 2],
  ["set-clock", 2],
  ["delete-csi-driver", 1],
  ["stuck", 2],
];

/** Every kind that a plan can have. */
export const ACT_KINDS: readonly Act["kind"][] = WEIGHTS.map(([kind]) => kind);

function drawAct(random: Random, options: PlanOptions, newName: () => string): Act {
  const { nodes, processes, apps } = options;
  const app = `app${random.int(apps + 2)}`;
  const node = pick(random, nodes);
  const process = pick(random, processes);
  const kind = drawKind(random, options.weights ?? {});
  switch (kind) {
    case "add-app":
      return addApp(random, newName(), options);
    case "remove-app":
      return { kind, app };
    case "delete-pod":
      return { kind, app, force: chance(random, 0.25), node: someNode(random, nodes) };
    case "grow":
      return { kind, app };
    case "drain":
      return { kind, node, forMs: drawMs(random, 120_000) };
    case "delete-node":
      return { kind, node };
    case "foreign-attachment":
      return {
        ...{ kind, app, node, forMs: drawMs(random, 180_000) },
        disguisedFor: chance(random, 0.25) ? pick(random, nodes) : undefined,
      };
    case "power-off":
      return { kind, node, forMs: drawMs(random, DAY), taint: chance(random, 0.4) };
    case "kill":
    case "stop":
      return { kind, process, forMs: drawMs(random, 90_000) };
    case "freeze":
      return { kind, process, forMs: drawMs(random, 60_000) };
    case "kill-server":
      return { kind, forMs: drawMs(random, 60_000) };
    case "link":
      return { kind, process, state: pick(random, LINKS), forMs: drawMs(random, DAY) };
    case "lossy":
      return { kind, process, rate: random.float() ** 2 * 0.3, forMs: drawMs(random, 180_000) };
    case "driver-faults":
      return {
        kind,
        machine: pick(random, ["infra", ...nodes]),
        rate: random.float() ** 2 * 0.6,
        slowMs: drawMs(random, 30_000),
        forMs: drawMs(random, 180_000),
      };
    case "pool-full":
      return { kind, forMs: drawMs(random, 120_000) };
    case "rename-node-id":
      return { kind, node };
    case "finish-pod":
      return { kind, app };
    case "hang-mount":
    case "hold-mount":
      return { kind, node, forMs: drawMs(random, 120_000) };
    case "set-clock":
      return { kind, process, byMs: drawMs(random, DAY) * (chance(random, 0.5) ? 1 : -1) };
    case "delete-csi-driver":
      return { kind, forMs: drawMs(random, 60_000) };
    case "stuck":
      return { kind, node, forMs: drawMs(random, DAY) };
  }
}

function drawKind(random: Random, weights: ActWeights): Act["kind"] {
  const total = WEIGHTS.reduce((sum, [kind, weight]) => sum + (weights[kind] ?? weight), 0);
  let left = random.float() * total;
  for (const [kind, weight] of WEIGHTS) {
    left -= weights[kind] ?? weight;
    if (left < 0) return kind;
  }
  return "delete-pod";
}

/** `kill node-1 for 12.3 s`, for people. */
export function renderAct(act: Act): string {
  const { kind, ...fields } = act;
  const parts = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined || value === false) return [];
    if (key.endsWith("Ms")) return [`${key.slice(0, -2)}=${(Number(value) / 1_000).toFixed(1)}s`];
    return [typeof value === "number" ? `${key}=${value.toFixed(3)}` : `${key}=${String(value)}`];
  });
  return [kind, ...parts].join(" ");
}

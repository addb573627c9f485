import { chance, pick, type Random } from "../base/random.ts";
import type { Act, ActOf, ActWeights } from "./act.ts";

export interface DrawOptions {
  readonly nodes: readonly string[];
  readonly processes: readonly string[];
  /** Of storage; `static` is one whose volumes an operator makes. */
  readonly classes: readonly string[];
  readonly apps: number;
  /** How often acts of these kinds are drawn, instead of as usual. */
  readonly weights?: ActWeights | undefined;
}

/** What most acts need, drawn before the kind is known. */
interface Draw {
  readonly random: Random;
  readonly options: DrawOptions;
  readonly app: string;
  readonly node: string;
  readonly process: string;
  readonly newName: () => string;
  readonly ms: (msMax: number) => number;
  /** One of the nodes, or none in particular. */
  readonly someNode: () => string | undefined;
}

const DAY = 600_000;
const LINKS = ["cut", "cut", "cut", "half-open", "lagging"] as const;

type Draws = {
  readonly [K in Act["kind"]]: {
    /** How often it is drawn, against the others. */
    readonly weight: number;
    readonly draw: (of: Draw) => Omit<ActOf<K>, "kind">;
  };
};

const DRAWS: Draws = {
  "add-app": { weight: 2, draw: ({ random, options, newName }) => drawApp(random, newName(), options) },
  "remove-app": { weight: 2, draw: ({ app }) => ({ app }) },
  "delete-pod": {
    weight: 14,
    draw: ({ random, app, someNode }) => ({ app, force: chance(random, 0.25), node: someNode() }),
  },
  grow: { weight: 2, draw: ({ app }) => ({ app }) },
  "replace-claim": { weight: 2, draw: ({ app, ms }) => ({ app, volumeAfterMs: ms(60_000) }) },
  "replace-disk": { weight: 2, draw: ({ app, ms }) => ({ app, forMs: ms(60_000) }) },
  "rename-volume": { weight: 2, draw: ({ app, ms }) => ({ app, forMs: ms(60_000) }) },
  drain: { weight: 3, draw: ({ node, ms }) => ({ node, forMs: ms(120_000) }) },
  "delete-node": { weight: 1, draw: ({ node }) => ({ node }) },
  "foreign-attachment": {
    weight: 2,
    draw: ({ random, app, node, options, ms }) => ({
      ...{ app, node, forMs: ms(180_000) },
      disguisedFor: chance(random, 0.25) ? pick(random, options.nodes) : undefined,
    }),
  },
  "power-off": {
    weight: 4,
    draw: ({ random, node, ms }) => ({
      ...{ node, forMs: ms(DAY), taint: chance(random, 0.4) },
      driverAfterMs: chance(random, 0.25) ? ms(120_000) : undefined,
    }),
  },
  kill: { weight: 8, draw: ({ process, ms }) => ({ process, forMs: ms(90_000) }) },
  stop: { weight: 3, draw: ({ process, ms }) => ({ process, forMs: ms(90_000) }) },
  freeze: { weight: 5, draw: ({ process, ms }) => ({ process, forMs: ms(60_000) }) },
  "kill-server": { weight: 2, draw: ({ ms }) => ({ forMs: ms(60_000) }) },
  link: {
    weight: 6,
    draw: ({ random, process, ms }) => ({ process, state: pick(random, LINKS), forMs: ms(DAY) }),
  },
  lossy: {
    weight: 6,
    draw: ({ random, process, ms }) => ({ process, rate: random.float() ** 2 * 0.3, forMs: ms(180_000) }),
  },
  "driver-faults": {
    weight: 5,
    draw: ({ random, options, ms }) => ({
      machine: pick(random, ["infra", ...options.nodes]),
      rate: random.float() ** 2 * 0.6,
      slowMs: ms(30_000),
      forMs: ms(180_000),
    }),
  },
  "pool-full": { weight: 1, draw: ({ ms }) => ({ forMs: ms(120_000) }) },
  "limit-volumes": {
    weight: 2,
    draw: ({ random, node, ms }) => ({ node, volumesMax: 1 + random.int(4), forMs: ms(180_000) }),
  },
  "rename-node-id": { weight: 1, draw: ({ node }) => ({ node }) },
  "finish-pod": { weight: 3, draw: ({ app }) => ({ app }) },
  "hang-mount": { weight: 1, draw: ({ node, ms }) => ({ node, forMs: ms(120_000) }) },
  "hold-mount": { weight: 2, draw: ({ node, ms }) => ({ node, forMs: ms(120_000) }) },
  "set-clock": {
    weight: 2,
    draw: ({ random, process, ms }) => ({ process, byMs: ms(DAY) * (chance(random, 0.5) ? 1 : -1) }),
  },
  "delete-csi-driver": { weight: 1, draw: ({ ms }) => ({ forMs: ms(60_000) }) },
  stuck: { weight: 2, draw: ({ node, ms }) => ({ node, forMs: ms(DAY) }) },
  "host-faults": {
    weight: 3,
    draw: ({ random, node, ms }) => ({ node, rate: 0.05 + random.float() ** 2 * 0.5, forMs: ms(DAY) }),
  },
  blackout: { weight: 1, draw: ({ ms }) => ({ forMs: ms(120_000) }) },
  "stale-mount": { weight: 1, draw: ({ node, ms }) => ({ node, forMs: ms(120_000) }) },
  "delete-attachment": { weight: 2, draw: ({ app }) => ({ app }) },
  "switch-csi-driver": { weight: 1, draw: ({ ms }) => ({ forMs: ms(120_000) }) },
};

/** Every kind that a plan can have. */
export const ACT_KINDS = Object.keys(DRAWS) as readonly Act["kind"][];

export function drawApp(random: Random, app: string, { nodes, classes }: DrawOptions): ActOf<"add-app"> {
  const mode = pick(random, ["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"] as const);
  const storageClass = pick(random, classes);
  const block = chance(random, 0.2);
  const volumeAfterMs = storageClass === "static" ? drawMs(random, 120_000) : undefined;
  return { kind: "add-app", app, mode, storageClass, block, node: someNode(random, nodes), volumeAfterMs };
}

export function drawAct(random: Random, options: DrawOptions, newName: () => string): Act {
  const { nodes, processes, apps } = options;
  const drawn: Draw = {
    ...{ random, options, newName },
    app: `app${random.int(apps + 2)}`,
    node: pick(random, nodes),
    process: pick(random, processes),
    ms: (msMax) => drawMs(random, msMax),
    someNode: () => someNode(random, nodes),
  };
  const kind = drawKind(random, options.weights ?? {});
  return { kind, ...DRAWS[kind].draw(drawn) } as Act;
}

/** Short ones often, long ones now and then: timers of minutes have to pass too. */
function drawMs(random: Random, msMax: number): number {
  return Math.round(msMax * random.float() ** 3) + 100;
}

const someNode = (random: Random, nodes: readonly string[]) =>
  chance(random, 0.6) ? pick(random, nodes) : undefined;

function drawKind(random: Random, weights: ActWeights): Act["kind"] {
  const weightOf = (kind: Act["kind"]) => weights[kind] ?? DRAWS[kind].weight;
  const total = ACT_KINDS.reduce((sum, kind) => sum + weightOf(kind), 0);
  let left = random.float() * total;
  for (const kind of ACT_KINDS) {
    left -= weightOf(kind);
    if (left < 0) return kind;
  }
  return "delete-pod";
}

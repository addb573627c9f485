import { chance, pick, type Random } from "../base/random.ts";
import type { Act, ActOf, ActWeights } from "./act.ts";
import { CONTROLLER_ABILITIES, NODE_ABILITIES } from "./san-abilities.ts";

export interface DrawOptions {
  readonly nodes: readonly string[];
  readonly processes: readonly string[];
  /** Nodes that can join. */
  readonly spareNodes: readonly string[];
  /** Of storage; `static` is one whose volumes an operator makes. */
  readonly classes: readonly string[];
  readonly apps: number;
  /** How often acts of these kinds are drawn, instead of as usual. */
  readonly weights?: ActWeights | undefined;
}

/** What the acts of a plan make and take away, so that later ones hit what is there. */
export interface Names {
  readonly nodes: readonly string[];
  readonly processes: readonly string[];
  /** One more from now on; undefined where none is left to join. */
  readonly newNode: () => string | undefined;
  /** One less from now on; undefined where too few would be left. */
  readonly goneNode: () => string | undefined;
  readonly newApp: () => string;
  readonly newSnapshot: () => string;
  /** One of those there are. */
  readonly snapshot: () => string | undefined;
  /** One less from now on. */
  readonly goneSnapshot: () => string | undefined;
}

/** What most acts need, drawn before the kind is known. */
interface Draw {
  readonly random: Random;
  readonly options: DrawOptions;
  readonly app: string;
  readonly node: string;
  readonly process: string;
  readonly names: Names;
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
    /** Undefined where there is nothing for it. */
    readonly draw: (of: Draw) => Omit<ActOf<K>, "kind"> | undefined;
  };
};

const DRAWS: Draws = {
  "add-app": {
    weight: 2,
    draw: ({ random, options, names }) => drawApp(random, names.newApp(), { ...options, ...names }),
  },
  "remove-app": { weight: 3, draw: ({ app }) => ({ app }) },
  "delete-pod": {
    weight: 14,
    draw: ({ random, app, someNode }) => ({ app, force: chance(random, 0.25), node: someNode() }),
  },
  grow: { weight: 2, draw: ({ app }) => ({ app }) },
  snapshot: { weight: 6, draw: (of) => ({ app: firstApp(of), snapshot: of.names.newSnapshot() }) },
  "delete-snapshot": {
    weight: 3,
    draw: ({ names }) => someName(names.goneSnapshot(), (snapshot) => ({ snapshot })),
  },
  restore: {
    weight: 7,
    draw: (of) => someName(of.names.snapshot(), (snapshot) => ({ snapshot, ...drawCopy(of) })),
  },
  clone: { weight: 4, draw: (of) => ({ of: firstApp(of), ...drawCopy(of) }) },
  "pod-without-claim": { weight: 1, draw: ({ node, ms }) => ({ node, forMs: ms(180_000) }) },
  "replace-claim": { weight: 2, draw: ({ app, ms }) => ({ app, volumeAfterMs: ms(60_000) }) },
  "replace-disk": { weight: 2, draw: ({ app, ms }) => ({ app, forMs: ms(60_000) }) },
  "rename-volume": { weight: 2, draw: ({ app, ms }) => ({ app, forMs: ms(60_000) }) },
  drain: { weight: 3, draw: ({ node, ms }) => ({ node, forMs: ms(120_000) }) },
  "delete-node": { weight: 1, draw: ({ node }) => ({ node }) },
  join: { weight: 4, draw: ({ names }) => someName(names.newNode(), (node) => ({ node })) },
  leave: {
    weight: 5,
    draw: ({ names, ms }) => someName(names.goneNode(), (node) => ({ node, forMs: ms(120_000) })),
  },
  reinstall: {
    weight: 2,
    draw: ({ random, node, ms }) => ({ node, deleted: chance(random, 0.7), forMs: ms(300_000) }),
  },
  "foreign-attachment": {
    weight: 2,
    draw: ({ random, app, node, names, ms }) => ({
      ...{ app, node, forMs: ms(180_000) },
      disguisedFor: chance(random, 0.25) ? pick(random, names.nodes) : undefined,
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
  // In every second plan.
  "original-controller": {
    weight: 1.5,
    draw: ({ random, ms }) => ({
      ...{ kill: chance(random, 0.3), forMs: ms(DAY) },
      rate: chance(random, 0.5) ? random.float() ** 2 * 0.3 : 0,
    }),
  },
  "driver-faults": {
    weight: 5,
    draw: ({ random, names, ms }) => ({
      machine: pick(random, ["infra", ...names.nodes]),
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
  "upgrade-controller": {
    weight: 3,
    draw: ({ random, ms }) => ({ lacks: pick(random, CONTROLLER_ABILITIES), forMs: ms(300_000) }),
  },
  "upgrade-node-driver": {
    weight: 4,
    draw: ({ random, node, ms }) => ({ node, lacks: pick(random, NODE_ABILITIES), forMs: ms(300_000) }),
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

const MODES = ["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"] as const;

export function drawApp(
  random: Random,
  app: string,
  { nodes, classes }: Pick<DrawOptions, "nodes" | "classes">,
): ActOf<"add-app"> {
  const mode = pick(random, MODES);
  const storageClass = pick(random, classes);
  const block = chance(random, 0.2);
  const volumeAfterMs = storageClass === "static" ? drawMs(random, 120_000) : undefined;
  return { kind: "add-app", app, mode, storageClass, block, node: someNode(random, nodes), volumeAfterMs };
}

/** One that a plan begins with: it has data when it is copied. */
const firstApp = ({ random, options }: Draw) => `app${random.int(options.apps)}`;

function drawCopy({ random, names, someNode: node }: Draw) {
  const late = chance(random, 0.25);
  return { app: names.newApp(), mode: pick(random, MODES), node: node(), late };
}

export function drawAct(random: Random, options: DrawOptions, names: Names): Act {
  const { nodes, processes } = names;
  const drawn: Draw = {
    ...{ random, options, names },
    app: `app${random.int(options.apps + 2)}`,
    node: pick(random, nodes),
    process: pick(random, processes),
    ms: (msMax) => drawMs(random, msMax),
    someNode: () => someNode(random, nodes),
  };
  const kind = drawKind(random, options.weights ?? {});
  const fields = DRAWS[kind].draw(drawn);
  return fields === undefined ? drawAct(random, options, names) : ({ kind, ...fields } as Act);
}

function someName<T>(name: string | undefined, fields: (name: string) => T): T | undefined {
  return name === undefined ? undefined : fields(name);
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

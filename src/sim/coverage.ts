import { WAITING_REASONS as ATTACHER_REASONS } from "../attacher/waiting.ts";
import { WAITING_REASONS as CONTROLLER_REASONS } from "../attach-detach/waiting.ts";
import { WAITING_REASONS as NODE_REASONS } from "../node/waiting.ts";
import { NAMESPACE, type Apps } from "./apps.ts";
import type { Act } from "./act.ts";
import { attachmentOf } from "./acts/attachments.ts";
import { CAUSES } from "./checkers/why-causes.ts";
import { ACT_KINDS } from "./draws.ts";
import { reportedWaits } from "./reported-waits.ts";
import type { Observer } from "./run.ts";
import { SAN_DRIVER } from "./san.ts";
import type { World } from "./world.ts";

/** How often something was met. */
export type Counts = Readonly<Record<string, number>>;

/** What runs came by: data, so that threads can add theirs. */
export interface Coverage {
  /** Acts carried out, by kind. */
  readonly acts: Counts;
  /** Those that found something to act upon. */
  readonly effective: Counts;
  /** In how many simulated seconds somebody waited for it: `controller still-mounted`. */
  readonly waits: Counts;
  /** Answers of `why` about pods that did not run, which were judged by what was broken. */
  readonly answers: Counts;
}

export const NO_COVERAGE: Coverage = { acts: {}, effective: {}, waits: {}, answers: {} };

/** Everything there is to be seen, by the name it has in a Coverage. */
export const KNOWN: Readonly<Record<keyof Coverage, readonly string[]>> = {
  acts: ACT_KINDS,
  effective: ACT_KINDS,
  waits: [
    ...CONTROLLER_REASONS.map((reason) => `controller ${reason}`),
    ...ATTACHER_REASONS.map((reason) => `attacher ${reason}`),
    ...NODE_REASONS.map((reason) => `node ${reason}`),
  ],
  answers: Object.keys(CAUSES),
};

export function addCoverage(one: Coverage, other: Coverage): Coverage {
  return {
    acts: addCounts(one.acts, other.acts),
    effective: addCounts(one.effective, other.effective),
    waits: addCounts(one.waits, other.waits),
    answers: addCounts(one.answers, other.answers),
  };
}

/** What was never met, of what is known. */
export function neverSeen(coverage: Coverage, what: keyof Coverage): readonly string[] {
  return KNOWN[what].filter((name) => coverage[what][name] === undefined);
}

function addCounts(one: Counts, other: Counts): Counts {
  const sum = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** Looks on and counts. */
export class CoverageObserver implements Observer {
  readonly #counts: Record<keyof Coverage, Record<string, number>> = {
    ...{ acts: {}, effective: {}, waits: {}, answers: {} },
  };

  get coverage(): Coverage {
    return this.#counts;
  }

  onAct(act: Act, world: World, apps: Apps): void {
    this.#count("acts", act.kind);
    const finds = FINDS[act.kind] as ((act: Act, world: World, apps: Apps) => boolean) | undefined;
    if (finds?.(act, world, apps) !== false) this.#count("effective", act.kind);
  }

  onSecond(world: World): void {
    for (const name of new Set(reportedWaits(world).map(({ who, reason }) => `${who} ${reason}`)))
      this.#count("waits", name);
  }

  onAnswer(reason: string): void {
    this.#count("answers", reason);
  }

  #count(what: keyof Coverage, name: string): void {
    this.#counts[what][name] = (this.#counts[what][name] ?? 0) + 1;
  }
}

type Finds = {
  readonly [K in Act["kind"]]?: (act: Extract<Act, { kind: K }>, world: World, apps: Apps) => boolean;
};

const isRunning = ({ process }: { process: string }, world: World) =>
  world.processes.get(process)?.isRunning === true;
const hasClaim = ({ app }: { app: string }, _: World, apps: Apps) =>
  apps.claimOf({ name: app })?.spec?.volumeName !== undefined;

const hasSnapshot = ({ snapshot }: { snapshot: string }, world: World) =>
  world.objects.get("volumesnapshots.snapshot.storage.k8s.io", snapshot, NAMESPACE) !== undefined;

/** Whether an act finds what it is for; a kind without an entry always does. */
const FINDS: Finds = {
  "remove-app": ({ app }, _, apps) => apps.apps.has(app),
  "delete-pod": ({ app }, _, apps) => apps.podOf({ name: app }) !== undefined,
  grow: hasClaim,
  snapshot: ({ app }, _, apps) => apps.apps.has(app),
  "delete-snapshot": hasSnapshot,
  restore: hasSnapshot,
  clone: ({ of }, _, apps) => apps.apps.has(of),
  "pod-without-claim": (_, world) => world.server.isUp,
  "foreign-attachment": hasClaim,
  "delete-attachment": ({ app }, world, apps) => attachmentOf(app, { apps, world }) !== undefined,
  "replace-claim": ({ app }, _, apps) => apps.claimOf({ name: app }) !== undefined,
  "replace-disk": hasClaim,
  "rename-volume": hasClaim,
  "delete-node": ({ node }, world) => world.objects.get("nodes", node) !== undefined,
  drain: ({ node }, world) => world.objects.get("nodes", node) !== undefined,
  join: ({ node }, world) => !world.nodes.has(node),
  leave: ({ node }, world) => world.nodes.get(node)?.isGone === false,
  reinstall: ({ node }, world) => world.nodes.get(node)?.isGone === false,
  "power-off": ({ node }, world) => world.nodes.get(node)?.machine.isOn === true,
  blackout: (_, world) => world.infra.isOn,
  kill: isRunning,
  stop: isRunning,
  freeze: isRunning,
  link: isRunning,
  lossy: isRunning,
  "original-controller": (_, world) => world.handover.isOurs,
  "kill-server": (_, world) => world.server.isUp,
  "limit-volumes": ({ node, volumesMax }, world) => world.nodes.get(node)?.limits.volumesMax !== volumesMax,
  "upgrade-controller": ({ lacks }, world) => !world.san.lacks.has(lacks),
  "upgrade-node-driver": ({ node, lacks }, world) => world.nodes.get(node)?.lacks.has(lacks) === false,
  "switch-csi-driver": (_, world) =>
    world.objects.get("csidrivers.storage.k8s.io", SAN_DRIVER)?.spec.attachRequired !== false,
  "pool-full": (_, world) => !world.san.isFull,
};

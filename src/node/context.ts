import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import type { Node } from "../kube/api/node.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { referenceTo, type EventRecorder } from "../kube/events/events.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import type { PendingOperations } from "../operations/pending.ts";
import type { NodeName, VolumeName } from "../volumes/names.ts";
import type { NodeCaches } from "./caches.ts";
import type { Evidence } from "./evidence/evidence.ts";
import type { Host } from "./host.ts";
import type { InUseList } from "./in-use.ts";
import type { Confirmations } from "./restart/confirm.ts";
import type { Journal } from "./restart/journal.ts";
import type { Measure } from "./measure.ts";
import type { Paths } from "./paths.ts";
import type { PluginTable } from "./plugin-table.ts";
import type { PodStates } from "./pod-states.ts";
import type { Selinux } from "./steps/selinux.ts";
import type { SelinuxMeasure } from "./steps/selinux-metrics.ts";
import type { VolumeState, World } from "./world.ts";

/** What the volume manager is given. */
export interface NodeDeps {
  readonly client: Client;
  readonly caches: NodeCaches;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly host: Host;
  readonly paths: Paths;
  readonly plugins: PluginTable;
  readonly nodeName: NodeName;
}

/** Labels of this machine, and for which volumes they are used. */
export interface SelinuxRules {
  readonly host: Selinux;
  /** Gate SELinuxMount. */
  readonly everyVolume: boolean;
  readonly measure: SelinuxMeasure;
}

/** What its parts share. */
export interface Context extends NodeDeps {
  readonly world: World;
  readonly operations: PendingOperations;
  readonly volumes: WorkQueue<VolumeName>;
  readonly journal: Journal;
  readonly inUse: InUseList;
  readonly confirmations: Confirmations;
  readonly measure: Measure;
  readonly evidence: Evidence;
  readonly podStates: PodStates;
  /** Waiters of this pod look again. */
  readonly podChanged: (podUid: string) => void;
  /** Where the pod's volumes lead is looked up once more. */
  readonly followAgain: (podUid: string) => void;
  /** When the first token of this pod should be replaced, in the clock's `now()`. */
  readonly tokenDueAtMs: (podUid: string) => number | undefined;
  readonly selinux: SelinuxRules;
  /** False: this node attaches for itself, without a controller. */
  readonly controllerAttaches: boolean;
  /** All pods are known and, after a restart, so is the node's status. */
  readonly readyToUnmount: () => boolean;
  /** The newest node object seen, by watch or by an answer. */
  readonly node: () => Node | undefined;
  /** Promises of operations under way. */
  readonly running: Set<Promise<void>>;
  /** Aborts when the manager stops: nothing begins from then on. */
  readonly stopping: AbortSignal;
  /** Aborts a little later: what is under way by then is cut off. */
  readonly cutOff: AbortSignal;
  /** How long after it began a call to a driver may be under way, answered or not. */
  readonly callWindowMs: number;
  /** When this agent came to be, in the clock's `now()`. */
  readonly startedAtMs: number;
  /** A CSI driver that lives in the agent's process: a call to it has ended with the process that made it. */
  readonly ownDriver: string | undefined;
}

/** Something about the volume may have changed: it is looked at, and so is whether it is in use. */
export function mark({ volumes, inUse }: Pick<Context, "volumes" | "inUse">, volume: VolumeState): void {
  volumes.add(volume.name);
  inUse.touch(volume.name);
}

export function tellPod(
  { events }: Pick<Context, "events">,
  pod: Pod,
  event: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string },
): void {
  events.record({ ref: referenceTo(pods, pod), ...event });
}

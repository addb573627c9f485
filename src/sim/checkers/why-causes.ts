import type { Reason } from "../../views/reasons/reasons.ts";
import type { Fault } from "./fault-ledger.ts";

/** Whom an answer of `why` names. */
export interface Named {
  /** Of the pod that was asked about; empty where it has none. */
  readonly node: string;
  /** Every node in the answer, and that one. */
  readonly nodes: readonly string[];
  /** What Mooring's controller, attacher or node agent says that it waits for, where the answer rests on that. */
  readonly waiting: string;
  /** Which of them says so: `controller`, `attacher` or `node`. */
  readonly waits: string;
  /** A Node where it may be put is tainted, cordoned or not ready. */
  readonly isSomeNodeClosed: boolean;
  /** There is no Node for the selector of the pod: it left, or has not joined. */
  readonly isSelectedNodeMissing: boolean;
  /** Its volume is to be made of another or of a snapshot, which a driver may refuse for what that is. */
  readonly isCopy: boolean;
}

/**
 * Which faults an answer may truthfully name, one of which must have been in force. `objects`: what people did to objects, or
 * what an object says of another; the answer is read from those, so that there is nothing to compare.
 */
export type Causes = (named: Named) => readonly Fault[] | "objects";

const OBJECTS: Causes = () => "objects";
const SERVER: readonly Fault[] = ["server"];
const CONTROLLERS: readonly Fault[] = [...SERVER, "process controller-0", "process controller-1"];
const STORAGE: readonly Fault[] = ["pool", "calls infra", "process san-driver", "process loop-driver"];
const ATTACHER: readonly Fault[] = [...SERVER, ...STORAGE, "process attacher"];
/** The binder, the provisioner, the scheduler and the resizer are one process here. */
const COMPANIONS: readonly Fault[] = [...SERVER, ...STORAGE, "process companions"];

function agentOf(node: string): readonly Fault[] {
  return [...SERVER, `process ${node}`, `power ${node}`, `kernel ${node}`, `renewed ${node}`];
}

/** Who mounts and unmounts there, and what keeps them from it. */
function mountsOf(node: string): readonly Fault[] {
  const drivers = [
    `process ${node}-driver`,
    `process ${node}-loop`,
    `calls ${node}`,
    `limit ${node}`,
  ] as const;
  return [...agentOf(node), ...drivers, `stuck ${node}`];
}

/** What keeps a volume attached there. */
function attachmentsOf(node: string): readonly Fault[] {
  return [...mountsOf(node), `detached ${node}`];
}

const ofControllers: Causes = () => CONTROLLERS;
const ofAttacher: Causes = () => ATTACHER;
const ofCompanions: Causes = () => COMPANIONS;
const ofAgent: Causes = ({ node }) => agentOf(node);
const ofMounts: Causes = ({ node }) => mountsOf(node);
/** What a driver refuses to mount may be a volume that no controller was told to attach. */
const ofRefusedMounts: Causes = ({ node }) => [...mountsOf(node), "csidriver"];
/** Of the node that has the volume, which is among those that are named. */
const ofHolder: Causes = ({ nodes }) => nodes.flatMap(mountsOf);
const ofHolderOrAttacher: Causes = ({ nodes }) => [
  ...ATTACHER,
  ...CONTROLLERS,
  ...nodes.flatMap(attachmentsOf),
];
/** A driver may refuse to detach what is staged on the node, where a process keeps the volume. */
const ofDetach: Causes = ({ nodes }) => [...ATTACHER, ...nodes.flatMap(attachmentsOf)];
/** A scheduler that finds no node speaks of nodes that are cordoned, tainted, silent or full, and its word may be old. */
const ofNodes: Causes = ({ nodes }) => [...COMPANIONS, ...nodes.flatMap(mountsOf)];

/** By what the program itself says; reasons that speak of objects are judged by the checker of waiting reasons. */
const WAITING: Readonly<Record<string, Causes>> = {
  "api-request": ({ waits }) => (waits === "attacher" ? [...SERVER, "process attacher"] : CONTROLLERS),
  "driver-attaching": ofAttacher,
  "driver-detaching": ofAttacher,
  worker: ofAttacher,
  "node-status": ofControllers,
  "node-unknown": ofMounts,
  "held-by-other-node": ofHolderOrAttacher,
  "still-mounted": ofHolder,
  "being-detached": ofDetach,
  backoff: ofHolderOrAttacher,
  "in-use-not-reported": ofAgent,
  "not-attached": ofHolderOrAttacher,
  "held-by-other-pod": ofMounts,
  "step-running": ofMounts,
  "call-unanswered": ofMounts,
  "looking-for-holders": ofMounts,
  "held-by-process": ofMounts,
  "taking-turns": ofMounts,
  "not-synced": ofAgent,
  "stale-cache": ofControllers,
};

const ofWaiting: Causes = (named) => (WAITING[named.waiting] ?? OBJECTS)(named);

/** What `why` may say of a pod of the simulated cluster. What is not here nothing of it brings about. */
export const CAUSES: Readonly<Partial<Record<Reason, Causes>>> = {
  unschedulable: ofNodes,
  "unschedulable-limit": OBJECTS,
  "unschedulable-cordoned": ({ isSomeNodeClosed }) => (isSomeNodeClosed ? "objects" : []),
  // Of taints that no Node has only a scheduler speaks that has not looked since.
  "unschedulable-taint": ({ isSomeNodeClosed }) => (isSomeNodeClosed ? "objects" : COMPANIONS),
  // A pod of this cluster selects one node by its name, and whether there is one of that name all can read.
  "unschedulable-affinity": ({ isSelectedNodeMissing }) => (isSelectedNodeMissing ? "objects" : []),
  "unschedulable-volume": OBJECTS,
  "scheduler-silent": ofCompanions,
  "held-by-other-pod": OBJECTS,
  "pod-not-ended": ofMounts,

  "claim-missing": OBJECTS,
  "claim-deleting": OBJECTS,
  "claim-finalizers": ofCompanions,
  "claim-lost": OBJECTS,
  "claim-static-unmatched": OBJECTS,
  "claim-volume-unfit": OBJECTS,
  "claim-bypasses-scheduler": OBJECTS,
  "volume-bound-elsewhere": OBJECTS,
  "selected-node-missing": OBJECTS,
  "binder-silent": ofCompanions,
  // The driver makes volumes for a node only once it has registered there.
  "provision-failed": (named) => (named.isCopy ? "objects" : ofNodes(named)),
  "provisioner-silent": ofCompanions,

  "volume-missing": OBJECTS,
  "volume-not-bound-back": OBJECTS,
  "volume-released": OBJECTS,
  "volume-not-reclaimed": ofCompanions,
  "volume-failed": ofCompanions,
  "volume-deleting": OBJECTS,
  "volume-handle-shared": OBJECTS,
  "volume-deleted-in-use": OBJECTS,
  "claim-deleted-in-use": OBJECTS,

  "node-missing": OBJECTS,
  "node-not-ready": ofAgent,
  "csinode-missing": ofMounts,
  "driver-not-registered": ofMounts,
  "attach-limit": OBJECTS,
  "held-by-foreign-attachment": OBJECTS,
  "held-by-running-pod": OBJECTS,
  "held-by-missing-node": OBJECTS,
  "held-by-terminating-pod": ofHolder,
  "held-by-not-ready-node": ofHolder,
  "held-by-fenced-node": ofHolderOrAttacher,
  "holder-detach-failed": ofHolderOrAttacher,
  "holder-detaching": ofAttacher,
  "holder-unmount-failed": ofHolder,
  "holder-still-mounted": ofHolder,
  "holder-not-released": ofControllers,

  "attachment-not-created": ofControllers,
  "attach-refused": ofHolderOrAttacher,
  "attached-outside": ofHolderOrAttacher,
  "controller-waits": ofWaiting,
  "controller-behind": ofControllers,
  "controller-frozen": OBJECTS,
  "attachment-mismatch": OBJECTS,
  "attached-twice": OBJECTS,
  "foreign-attachment": OBJECTS,
  "attachment-deleting": ofAttacher,
  "attach-exhausted": ofHolderOrAttacher,
  "attach-failed": ofHolderOrAttacher,
  "attacher-missing": ofAttacher,
  "driver-attaching": ofAttacher,
  "node-status": ofControllers,
  "detaching-in-use": OBJECTS,
  "detached-in-use": OBJECTS,
  "attachment-gone": OBJECTS,
  "detach-failed": ofDetach,
  "driver-uninstalled": OBJECTS,

  "agent-silent": ofAgent,
  "volume-replaced": OBJECTS,
  "mount-driver-not-registered": ofMounts,
  "mount-timeout": ofMounts,
  "mount-failed": ofRefusedMounts,
  "unmount-failed": ofMounts,
  "node-waits": ofWaiting,
  "agent-behind": ofAgent,
  // Both say that it is not known: true only where the one who mounts cannot tell.
  "mount-pending": ofAgent,
  contradiction: ofHolderOrAttacher,
};

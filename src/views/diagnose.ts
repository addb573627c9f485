import type { Pod } from "../kube/api/pod.ts";
import {
  attachFailed,
  attachmentDeleting,
  attachmentNotCreated,
  attachRefused,
  mooringFrozen,
  mooringWaits,
  nodeStatusBehind,
  notAttached,
} from "./checks/attachment-checks.ts";
import type { Check } from "./checks/check.ts";
import {
  claimDeletedInUse,
  claimDeleting,
  volumeDeletedInUse,
  volumeDeleting,
} from "./checks/deleting-checks.ts";
import {
  attachmentGone,
  containerWaiting,
  contradiction,
  detachedInUse,
  notEnded,
} from "./checks/in-use-checks.ts";
import {
  accessModeUnmet,
  claimLost,
  claimMissing,
  claimNotOwned,
  namedVolumeTaken,
  phaseOf,
} from "./checks/claim-checks.ts";
import { attachedTwice, attachmentMismatch, foreignHere } from "./checks/foreign-checks.ts";
import { growth } from "./checks/growth-checks.ts";
import { heldByOtherNode } from "./checks/holder-checks.ts";
import { nodeWaits, unmountFailed } from "./checks/agent-checks.ts";
import { agentSilent, mountFailed, mountPending } from "./checks/mount-checks.ts";
import {
  attachLimit,
  driverNotRegistered,
  nodeMissing,
  nodeNotManaged,
  nodeNotReady,
} from "./checks/node-checks.ts";
import {
  claimUnbound,
  namedVolumeUnfit,
  provisionFailed,
  selectedNodeMissing,
} from "./checks/provision-checks.ts";
import { volumeReplaced } from "./checks/replaced-checks.ts";
import { heldByOtherPod, unschedulable } from "./checks/scheduling-checks.ts";
import {
  handleShared,
  handleSharedInUse,
  untranslatable,
  volumeMissing,
  volumeModeMismatch,
  volumeNodeConflict,
  volumeNotBoundBack,
  volumeReleased,
} from "./checks/volume-checks.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { isDeleting } from "./fields.ts";
import { says, type Finding } from "./reasons/reasons.ts";
import { bareView, volumeViewsOf, type VolumeView } from "./volume-view.ts";

const CLAIM_CHECKS: readonly Check[] = [
  claimMissing,
  claimNotOwned,
  claimDeleting,
  claimLost,
  namedVolumeTaken,
  volumeDeleting,
  (view) => (phaseOf(view) === "Bound" ? undefined : volumeReleased(view)),
  accessModeUnmet,
  namedVolumeUnfit,
  selectedNodeMissing,
  volumeMissing,
  provisionFailed,
  claimUnbound,
  volumeNotBoundBack,
  untranslatable,
];

/**
 * In causal order: what comes first explains what comes after it. A driver that is not registered explains that
 * nothing is attached, a dead node explains that another cannot have the volume, and no event of a mount counts
 * while the volume is not even attached.
 */
const WAITING_CHECKS: readonly Check[] = [
  ...CLAIM_CHECKS,
  volumeModeMismatch,
  heldByOtherPod,
  unschedulable,
  nodeMissing,
  nodeNotReady,
  volumeNodeConflict,
  driverNotRegistered,
  mooringFrozen,
  attachmentMismatch,
  handleSharedInUse,
  heldByOtherNode,
  attachedTwice,
  (view) => (view.foreign.some(isDeleting) ? foreignHere(view) : undefined),
  attachLimit,
  attachmentDeleting,
  attachFailed,
  nodeNotManaged,
  mooringWaits,
  attachRefused,
  attachmentNotCreated,
  notAttached,
  nodeStatusBehind,
  unmountFailed,
  mountFailed,
  nodeWaits,
  agentSilent,
  foreignHere,
  handleShared,
  contradiction,
  mountPending,
  growth,
];

/**
 * Of a pod that runs, its volumes are mounted; what is left is what may happen to them. That its node is silent comes first: then
 * nobody knows whether it still runs, whatever its objects lead to.
 */
const RUNNING_CHECKS: readonly Check[] = [
  nodeMissing,
  nodeNotReady,
  volumeReplaced,
  driverNotRegistered,
  attachmentMismatch,
  attachedTwice,
  detachedInUse,
  attachmentGone,
  unmountFailed,
  notEnded,
  foreignHere,
  volumeDeletedInUse,
  claimDeletedInUse,
  handleShared,
  contradiction,
  containerWaiting,
  growth,
];

/** A claim or a volume that no pod uses. */
const UNUSED_CHECKS: readonly Check[] = [...CLAIM_CHECKS, volumeReleased, handleShared, growth];

export interface Diagnosed {
  readonly view: VolumeView;
  readonly finding: Finding;
}

/** Everything found for the volumes of a pod, the root cause first. */
export function diagnosePod(cluster: Cluster, pod: Pod): readonly Diagnosed[] {
  const views = volumeViewsOf(cluster, pod);
  const checks = hasStarted(pod) ? RUNNING_CHECKS : WAITING_CHECKS;
  return inOrder(views.length === 0 ? [bareView(cluster, { pod })] : views, checks);
}

/** Everything found for one volume, used or not. */
export function diagnoseVolume(view: VolumeView): readonly Finding[] {
  return inOrder([view], checksFor(view)).map(({ finding }) => finding);
}

/** The root cause alone: lists of ten thousand volumes need no more. */
export function firstFinding(view: VolumeView): Finding | undefined {
  for (const check of checksFor(view)) {
    const finding = check(view);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

function checksFor({ pod }: VolumeView): readonly Check[] {
  if (pod === undefined) return UNUSED_CHECKS;
  return hasStarted(pod) ? RUNNING_CHECKS : WAITING_CHECKS;
}

/** By check first and by volume second: the first check that fires anywhere names the root cause. */
function inOrder(views: readonly VolumeView[], checks: readonly Check[]): readonly Diagnosed[] {
  const all = checks.flatMap((check) =>
    views.flatMap((view) => {
      const finding = check(view);
      return finding === undefined
        ? []
        : [finding, ...(finding.alike ?? [])].map((one) => ({ view, finding: one }));
    }),
  );
  const told = new Set<string>();
  return all.filter(({ finding }, index) => {
    const sentence = says(finding);
    const isNew = !told.has(sentence) && !(index > 0 && SAYS_NOTHING_MORE.has(finding.reason));
    told.add(sentence);
    return isNew;
  });
}

/** Follows from whatever else is wrong, and is of no use beside it. */
const SAYS_NOTHING_MORE = new Set<Finding["reason"]>([
  "agent-behind",
  "agent-silent",
  "attachment-not-created",
  "claim-volume-unfit",
  "contradiction",
  "driver-attaching",
  "mount-pending",
  "node-waits",
  "node-not-managed",
  "provisioner-silent",
  "scheduler-silent",
]);

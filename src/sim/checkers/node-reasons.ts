import { CALL_MS } from "../../node/late-calls.ts";
import type { WaitingReason } from "../../node/waiting.ts";
import type { ReportedWait } from "../reported-waits.ts";
import type { Facts } from "./facts.ts";
import { isOver, never, notLongerThan, unless, type Judge } from "./judge.ts";

/** What has to be so where a node agent gives a reason. */
export const NODE_JUDGES: Readonly<Record<WaitingReason, Judge>> = {
  "driver-unknown": never("the CSIDriver objects can be read"),
  "in-use-not-reported": ({ handle, node }, facts) =>
    unless(!facts.isListedInUse(handle, node), "the node's volumesInUse names it"),
  "not-attached": ({ handle, node }, facts) =>
    unless(!facts.isListedAttached(handle, node), "the node's volumesAttached names it"),
  "held-by-other-pod": ({ handle, node }, facts) =>
    unless(facts.isMountedOn(handle, node), "nobody has it mounted there"),
  "selinux-mismatch": never("no machine has SELinux"),
  // A step that the message names lasts as long as a call may; one that waits in line for another pod is as true as that pod's
  // own wait, which is judged by itself. A call that got no answer counts whether or not it has mounted anything by now, and
  // so does a step that failed after its unmount: until it was done again nobody knows that nothing is left for that pod.
  "step-running": (wait, facts) => {
    const { message, handle, node } = wait;
    if (message.includes("is under way")) return stepUnderWay(wait, facts);
    if (message.includes("got no answer in time"))
      return unless(facts.isWaitedWith(handle, wait, "call-unanswered"), "no call of it is unanswered");
    const isThere = facts.isMountedOn(handle, node) || facts.isQuoting(wait, "backoff");
    return unless(isThere, "no pod has it mounted there");
  },
  "call-unanswered": isOver,
  // That the last attempt failed nobody else can tell; that the next is due can be told.
  backoff: isOver,
  "volume-replaced": (wait, facts) => {
    const { object, node } = wait;
    // Itself, or the one that is where it belongs: `kubernetes.io/csi/<driver>^<handle>`. Of that one a call may have got no
    // answer although nothing is mounted any more: then this wait is as true as the other's own, which is judged by itself.
    const handle = object.name.slice(object.name.indexOf("^") + 1);
    const isThere = () => facts.isMountedOn(handle, node) || facts.isWaitedWith(handle, wait);
    if (object.kind === "Volume") return unless(isThere(), "nothing is mounted there");
    const pod = podOf(object, facts);
    return pod === undefined ? "the pod does not exist" : undefined;
  },
  "pod-unresolved": ({ object }, facts) => {
    const pod = podOf(object, facts);
    return pod === undefined ? "the pod does not exist" : undefined;
  },
  adopting: ({ object }, facts) =>
    unless(podOf(object, facts) !== undefined, "the pod that is to take it over does not exist"),
  // Whose turn it is only the agent tells; each turn is a call, and what was found after a start is a handful here.
  "taking-turns": notLongerThan(4 * CALL_MS),
  "looking-for-holders": notLongerThan(0),
  // Where a raw volume's device answers with an error, nobody can tell which processes have it.
  "held-by-process": ({ handle, node, message }, facts) =>
    unless(
      facts.isHeldOn(handle, node) || (isUnsure(message) && facts.isBrokenOn(handle, node)),
      "no process of the machine has it",
    ),
  "not-synced": ({ node }, facts) =>
    unless(facts.node(node) === undefined, "the Node, and the pods on it, can be read"),
};

/** By its name, or by its uid where only that is known of what was found on the disk. */
function podOf({ name, namespace }: ReportedWait["object"], facts: Facts) {
  return namespace === undefined ? facts.podByUid(name) : facts.pod(`${namespace}/${name}`);
}

function isUnsure(message: string): boolean {
  return message.startsWith("nobody could tell who has ");
}

/** Several steps may follow each other, and the wait goes on: the message has the beginning of the present one. */
function stepUnderWay(wait: ReportedWait, facts: Facts): string | undefined {
  return notLongerThan(4 * CALL_MS)(wait, facts);
}

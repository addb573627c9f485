import { isUnread } from "../kube/api/node.ts";
import { isInherited } from "./new-node.ts";
import { attachmentNameOf, isHealthy, isOutOfService, mayUse, usesVolume } from "./node-view.ts";
import type { ForceRule } from "./options.ts";
import type { Placement } from "./world.ts";

/**
 * What is true of a volume on a node, in words that hold in every state it can be in: `words.test.ts` has the table. Events,
 * waits and logs are made of these; a sentence that is true of most states burns whoever reads it in the others.
 */

/** Whether it is attached, as far as anybody knows; said of what is left as it is. */
export function standingWords({ hold, foreign }: Placement): string {
  if (hold?.confirmed || foreign.some(({ attached }) => attached)) return "stays attached";
  if (hold || foreign.length > 0) return "may be attached, and is left as it is";
  return "is not attached";
}

/** How the node uses it, or may: said of what counts as mounted. */
export function useWords(placement: Placement): string {
  const { node, volume } = placement;
  if (!node.exists)
    return `node ${node.name} is gone and ${mayUse(node, volume.name) ? "was last known to use" : "may have used"} ${volume.name}`;
  if (usesVolume(node.node, volume.name)) return `node ${node.name} still uses ${volume.name}`;
  return `node ${node.name} may be using ${volume.name}: ${doubtWords(placement)}`;
}

/** Why a node that does not list it may use it all the same. */
function doubtWords(placement: Placement): string {
  if (isUnread(placement.node.node))
    return "it registered before it had found out what is mounted on it, and has not found out yet";
  return isInherited(placement)
    ? "its Node object was created after the volume was attached and has not listed volumes in use yet"
    : "it has not been heard of since it was attached";
}

export interface Forecast {
  readonly forceRule: ForceRule;
  readonly forcedInS: number;
  /** When a node that has not spoken since its Node object was created will have had the time to, where it is one. */
  readonly spokenInS: number | undefined;
}

/** What ends the use of a volume that nobody forces, and by when it is forced where somebody does. */
export function unmountWords(placement: Placement, { forceRule, forcedInS, spokenInS }: Forecast): string {
  const { exists, node } = placement.node;
  const known = exists ? node : undefined;
  if (isHealthy(known) && !(forceRule.kind === "never" && isOutOfService(known)))
    return spokenInS === undefined
      ? "it is detached once the node has unmounted it"
      : `it is detached once the node lists volumes in use without it or has booted anew, or in ${spokenInS} s if the node stays ready until then`;
  if (forceRule.kind === "after")
    return `forced in ${forcedInS} s ${exists ? "if the node stays not ready" : "if the node does not come back ready"}`;
  const unmounted = exists ? "once the node has unmounted it" : "once the node is back and has unmounted it";
  const byHand = `${handWords(placement)} once the machine is off`;
  return forceRule.kind === "never"
    ? `the detach policy forbids to force it: it is detached ${unmounted}; or ${byHand}`
    : `it is detached ${unmounted}, or once it carries the taint node.kubernetes.io/out-of-service; or ${byHand}`;
}

/** What a person does about it. */
function handWords({ volume, node }: Placement): string {
  const attachment = attachmentNameOf(volume.name, node.name);
  return attachment === undefined
    ? "take it off with whatever attached it"
    : `delete VolumeAttachment ${attachment} by hand`;
}

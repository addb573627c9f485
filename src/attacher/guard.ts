import type { Holders } from "./holders.ts";
import { operationOf } from "./plan.ts";
import type { PublishDeps } from "./publish.ts";

/** What a plan asks about others that have its volume, right before every step. */
export function createGuard(
  holders: Holders,
  {
    singleNode,
    isDetaching,
  }: {
    /** False leaves it to the driver whether a volume for one node may be on a second. */
    readonly singleNode: boolean;
    /** Whether a worker has an attachment of this name for its detach, though the cache may not show that it is deleted. */
    readonly isDetaching: (name: string) => boolean;
  },
): PublishDeps["holders"] {
  return {
    elsewhere: ({ attachment, volume }) =>
      singleNode && operationOf(attachment) === "attach" ? holders.elsewhere(attachment, volume) : [],
    twins: ({ attachment, volume }) => holders.twins(attachment, volume, isDetaching),
    claim: (attachment) => holders.claim(attachment),
    unclaim: (name) => holders.unclaim(name),
  };
}

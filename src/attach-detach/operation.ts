import type { LogFields } from "../base/log.ts";
import type { Pod } from "../kube/api/pod.ts";
import { keyOf } from "../kube/object.ts";
import type { OperationKey } from "../operations/key.ts";
import { assert } from "../base/assert.ts";
import { seenWhileBusy } from "./attachments.ts";
import { mark, markVolume, type Context } from "./context.ts";
import type { Busy, Placement } from "./world.ts";

/** Runs one attach or detach of a placement; at most one at a time, and its end brings the placement back. */
export function begin(
  context: Context,
  placement: Placement,
  { key, name }: { readonly key: OperationKey; readonly name: Busy["operation"] },
  work: (busy: Busy) => Promise<void>,
): void {
  const { clock, operations, running } = context;
  const start = operations.start(key, name, clock.now());
  // The plan has just seen that nothing runs and no back-off holds; nothing happened since.
  assert(start.kind === "started", `${name} of ${JSON.stringify(key)} was planned but is ${start.kind}`);
  const busy: Busy = {
    operation: name,
    sinceMs: clock.now(),
    withDriver: false,
    abort: new AbortController(),
  };
  placement.busy = busy;
  const end = () => {
    placement.busy = undefined;
    running.delete(busy);
    seenWhileBusy(context, placement);
    markVolume(context, placement);
    context.world.tidy(placement);
  };
  running.set(busy, work(busy).finally(end));
  // Looked at once more, so that what it waits for now is said.
  mark(context, placement);
}

/** The work ended because it was called off, not because it failed. */
export function calledOff({ abort }: Busy, error: unknown): boolean {
  return abort.signal.aborted && error === abort.signal.reason;
}

/** What every log line about the end of an attach or a detach says, so that one search finds a volume's whole life. */
export function operationFields(
  { clock }: Context,
  { volume, node, attachmentName }: Placement,
  { busy, pods = [] }: { readonly busy: Busy; readonly pods?: readonly Pod[] },
): LogFields {
  return {
    volume: volume.name,
    node: node.name,
    ...(attachmentName !== undefined && { attachment: attachmentName }),
    ...(pods.length > 0 && { pods: pods.map((pod) => keyOf(pod)) }),
    tookMs: Math.round(clock.now() - busy.sinceMs),
  };
}

/** The reason an attach is given up that nobody waits for any more. */
export class NoLongerWanted extends Error {
  override readonly name = "NoLongerWanted";
  constructor() {
    super("no pod on the node uses the volume any more");
  }
}

import { assert } from "../../base/assert.ts";
import { isMigrated } from "../../volumes/spec.ts";
import type { OperationKey } from "../../operations/key.ts";
import { mark, type Context } from "../context.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import { hasDriver, noteLate, RENEW_MS } from "../late-calls.ts";
import { blockerKey } from "../references.ts";
import { isFreed } from "../replaced.ts";
import type { OperationName, Running, VolumeState } from "../world.ts";

/** `signal` ends everything; `unwanted` only what is ours to end, and lets calls of a driver go on. */
export type Work = (signal: AbortSignal, unwanted: AbortSignal) => Promise<void>;

export interface Operation {
  readonly operation: OperationName;
  /** Undefined: the step once a node. */
  readonly podUid?: string;
  /** Whether nothing else of this volume may run beside it. */
  readonly exclusive: boolean;
  /** Pods whose waiters should look again when it ends. */
  readonly pods: readonly string[];
}

/** Runs one step of a volume. Its end, good or bad, brings the volume back to be looked at. */
export function begin(
  context: Context,
  volume: VolumeState,
  { operation, podUid, exclusive, pods }: Operation,
  work: Work,
): void {
  const { clock, operations, running } = context;
  const key = operationKey(volume, podUid);
  const start = operations.start(key, operation, clock.now());
  // The plan has just seen that nothing conflicts and no back-off holds; nothing happened since.
  assert(start.kind === "started", `${operation} of ${JSON.stringify(key)} was planned but is ${start.kind}`);
  const step: Running = { operation, podUid, exclusive, sinceMs: clock.now(), abort: new AbortController() };
  volume.running = [...volume.running, step];
  const renewal = renewing(context, volume);
  const end = () => {
    renewal.cancel();
    volume.running = volume.running.filter((other) => other !== step);
    void context.journal.settle(volume);
    mark(context, volume);
    context.inUse.changed();
    for (const uid of pods) context.podChanged(uid);
    if (podUid !== undefined && isUnmount(operation) && isFreed(volume, podUid)) context.followAgain(podUid);
    if (context.world.tidy(volume, podUid)) operations.forget(volume.name);
    running.delete(promise);
  };
  const promise = perform(context, volume, { step, key, work }).finally(end);
  running.add(promise);
}

/** While the step runs, a crash leaves a record from which all of a call's time can still be told. */
function renewing({ clock, journal }: Context, volume: VolumeState): { cancel(): void } {
  const renew = () => {
    if (hasDriver(volume)) void journal.settle(volume);
    timer = clock.after(RENEW_MS, renew);
  };
  let timer = clock.after(RENEW_MS, renew);
  return { cancel: () => timer.cancel() };
}

export function operationKey({ name }: VolumeState, podUid: string | undefined): OperationKey {
  return podUid === undefined ? { volume: name } : { volume: name, pod: podUid };
}

interface Step {
  readonly step: Running;
  readonly key: OperationKey;
  readonly work: Work;
}

async function perform(context: Context, volume: VolumeState, { step, key, work }: Step): Promise<void> {
  const { clock, operations, measure, log } = context;
  const { operation, podUid, abort } = step;
  const spec = volume.held?.spec;
  const observe = measure.operation(operation, {
    plugin: volume.plugin.metricName(spec),
    migrated: spec !== undefined && isMigrated(spec),
  });
  const fields = { volume: volume.name, operation, ...(podUid !== undefined && { podUid }) };
  try {
    await work(context.cutOff, abort.signal);
    operations.finish(key, operation);
    if (isMount(operation)) volume.detaching = false;
    volume.blockers.delete(podUid ?? "");
    observe("success");
    log.info("volume step done", { ...fields, tookMs: clock.now() - step.sinceMs });
  } catch (thrown) {
    const error = toVolumeError(thrown);
    observe("fail-unknown");
    if (isMount(operation)) volume.detaching = error.kind === "detaching";
    volume.blockers.set(podUid ?? "", error.blockedBy.map(blockerKey));
    noteLate(context, volume, step, error);
    if (abort.signal.aborted) {
      operations.abandon(key, operation);
      return;
    }
    const { retryAtMs } = operations.fail(key, operation, error.message, clock.now());
    log.warn("volume step failed", {
      ...fields,
      outcome: error.outcome,
      error,
      retryInMs: retryAtMs - clock.now(),
    });
  }
}

function isMount(operation: OperationName): boolean {
  return ["mount_device", "map_device", "volume_mount", "map_volume"].includes(operation);
}

function isUnmount(operation: OperationName): boolean {
  return operation === "volume_unmount" || operation === "unmap_volume";
}

/**
 * A failure as it should be believed. What was called off may have happened all the same, whatever its error says; a
 * failure that nobody classified is final, as upstream has it.
 */
export function failureOf(error: unknown, signal: AbortSignal): VolumeError {
  const failure = toVolumeError(error);
  if (!signal.aborted || failure.outcome === "uncertain") return failure;
  const { kind, late, message } = failure;
  return new VolumeError("uncertain", message, { cause: error, kind, late });
}

/** Before a step that only the pod wants: nothing was attempted, so what was true of the volume before is true after. */
export function refuseUnwanted(unwanted: AbortSignal): void {
  if (unwanted.aborted) throw new VolumeError("transient", "no pod on this node wants the volume any more");
}

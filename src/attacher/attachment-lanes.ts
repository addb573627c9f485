import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import { toKey } from "../kube/object.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import { createWorkQueue, type WorkQueue } from "../kube/workqueue/work-queue.ts";
import { Backlog } from "./backlog.ts";
import { watchBacklog } from "./backlog-watch.ts";
import type { AttacherDeps } from "./controller.ts";
import { DriverError, GRPC_DEADLINE_EXCEEDED, GRPC_UNAVAILABLE } from "./driver.ts";
import { LaneGate, type LaneOutcome } from "./lane-gate.ts";
import { registerBacklog } from "./metrics.ts";
import { finalizerOf } from "./names.ts";
import type { AttacherOptions } from "./options.ts";
import { isNewer, OwnWrites } from "./own-writes.ts";
import { operationOf, planAttachment, type AttachmentView, type Operation } from "./plan.ts";
import { runAttachment, type PassResult } from "./publish.ts";
import { volumeNameOf } from "./source.ts";
import { runTrivial } from "./trivial.ts";

/**
 * The attachments of one driver, in two lanes: attaches and detaches have queues, failure counters and shares of the
 * workers of their own, and within a lane nodes take turns. An attachment is worked on in one lane at a time.
 */
export interface AttachmentLanes {
  /** `look` is false for a change that is only an echo of what we wrote. */
  changed(attachment: VolumeAttachment, options: { readonly look: boolean }): void;
  vanished(attachment: VolumeAttachment): void;
  /** What it failed for may have changed. */
  wake(attachment: VolumeAttachment): void;
  /** The driver's list contradicts its status: it is worked on although nothing seems to be left to do. */
  force(attachment: VolumeAttachment): void;
  /** Whether a worker has it at this moment. */
  isBusy(attachment: VolumeAttachment): boolean;
  run(signal: AbortSignal): Promise<void>;
}

export function createAttachmentLanes(deps: AttacherDeps, options: AttacherOptions): AttachmentLanes {
  const { caches, clock, facts, log, metrics } = deps;
  const gate = new LaneGate(options.workers);
  const backlog = new Backlog();
  const ownWrites = new OwnWrites();
  /** By name, the uid that is meant. Bound: attachments that exist. */
  const forced = new Map<string, string | undefined>();
  const busy = new Map<string, Run>();
  const queues: Readonly<Record<Operation, WorkQueue<string>>> = {
    attach: createLane("attach"),
    detach: createLane("detach"),
  };
  registerBacklog({ clock, metrics }, { driver: facts.name, queues, backlog, gate });

  function createLane(operation: Operation): WorkQueue<string> {
    // Upstream has one queue; its name stays with the lane that pods wait for.
    const suffix = operation === "attach" ? "" : "-detach";
    return createWorkQueue<string>(
      { clock, metrics },
      {
        name: `csi-attacher-va${suffix}${options.queueSuffix}`,
        backoff: { initialMs: options.retryInitialMs, maxMs: options.retryMaxMs },
        laneOf: (key) => caches.attachments.get(toKey({ name: key }))?.spec.nodeName ?? "",
        // One machine that answers nothing may hold two fifths of the workers, not all of them.
        perLaneMax: Math.max(1, Math.ceil(options.workers * 0.4)),
      },
    );
  }

  function newest(name: string): VolumeAttachment | undefined {
    const cached = caches.attachments.get(toKey({ name }));
    return cached && ownWrites.newest(cached);
  }

  /** What is to be done with it, by its own word. */
  function due(attachment: VolumeAttachment): Operation | undefined {
    const operation = operationOf(attachment);
    if (!facts.capabilities.publishes || operation === "attach") {
      return attachment.status?.attached ? undefined : operation;
    }
    return hasFinalizer(attachment, finalizerOf(facts.name)) ? operation : undefined;
  }

  function enqueue(attachment: VolumeAttachment): void {
    const operation = operationOf(attachment);
    // Failures to attach say nothing about a detach, and nobody attaches what is being deleted.
    if (operation === "detach") queues.attach.forget(attachment.metadata.name ?? "");
    queues[operation].add(attachment.metadata.name ?? "");
  }

  function viewOf(attachment: VolumeAttachment): Omit<AttachmentView, "done"> {
    const name = attachment.metadata.name ?? "";
    const volume = volumeNameOf(attachment);
    return {
      attachment,
      volume: volume === "" ? undefined : caches.volumes.get(toKey({ name: volume })),
      node: caches.nodes.get(toKey({ name: attachment.spec.nodeName })),
      driver: facts,
      defaultFsType: options.defaultFsType,
      forced: forced.has(name) && forced.get(name) === attachment.metadata.uid,
    };
  }

  function isIdle(attachment: VolumeAttachment): boolean {
    if (!facts.capabilities.publishes) return attachment.status?.attached === true;
    return planAttachment({ ...viewOf(attachment), done: {} }).kind === "nothing";
  }

  /** One look at a key of a lane: the cheap answers first, then a place among the workers. */
  async function reconcile(operation: Operation, key: string, signal: AbortSignal): Promise<Outcome> {
    const attachment = newest(key);
    if (attachment === undefined || attachment.spec.attacher !== facts.name) return DONE;
    if (operationOf(attachment) !== operation) {
      enqueue(attachment);
      return DONE;
    }
    if (isIdle(attachment)) {
      forced.delete(key);
      return DONE;
    }
    const other = busy.get(key);
    if (other !== undefined) {
      other.touched = true;
      return DONE;
    }
    const sinceMs = backlog.sinceMs(operation, key) ?? clock.now();
    const run: Run = { operation, sinceMs, touched: false, written: undefined };
    busy.set(key, run);
    try {
      return await workOn(run, key, signal);
    } finally {
      busy.delete(key);
      lookAgain(run, key);
    }
  }

  /**
   * What happened to it meanwhile brings it back, unless that was only us: the event of our own finalizer would start the
   * second try at once and skip the back-off.
   */
  function lookAgain({ operation, touched, written }: Run, key: string): void {
    const cached = caches.attachments.get(toKey({ name: key }));
    // Its deletion was told while it was written to: nobody will come to clear what is remembered of it.
    if (cached === undefined) ownWrites.forget(key);
    const latest = newest(key);
    if (latest === undefined) return;
    const news = touched && cached !== undefined && (written === undefined || isNewer(cached, written));
    if (news || operationOf(latest) !== operation) enqueue(latest);
  }

  async function workOn(run: Run, key: string, signal: AbortSignal): Promise<Outcome> {
    const { operation } = run;
    const permit = await gate.acquire(operation, signal);
    let outcome: LaneOutcome = "answered";
    try {
      // It may have waited: what counts is how it is now.
      const attachment = newest(key);
      if (attachment === undefined) return DONE;
      if (operationOf(attachment) !== operation) return DONE;
      const result = await pass(run, attachment, signal);
      outcome = laneOutcome(result);
      return settle(run, attachment, result);
    } finally {
      permit.done(outcome);
    }
  }

  async function pass(run: Run, attachment: VolumeAttachment, signal: AbortSignal): Promise<PassResult> {
    if (!facts.capabilities.publishes) {
      if (!deps.mayAct()) throw new Error("this replica may no longer act");
      await runTrivial(deps.client, attachment, signal);
      return { kind: "settled" };
    }
    const onWritten = (written: VolumeAttachment) => {
      run.written = written;
      ownWrites.note(written);
    };
    return runAttachment({ ...deps, onWritten }, options, viewOf(attachment), signal);
  }

  function settle({ operation, sinceMs }: Run, attachment: VolumeAttachment, result: PassResult): Outcome {
    const key = attachment.metadata.name ?? "";
    if (result.kind === "failed") return { kind: "retry", error: result.error };
    if (result.kind === "gone") ownWrites.noteGone(attachment);
    if (result.kind === "settled") forced.delete(key);
    if (result.kind !== "moved") {
      backlog.completed(operation, clock.now());
      backlog.set(key, undefined, clock.now());
      log.info(`${operation}ed`, {
        attachment: key,
        volume: volumeNameOf(attachment),
        node: attachment.spec.nodeName,
        tookMs: Math.round(clock.now() - sinceMs),
      });
    }
    return DONE;
  }

  return {
    changed(attachment, { look }) {
      const name = attachment.metadata.name ?? "";
      const echo = operationOf(attachment) === "attach" && ownWrites.isEcho(attachment);
      const latest = ownWrites.newest(attachment);
      backlog.set(name, latest && due(latest), clock.now());
      const run = busy.get(name);
      if (run !== undefined) run.touched ||= look;
      else if (look && !echo) enqueue(attachment);
    },
    vanished({ metadata }) {
      const name = metadata.name ?? "";
      queues.attach.forget(name);
      queues.detach.forget(name);
      ownWrites.forget(name);
      forced.delete(name);
      backlog.set(name, undefined, clock.now());
    },
    wake(attachment) {
      queues[operationOf(attachment)].resetBackoff(attachment.metadata.name ?? "");
    },
    force(attachment) {
      forced.set(attachment.metadata.name ?? "", attachment.metadata.uid);
      enqueue(attachment);
    },
    isBusy: ({ metadata }) => busy.has(metadata.name ?? ""),
    async run(signal) {
      const lane = (operation: Operation) =>
        runWorkers(
          { queue: queues[operation], clock, log, metrics },
          { workers: gate.laneMax, reconcile: (key, stop) => reconcile(operation, key, stop) },
          signal,
        );
      await Promise.all([
        lane("attach"),
        lane("detach"),
        watchBacklog({ clock, log, backlog, queues }, signal),
      ]);
    },
  };
}

/** An attachment in work. */
interface Run {
  readonly operation: Operation;
  /** Since when it was wanted. */
  readonly sinceMs: number;
  /** Something happened to it that is worth a look. */
  touched: boolean;
  /** The answer to our last write. */
  written: VolumeAttachment | undefined;
}

const DONE: Outcome = { kind: "done" };

/** Exhausted is no overload of the driver: it says that this one node has all the volumes it can take. */
function laneOutcome(result: PassResult): LaneOutcome {
  const code =
    result.kind === "failed" && result.error instanceof DriverError ? result.error.grpcCode : undefined;
  return code === GRPC_DEADLINE_EXCEEDED || code === GRPC_UNAVAILABLE ? "overloaded" : "answered";
}

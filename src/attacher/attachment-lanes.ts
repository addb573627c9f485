import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import { toKey } from "../kube/object.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import { createWorkQueue, type WorkQueue } from "../kube/workqueue/work-queue.ts";
import { KnownSecrets } from "../base/known-secrets.ts";
import { backoffMs } from "../base/backoff.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { Backlog } from "./backlog.ts";
import { watchBacklog } from "./backlog-watch.ts";
import type { AttacherDeps } from "./controller.ts";
import { DriverError, GRPC_DEADLINE_EXCEEDED, GRPC_UNAVAILABLE } from "./driver.ts";
import { createDrain, type Stop } from "./drain.ts";
import { createGuard } from "./guard.ts";
import { Holders, mayBeAttached } from "./holders.ts";
import { LaneGate, type LaneOutcome } from "./lane-gate.ts";
import { registerBacklog } from "./metrics.ts";
import { finalizerOf } from "./names.ts";
import type { AttacherOptions } from "./options.ts";
import { isNewer, OwnWrites } from "./own-writes.ts";
import { operationOf, planAttachment, type Operation, type Step } from "./plan.ts";
import { runAttachment, type PassResult, type Work } from "./publish.ts";
import { volumeFor } from "./renamed.ts";
import { volumeNameOf } from "./source.ts";
import { runTrivial } from "./trivial.ts";
import { Waits, waitAfterFailure, waitForStep, waitForWorker, type WaitingFor } from "./waiting.ts";

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
  /** What it waits for; undefined when it is as it should be. */
  waitingFor(attachment: VolumeAttachment): WaitingFor | undefined;
  /** Failures in a row of what is to be done with it. */
  failures(attachment: VolumeAttachment): number;
  /** Stops taking keys when the signal aborts, and resolves when what was under way has ended: `drainMs` at most. */
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
  const waits = new Waits();
  const known = new KnownSecrets();
  const finalizer = finalizerOf(facts.name);
  const holders = new Holders(caches, { name: facts.name, finalizer }, (cached) => ownWrites.newest(cached));
  const queues: Readonly<Record<Operation, WorkQueue<string>>> = {
    attach: createLane("attach"),
    detach: createLane("detach"),
  };
  registerBacklog({ clock, metrics }, { driver: facts.name, queues, backlog, gate, waits });

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
    return hasFinalizer(attachment, finalizer) ? operation : undefined;
  }

  function enqueue(attachment: VolumeAttachment): void {
    const operation = operationOf(attachment);
    // Failures to attach say nothing about a detach, and nobody attaches what is being deleted.
    if (operation === "detach") queues.attach.forget(attachment.metadata.name ?? "");
    queues[operation].add(attachment.metadata.name ?? "");
  }

  function workOf(attachment: VolumeAttachment): Work {
    const name = attachment.metadata.name ?? "";
    return {
      attachment,
      volume: volumeFor(caches, attachment, { name: facts.name, finalizer }),
      node: caches.nodes.get(toKey({ name: attachment.spec.nodeName })),
      driver: facts,
      defaultFsType: options.defaultFsType,
      forced: forced.has(name) && forced.get(name) === attachment.metadata.uid,
    };
  }

  function volumeOf(attachment: VolumeAttachment): PersistentVolume | undefined {
    const name = volumeNameOf(attachment);
    return name === "" ? undefined : caches.volumes.get(toKey({ name }));
  }

  /** A wait that is known stays; one of the other operation, which is not in work any more, is over. */
  function noteDue(
    name: string,
    latest: VolumeAttachment | undefined,
    operation: Operation | undefined,
  ): void {
    const known = waits.get(name);
    if (latest === undefined || operation === undefined) {
      if (!forced.has(name)) waits.delete(name);
    } else if (
      known === undefined ||
      (known.operation !== operation && known.operation !== busy.get(name)?.operation)
    ) {
      waits.set(name, operation, waitForWorker(latest, operation), clock.now());
    }
  }

  /** It has let go of its volume: whoever was refused that volume for its sake need not wait for a back-off. */
  function wakeSharing(attachment: VolumeAttachment): void {
    for (const other of holders.sharing(attachment, volumeOf(attachment))) {
      const name = other.metadata.name ?? "";
      const { reason } = waits.get(name) ?? {};
      const refused = reason === "held-by-other-node" || reason === "being-detached" || busy.has(name);
      if (refused) queues[operationOf(other)].resetBackoff(name);
    }
  }

  const guard = createGuard(holders, {
    singleNode: options.singleNodeGuard,
    isDetaching: (name) => busy.get(name)?.operation === "detach",
  });

  function isIdle(attachment: VolumeAttachment): boolean {
    if (!facts.capabilities.publishes) return attachment.status?.attached === true;
    return planAttachment({ ...workOf(attachment), holders: [], twins: [], done: {} }).kind === "nothing";
  }

  /** One look at a key of a lane: the cheap answers first, then a place among the workers. */
  async function reconcile(operation: Operation, key: string, stop: Stop): Promise<Outcome> {
    const attachment = newest(key);
    if (attachment === undefined || attachment.spec.attacher !== facts.name) return DONE;
    if (operationOf(attachment) !== operation) {
      enqueue(attachment);
      return DONE;
    }
    if (isIdle(attachment)) {
      forced.delete(key);
      waits.delete(key);
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
    if (waits.get(key)?.operation !== operation) noteDue(key, attachment, operation);
    try {
      return await workOn(run, key, stop);
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

  async function workOn(run: Run, key: string, { signal, cut }: Stop): Promise<Outcome> {
    const { operation } = run;
    const permit = await gate.acquire(operation, signal);
    let outcome: LaneOutcome = "answered";
    try {
      // It may have waited: what counts is how it is now.
      const attachment = newest(key);
      if (attachment === undefined) return DONE;
      if (operationOf(attachment) !== operation) return DONE;
      const result = await pass(run, attachment, cut);
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
    const onStep = (step: Step) => {
      const wait = waitForStep(attachment, step);
      if (wait !== undefined) waits.set(attachment.metadata.name ?? "", run.operation, wait, clock.now());
    };
    return runAttachment(
      { ...deps, known, onWritten, onStep, holders: guard },
      options,
      workOf(attachment),
      signal,
    );
  }

  function settle({ operation, sinceMs }: Run, attachment: VolumeAttachment, result: PassResult): Outcome {
    const key = attachment.metadata.name ?? "";
    if (result.kind === "failed") {
      const { retryInitialMs: initialMs, retryMaxMs: maxMs } = options;
      const delayMs = backoffMs(queues[operation].failures(key) + 1, { initialMs, maxMs });
      const wait = waitAfterFailure(attachment, result.error, clock.now() + delayMs);
      waits.set(key, operation, wait, clock.now());
      return { kind: "retry", error: result.error };
    }
    waits.delete(key);
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
      const operation = latest && due(latest);
      backlog.set(name, operation, clock.now());
      if (latest && mayBeAttached(attachment, finalizer)) holders.unclaim(name);
      noteDue(name, latest, operation);
      if (latest === undefined || !mayBeAttached(latest, finalizer)) wakeSharing(attachment);
      const run = busy.get(name);
      if (run !== undefined) run.touched ||= look;
      else if (look && !echo) enqueue(attachment);
    },
    vanished(attachment) {
      const name = attachment.metadata.name ?? "";
      queues.attach.forget(name);
      queues.detach.forget(name);
      ownWrites.forget(name);
      forced.delete(name);
      holders.unclaim(name);
      waits.delete(name);
      backlog.set(name, undefined, clock.now());
      wakeSharing(attachment);
    },
    wake(attachment) {
      queues[operationOf(attachment)].resetBackoff(attachment.metadata.name ?? "");
    },
    force(attachment) {
      forced.set(attachment.metadata.name ?? "", attachment.metadata.uid);
      enqueue(attachment);
    },
    isBusy: ({ metadata }) => busy.has(metadata.name ?? ""),
    waitingFor(attachment) {
      const wait = waits.get(attachment.metadata.name ?? "");
      if (wait?.reason !== "backoff" || (wait.untilMs ?? Infinity) > clock.now()) return wait;
      // Its time has come, and those before it have not ended.
      const { operation, untilMs: sinceMs = wait.sinceMs } = wait;
      return { ...waitForWorker(attachment, operation), operation, sinceMs };
    },
    failures: (attachment) => queues[operationOf(attachment)].failures(attachment.metadata.name ?? ""),
    async run(signal) {
      const drain = createDrain(deps, options.drainMs, signal);
      signal.addEventListener("abort", () => log.info("takes no new work", { underWay: busy.size }), {
        once: true,
      });
      const lane = (operation: Operation) =>
        runWorkers(
          { queue: queues[operation], clock, log, metrics },
          {
            workers: gate.laneMax,
            reconcile: (key) => reconcile(operation, key, { signal, cut: drain.cut }),
          },
          signal,
        );
      try {
        await Promise.all([
          lane("attach"),
          lane("detach"),
          watchBacklog({ clock, log, backlog, queues }, signal),
        ]);
      } finally {
        drain.end();
      }
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

import { mayMultiAttach } from "../volumes/access.ts";
import type { Outcome } from "../kube/workqueue/controller.ts";
import { markUncertain } from "./actual.ts";
import { startAttach } from "./attach.ts";
import { attachmentVerdict, isOrphaned } from "./attachments.ts";
import { claimantOf } from "./claimant.ts";
import { mark, operationKey, pluginOf, type Context } from "./context.ts";
import { startDetach } from "./detach.ts";
import { adoptUnread, wantedTwin } from "./foreign-events.ts";
import { runningElsewhere } from "./holders.ts";
import { NoLongerWanted } from "./operation.ts";
import { planPlacement, type Action, type Plan, type Surroundings, type Wait } from "./plan.ts";
import { forceRuleOf } from "./policy.ts";
import { tellNode, tellWaiting } from "./telling.ts";
import { attachmentLost } from "./verify.ts";
import { isFrozen, type WaitingFor } from "./waiting.ts";
import { standingWords } from "./words.ts";
import { findPlacement, type Placement, type PlacementKey } from "./world.ts";

/** Looks at one placement: plans it from what is known now, does what the plan says, keeps why it waits. */
export function reconcilePlacement(context: Context, key: PlacementKey): Outcome {
  const placement = findPlacement(context.world, key);
  if (placement === undefined) return { kind: "done" };
  const twin = wantedTwin(placement);
  if (twin) adoptUnread(context, twin);
  if (twin && placement.hold === undefined) return { kind: "done" };
  const plan = planPlacement(placement, surroundingsOf(context, placement));
  remember(context, placement, plan.waitingFor);
  measurePhases(context, placement, plan);
  for (const action of plan.actions) perform(context, placement, action);
  const { revisitAtMs } = plan;
  return revisitAtMs === undefined
    ? { kind: "done" }
    : { kind: "after", ms: Math.max(0, revisitAtMs - context.clock.now()) };
}

function surroundingsOf(context: Context, placement: Placement): Surroundings {
  const { clock, caches, operations, options } = context;
  const nowMs = clock.now();
  const spec = placement.want?.spec ?? placement.hold?.spec;
  return {
    nowMs,
    running: runningElsewhere(placement) ?? busyTwin(context, placement),
    traced: tracedHolders(context, placement),
    backoff: (operation) => operations.backoffOf(operationKey(placement), operation, nowMs),
    attachment: verdictOf(context, placement),
    orphaned: isOrphaned(context, placement),
    pluginKnown: pluginOf(context, placement) !== undefined,
    claimant: () => claimantOf(context, placement),
    forceRule: forceRuleOf(placement.volume.name, spec, options),
    stalenessMs: Math.max(...[caches.pods, caches.nodes, caches.attachments].map((one) => one.stalenessMs())),
    podsWatchedMs: caches.pods.watchedMs(),
  };
}

/** Only a volume of one node is kept from another, and only one that is about to be attached asks. */
function tracedHolders({ foreign }: Context, placement: Placement): Surroundings["traced"] {
  const { want } = placement;
  if (want === undefined || mayMultiAttach(want.spec)) return NOBODY_ELSE;
  const traced = foreign.tracesOf(placement);
  if (traced.length > 0) foreign.waits(placement);
  return traced;
}

const NOBODY_ELSE: Surroundings["traced"] = [];

/** The same VolumeAttachment, known by its name alone, is being detached. */
function busyTwin({ foreign }: Context, placement: Placement): Placement | undefined {
  const twin = foreign.unreadTwin(placement);
  if (twin?.busy === undefined) return undefined;
  foreign.waits(placement);
  return twin;
}

function verdictOf(context: Context, placement: Placement): Surroundings["attachment"] {
  const verdict = attachmentVerdict(context, placement);
  // With the comparison switched off, what was once attached is believed to be.
  return verdict === "not-attached" && context.options.disableReconcileSync ? "unknown" : verdict;
}

function remember(context: Context, placement: Placement, waitingFor: Wait | undefined): void {
  const before = placement.waiting;
  if (waitingFor === undefined) {
    placement.waiting = undefined;
    context.world.waiters.follow(placement);
    return;
  }
  const same = before?.reason === waitingFor.reason && before.object.name === waitingFor.object.name;
  const waiting: WaitingFor = { ...waitingFor, sinceMs: same ? before.sinceMs : context.clock.now() };
  placement.waiting = waiting;
  context.world.waiters.follow(placement);
  if (same || !isFrozen(waiting)) return;
  const { volume, node } = placement;
  context.log.warn("volume frozen", {
    volume: volume.name,
    node: node.name,
    reason: waiting.reason,
    why: waiting.message,
  });
  // Told when it was seen, once for each VolumeAttachment.
  if (waiting.reason === "foreign-attachment") return;
  const message = `Volume ${volume.name} ${standingWords(placement)}: ${waiting.message}`;
  tellNode(context, placement, { type: "Warning", reason: "VolumeFrozen", message });
}

/** Phases end when the plan moves on to the next. */
function measurePhases({ measure }: Context, placement: Placement, { actions, waitingFor }: Plan): void {
  const { timing, hold } = placement;
  if (timing === undefined) return;
  const detaching = actions.some(({ kind }) => kind === "detach");
  if (timing.operation === "attach") {
    if (hold?.confirmed && hold.listed && actions.length === 0 && waitingFor === undefined)
      measure.endPhase(placement, "report");
  } else if (detaching) measure.endPhase(placement, "unlist");
  else if (waitingFor?.reason === "node-status") measure.endPhase(placement, "unmount");
}

function perform(context: Context, placement: Placement, action: Action): void {
  const { want, hold, busy } = placement;
  switch (action.kind) {
    case "attach":
      if (want) startAttach(context, placement, want);
      break;
    case "detach":
      if (hold) startDetach(context, placement, { hold, force: action.force });
      break;
    case "abandon":
      busy?.abort.abort(new NoLongerWanted());
      break;
    case "list":
      if (hold) hold.listed = action.listed;
      context.nodeStatus.add(placement.node.name);
      mark(context, placement);
      break;
    case "doubt":
      markUncertain(context, placement, { spec: hold?.spec, nowMs: context.clock.now() });
      mark(context, placement);
      break;
    case "lost":
      attachmentLost(context, placement);
      break;
    case "tell-waiting":
      if (want) tellWaiting(context, want, action);
      break;
  }
}

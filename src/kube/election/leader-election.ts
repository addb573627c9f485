import { assert, unreachable } from "../../base/assert.ts";
import type { Lease } from "../api/lease.ts";
import {
  isSameRecord,
  recordOf,
  toMicroTime,
  withRecord,
  type LeaseRecord,
} from "./leader-election-record.ts";

/**
 * Who leads, decided from a Lease: `step(state, event, at) -> [state, effects]`, without IO. `elector.ts`
 * performs the effects, one request at a time.
 *
 * Why two never lead at once. A leader counts its validity from the moment it SENT the renewal that
 * succeeded; anyone else counts from the moment it READ that renewal, which is later, and waits the whole
 * lease duration. The leader stops after the renew deadline, which is shorter, so with 10 s and 15 s it
 * has been silent for 5 s before the lease can be taken. Only durations on one's own monotonic clock are
 * ever compared: clocks may be hours apart, as long as none runs 5 % faster than another.
 *
 * The write that takes the lease carries the resourceVersion that was read, so of two that try one wins.
 * An answer that got lost proves nothing: the old validity stands, and a read tells whether that very
 * write is there.
 *
 * What cannot be defended against: somebody deleting the Lease, or writing it without a precondition,
 * while it is held. The leader then stops as soon as it notices, a retry period later at most.
 */
export type Election = Following | Leading | { readonly kind: "lost"; readonly reason: LostReason };

interface Following extends Requests {
  readonly kind: "following";
  readonly seen?: Seen;
}

interface Leading extends Requests {
  readonly kind: "leading";
  readonly lease: Lease;
  /** When the newest renewal known to have succeeded was sent. */
  readonly renewedAt: Instant;
}

interface Requests {
  /** The write on its way, or one whose answer never came. */
  readonly sent?: { readonly record: LeaseRecord; readonly at: Instant };
  /** When the last request of any kind was sent. */
  readonly askedMs: number;
  readonly writes: number;
  /** Writes refused in a row. */
  readonly refusals: number;
}

export type LostReason =
  /** The renew deadline passed. The lease may still carry our name. */
  | "not-renewed"
  /** Somebody else, or nobody, holds the lease, or it is gone. */
  | "taken";

/** Both of our clocks at one moment. */
export interface Instant {
  readonly nowMs: number;
  readonly wallMs: number;
}

/** Another's record, and since when we have seen it unchanged. */
interface Seen {
  readonly record: LeaseRecord;
  readonly sinceMs: number;
}

export type ElectionEvent =
  /** Begin, or the wait is over. */
  | { readonly kind: "due" }
  /** Only look at the clock. */
  | { readonly kind: "checked" }
  | { readonly kind: "read"; readonly lease: Lease | undefined }
  | { readonly kind: "written"; readonly lease: Lease }
  /** Conflict, already exists, not found: somebody was faster. */
  | { readonly kind: "refused" }
  /** No answer, or an error: a write may have been carried out all the same. */
  | { readonly kind: "failed" };

export type ElectionEffect =
  | { readonly kind: "get" }
  | { readonly kind: "create"; readonly lease: Lease }
  | { readonly kind: "update"; readonly lease: Lease }
  /** `spread` asks for jitter: candidates that lost together must not come back together. */
  | { readonly kind: "wait"; readonly ms: number; readonly spread: boolean }
  | { readonly kind: "became-leader" }
  | { readonly kind: "lost"; readonly reason: LostReason }
  | { readonly kind: "observed"; readonly holder: string }
  /** A leader had to read before it could renew. */
  | { readonly kind: "slow-path" };

export interface ElectionConfig {
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process: two that share it would both lead. */
  readonly identity: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly leaseSeconds: number;
  /** How long a renewal lets us lead, from the moment it was sent. */
  readonly validMs: number;
  readonly retryMs: number;
}

type Step = readonly [Election, readonly ElectionEffect[]];

export const startOfElection: Election = { kind: "following", askedMs: -Infinity, writes: 0, refusals: 0 };

/**
 * The part of a lease its holder may use: a clock may run 5 % faster than another before two can lead.
 * Kernels slew a clock by 0.05 % at most, and crystals are a hundred times better than this.
 */
const USABLE_PART_OF_LEASE = 0.95;

/** Checks what the flags gave; defaults are upstream's. */
export function createElectionConfig({
  leaseDurationMs = 15_000,
  renewDeadlineMs = 10_000,
  retryPeriodMs = 2_000,
  labels = {},
  ...names
}: ElectionTimes &
  Pick<ElectionConfig, "namespace" | "name" | "identity"> &
  Partial<Pick<ElectionConfig, "labels">>) {
  assert(
    leaseDurationMs > renewDeadlineMs,
    `lease duration ${leaseDurationMs} ms must exceed renew deadline ${renewDeadlineMs} ms`,
  );
  assert(
    renewDeadlineMs > 1.2 * retryPeriodMs,
    `renew deadline ${renewDeadlineMs} ms must exceed 1.2 x retry period ${retryPeriodMs} ms`,
  );
  assert(
    leaseDurationMs >= 1_000,
    `lease duration ${leaseDurationMs} ms: a Lease counts whole seconds, at least 1`,
  );
  assert(retryPeriodMs > 0, `retry period ${retryPeriodMs} ms must be positive`);
  const leaseSeconds = Math.floor(leaseDurationMs / 1_000);
  const validMs = Math.min(renewDeadlineMs, leaseSeconds * 1_000 * USABLE_PART_OF_LEASE);
  return { ...names, labels, leaseSeconds, validMs, retryMs: retryPeriodMs } satisfies ElectionConfig;
}

export interface ElectionTimes {
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
}

export function step(config: ElectionConfig, state: Election, event: ElectionEvent, at: Instant): Step {
  const [next, effects] = decide(config, state, event, at);
  const asks = effects.some(({ kind }) => kind === "get" || kind === "create" || kind === "update");
  return [asks && next.kind !== "lost" ? { ...next, askedMs: at.nowMs } : next, effects];
}

function decide(config: ElectionConfig, state: Election, event: ElectionEvent, at: Instant): Step {
  switch (state.kind) {
    case "following":
      return follow(config, state, event, at);
    case "leading":
      return isValid(config, state.renewedAt, at) ? lead(config, state, event, at) : lose("not-renewed");
    case "lost":
      return [state, []];
    default:
      return unreachable(state);
  }
}

/**
 * Whether a renewal sent then still lets us act now. The wall clock counts as well, because the monotonic
 * one stands still while a machine sleeps; one that is set forward only costs a new election.
 */
export function isValid({ validMs }: ElectionConfig, sent: Instant, at: Instant): boolean {
  return at.nowMs - sent.nowMs < validMs && at.wallMs - sent.wallMs < validMs;
}

function follow(config: ElectionConfig, state: Following, event: ElectionEvent, at: Instant): Step {
  switch (event.kind) {
    case "due":
      return [state, [{ kind: "get" }]];
    case "checked":
      return [state, []];
    case "read":
      if (event.lease === undefined) return create(config, state, at);
      return consider(config, state, event.lease, at, landed(state, event.lease));
    case "written":
      return consider(config, state, event.lease, at, state.sent?.at);
    case "refused":
      return afterRefusal(config, state, at);
    case "failed":
      return [state, [pause(config, state, at)]];
    default:
      return unreachable(event);
  }
}

/** A candidate has the lease before it: take it, find that it has it (by the write sent at `renewedAt`), or wait. */
function consider(
  config: ElectionConfig,
  state: Following,
  lease: Lease,
  at: Instant,
  renewedAt: Instant | undefined,
): Step {
  const record = recordOf(lease);
  const observed: ElectionEffect[] =
    state.seen?.record.holderIdentity === record.holderIdentity
      ? []
      : [{ kind: "observed", holder: record.holderIdentity }];
  const seen =
    state.seen !== undefined && isSameRecord(state.seen.record, record)
      ? state.seen
      : { record, sinceMs: at.nowMs };
  const here: Following = { ...state, seen };

  if (record.holderIdentity === config.identity) {
    if (renewedAt === undefined || !isValid(config, renewedAt, at))
      return write(config, here, lease, at, observed);
    const [leading, wait] = renewed(config, here, lease, at, renewedAt);
    return [leading, [...observed, { kind: "became-leader" }, ...wait]];
  }
  const leftMs = record.holderIdentity === "" ? 0 : seen.sinceMs + heldMs(config, record) - at.nowMs;
  if (leftMs <= 0) return write(config, here, lease, at, observed);
  // The last wait ends when the lease does: candidates that come together are told apart by the precondition.
  const wait: ElectionEffect =
    leftMs > config.retryMs
      ? { kind: "wait", ms: config.retryMs, spread: true }
      : { kind: "wait", ms: leftMs, spread: false };
  return [here, [...observed, wait]];
}

function lead(config: ElectionConfig, state: Leading, event: ElectionEvent, at: Instant): Step {
  switch (event.kind) {
    case "due":
      // A write without an answer: only a read can tell what the lease holds now.
      return state.sent === undefined
        ? write(config, state, state.lease, at)
        : [state, [{ kind: "slow-path" }, { kind: "get" }]];
    case "checked":
      return [state, []];
    case "read":
      if (event.lease === undefined) return lose("taken");
      return confirm(config, state, event.lease, at, landed(state, event.lease));
    case "written":
      return confirm(config, state, event.lease, at, state.sent?.at);
    case "refused": {
      const [next, effects] = afterRefusal(config, state, at);
      return [next, [{ kind: "slow-path" }, ...effects]];
    }
    case "failed":
      return [state, [pause(config, state, at)]];
    default:
      return unreachable(event);
  }
}

/** A leader has the lease before it: renewed by the write sent at `renewedAt`, still to be renewed, or somebody else's. */
function confirm(
  config: ElectionConfig,
  state: Leading,
  lease: Lease,
  at: Instant,
  renewedAt: Instant | undefined,
): Step {
  const holder = recordOf(lease).holderIdentity;
  if (holder !== config.identity) return lose("taken", [{ kind: "observed", holder }]);
  return renewedAt === undefined
    ? write(config, state, lease, at)
    : renewed(config, state, lease, at, renewedAt);
}

function renewed(
  { retryMs }: ElectionConfig,
  { askedMs, writes }: Requests,
  lease: Lease,
  at: Instant,
  renewedAt: Instant,
): Step {
  const waitMs = Math.max(0, renewedAt.nowMs + retryMs - at.nowMs);
  return [
    { kind: "leading", lease, renewedAt, askedMs, writes, refusals: 0 },
    [{ kind: "wait", ms: waitMs, spread: false }],
  ];
}

function lose(reason: LostReason, effects: readonly ElectionEffect[] = []): Step {
  return [{ kind: "lost", reason }, [...effects, { kind: "lost", reason }]];
}

/** When our last write was sent, if it is the one the lease now holds. */
function landed({ sent }: Requests, lease: Lease): Instant | undefined {
  return sent !== undefined && isSameRecord(sent.record, recordOf(lease)) ? sent.at : undefined;
}

/** How long a record we have seen unchanged keeps others out; a holder that did not say gets our own duration. */
function heldMs({ leaseSeconds }: ElectionConfig, record: LeaseRecord): number {
  return 1_000 * (record.leaseDurationSeconds > 0 ? record.leaseDurationSeconds : leaseSeconds);
}

function write(
  config: ElectionConfig,
  state: Following | Leading,
  lease: Lease,
  at: Instant,
  effects: readonly ElectionEffect[] = [],
): Step {
  const old = recordOf(lease);
  const ours = old.holderIdentity === config.identity;
  const renewTime = toMicroTime(at.wallMs, state.writes);
  const record: LeaseRecord = {
    holderIdentity: config.identity,
    leaseDurationSeconds: config.leaseSeconds,
    acquireTime: ours ? old.acquireTime : renewTime,
    renewTime,
    leaseTransitions: old.leaseTransitions + (ours ? 0 : 1),
  };
  const update = withRecord(lease, record, ours ? {} : config.labels);
  return [sending(state, record, at), [...effects, { kind: "update", lease: update }]];
}

function create(config: ElectionConfig, state: Following, at: Instant): Step {
  const { namespace, name, identity, labels, leaseSeconds } = config;
  const renewTime = toMicroTime(at.wallMs, state.writes);
  const record: LeaseRecord = {
    holderIdentity: identity,
    leaseDurationSeconds: leaseSeconds,
    acquireTime: renewTime,
    renewTime,
    leaseTransitions: 0,
  };
  const empty: Lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace } };
  return [sending(state, record, at), [{ kind: "create", lease: withRecord(empty, record, labels) }]];
}

function sending<S extends Following | Leading>(state: S, record: LeaseRecord, at: Instant): S {
  return { ...state, sent: { record, at }, writes: state.writes + 1 };
}

/** The first refusal is looked into at once; a second in a row waits, so that a broken server is not hammered. */
function afterRefusal(config: ElectionConfig, state: Following | Leading, at: Instant): Step {
  const refusals = state.refusals + 1;
  return [{ ...state, refusals }, [refusals === 1 ? { kind: "get" } : pause(config, state, at)]];
}

/** A retry period from the last request on: one that hung for 5 s is followed up at once, though never in a tight loop. */
function pause({ retryMs }: ElectionConfig, state: Following | Leading, at: Instant): ElectionEffect {
  const ms = Math.max(retryMs / 10, state.askedMs + retryMs - at.nowMs);
  return { kind: "wait", ms, spread: state.kind === "following" };
}

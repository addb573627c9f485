import { unreachable } from "../../base/assert.ts";
import { abortReason, type Clock, type Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import {
  createLeaseRequests,
  type LeaseClient,
  type LeaseRequest,
  type LeaseRequests,
} from "./elector-requests.ts";
import { leases } from "../api/lease.ts";
import type { EventRecorder } from "../events/events.ts";
import { apiVersionOf } from "../object.ts";
import { isValid, startOfElection, step } from "./leader-election.ts";
import type { Election, ElectionConfig, ElectionEffect, ElectionEvent, Instant } from "./leader-election.ts";

/** One candidacy: from the first look at the lease to its release. */
export interface Term {
  isLeader(): boolean;
  /** How long ago the last renewal was sent, while work goes on; 0 when none does. */
  workedWithoutRenewalMs(): number;
  run(signal: AbortSignal): Promise<ElectionEnd>;
}

export type Lead = (signal: AbortSignal) => Promise<void>;
export type ElectionEnd = { readonly kind: "lost" } | { readonly kind: "stopped" };

export interface TermDeps {
  readonly client: LeaseClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events?: Pick<EventRecorder, "record">;
  readonly leaderMetrics: { leading(yes: boolean): void; slowPath(): void };
  readonly observe: (holder: string) => void;
}

export function createTerm(deps: TermDeps, config: ElectionConfig, lead: Lead): Term {
  return new RunningTerm(deps, config, lead);
}

type Next = LeaseRequest | Extract<ElectionEffect, { kind: "wait" }>;

class RunningTerm implements Term {
  readonly #deps: TermDeps;
  readonly #config: ElectionConfig;
  readonly #lead: Lead;
  readonly #requests: LeaseRequests;
  #state: Election = startOfElection;
  #renewedAt: Instant | undefined;
  #work: { readonly stop: AbortController; readonly settled: Promise<void> } | undefined;
  #workError: { readonly error: unknown } | undefined;
  /** Aborts when there is nothing left to elect or renew for. */
  readonly #over = new AbortController();
  #stopping = false;
  #expiry: Timer | undefined;

  constructor(deps: TermDeps, config: ElectionConfig, lead: Lead) {
    this.#deps = deps;
    this.#config = config;
    this.#lead = lead;
    this.#requests = createLeaseRequests(deps, config);
  }

  isLeader(): boolean {
    return this.#state.kind === "leading" && isValid(this.#config, this.#state.renewedAt, this.#instant());
  }

  workedWithoutRenewalMs(): number {
    if (this.#work === undefined || this.#renewedAt === undefined) return 0;
    return this.#deps.clock.now() - this.#renewedAt.nowMs;
  }

  async run(signal: AbortSignal): Promise<ElectionEnd> {
    const onStop = () => this.#stop(abortReason(signal));
    if (signal.aborted) onStop();
    else signal.addEventListener("abort", onStop, { once: true });
    try {
      await this.#elect();
    } finally {
      // Whatever ended the election, nobody renews any more: work must not outlive it.
      this.#work?.stop.abort(new Error("the election is over"));
      await this.#work?.settled;
      signal.removeEventListener("abort", onStop);
    }
    return this.#end();
  }

  async #elect(): Promise<void> {
    for (let event: ElectionEvent = { kind: "due" }; ;) {
      const next = this.#step(event);
      if (next === undefined || this.#over.signal.aborted) return;
      event = await this.#perform(next);
    }
  }

  /** Work has ended or never began: whoever waits for the lease need not wait any longer. */
  async #end(): Promise<ElectionEnd> {
    const last = this.#state;
    const mayHold =
      last.kind === "lost"
        ? last.reason === "not-renewed"
        : last.kind === "leading" || last.sent !== undefined;
    // From here on nothing may act, since another may lead as soon as the release arrives.
    this.#state = startOfElection;
    this.#expiry?.cancel();
    this.#deps.leaderMetrics.leading(false);
    const known = last.kind === "leading" && last.sent === undefined ? last.lease : undefined;
    if (mayHold) await this.#requests.release(known, { deadlineMs: this.#requestMs() });
    if (this.#workError !== undefined) throw this.#workError.error;
    return { kind: last.kind === "lost" ? "lost" : "stopped" };
  }

  #stop(reason: Error): void {
    this.#stopping = true;
    // Work that is coming to its end still needs the lease: renewing goes on until it has settled.
    if (this.#work === undefined) this.#over.abort(reason);
    else this.#work.stop.abort(reason);
  }

  /** One step of the core, its effects applied; answers the request or wait that comes next, if any. */
  #step(event: ElectionEvent, at = this.#instant()): Next | undefined {
    const [state, effects] = step(this.#config, this.#state, event, at);
    this.#state = state;
    this.#watchExpiry(at);
    let next: Next | undefined;
    for (const effect of effects) next = this.#apply(effect) ?? next;
    return next;
  }

  #apply(effect: ElectionEffect): Next | undefined {
    switch (effect.kind) {
      case "get":
      case "create":
      case "update":
      case "wait":
        return effect;
      case "observed":
        this.#deps.observe(effect.holder);
        return undefined;
      case "slow-path":
        this.#deps.leaderMetrics.slowPath();
        return undefined;
      case "became-leader":
        if (!this.#stopping) this.#startWork();
        return undefined;
      case "lost":
        this.#lose(effect.reason);
        return undefined;
      default:
        return unreachable(effect);
    }
  }

  #startWork(): void {
    const { log, leaderMetrics } = this.#deps;
    log.info("became leader", { lease: this.#config.name, identity: this.#config.identity });
    leaderMetrics.leading(true);
    this.#tell("became leader");
    const stop = new AbortController();
    const work = async () => {
      try {
        await this.#lead(stop.signal);
      } catch (error) {
        this.#workError = { error };
      } finally {
        this.#over.abort(new Error("work has ended"));
      }
    };
    this.#work = { stop, settled: work() };
  }

  #lose(reason: string): void {
    const { log, leaderMetrics } = this.#deps;
    const error = new Error(`lease ${this.#config.namespace}/${this.#config.name} lost: ${reason}`);
    this.#work?.stop.abort(error);
    this.#over.abort(error);
    log.warn("stopped leading", { lease: this.#config.name, identity: this.#config.identity, reason });
    leaderMetrics.leading(false);
    this.#tell("stopped leading");
  }

  /** Aborts the work when its time is up, whatever a renewal under way may be doing. */
  #watchExpiry(at: Instant): void {
    if (this.#state.kind !== "leading" || this.#state.renewedAt === this.#renewedAt) return;
    this.#renewedAt = this.#state.renewedAt;
    const endMs = this.#renewedAt.nowMs + this.#config.validMs;
    this.#expiry?.cancel();
    this.#expiry = this.#deps.clock.after(endMs - at.nowMs, () => {
      // Rounding may let a timer fire a hair early; this one means that the time is up.
      const { nowMs, wallMs } = this.#instant();
      this.#step({ kind: "checked" }, { nowMs: Math.max(nowMs, endMs), wallMs });
    });
  }

  async #perform(next: Next): Promise<ElectionEvent> {
    const signal = this.#over.signal;
    if (next.kind !== "wait") return this.#requests.perform(next, { deadlineMs: this.#requestMs(), signal });
    // Upstream's jitter: between one and 2.2 retry periods.
    const ms = next.spread ? next.ms * (1 + 1.2 * this.#deps.random.float()) : next.ms;
    await this.#deps.clock.sleep(ms, signal).catch(() => undefined);
    return { kind: signal.aborted ? "checked" : "due" };
  }

  /** Half the time a renewal buys, so that one that hangs leaves room for another; never past the end of our time. */
  #requestMs(): number {
    const patienceMs = Math.max(1_000, this.#config.validMs / 2);
    if (this.#state.kind !== "leading") return patienceMs;
    const leftMs = this.#state.renewedAt.nowMs + this.#config.validMs - this.#deps.clock.now();
    return Math.max(1, Math.min(patienceMs, leftMs));
  }

  #instant(): Instant {
    const { clock } = this.#deps;
    return { nowMs: clock.now(), wallMs: clock.wall().getTime() };
  }

  #tell(what: "became leader" | "stopped leading"): void {
    const { namespace, name, identity } = this.#config;
    const ref = { apiVersion: apiVersionOf(leases), kind: leases.kind, namespace, name };
    this.#deps.events?.record({
      ref,
      type: "Normal",
      reason: "LeaderElection",
      message: `${identity} ${what}`,
    });
  }
}

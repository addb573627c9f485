import { unreachable } from "../../base/assert.ts";
import { abortReason, withDeadline, type Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { leases, type Lease } from "../api/lease.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { isKubeError, KubeError } from "../errors.ts";
import type { ElectionConfig, ElectionEffect, ElectionEvent } from "./leader-election.ts";
import { recordOf, releasedLease } from "./leader-election-record.ts";

export type LeaseClient = Pick<Client, "get" | "create" | "update">;
export type LeaseRequest = Extract<ElectionEffect, { kind: "get" | "create" | "update" }>;

/** The requests of an election, each answered by the event that it came to. */
export interface LeaseRequests {
  /** Never rejects. */
  perform(
    request: LeaseRequest,
    options: { deadlineMs: number; signal: AbortSignal },
  ): Promise<ElectionEvent>;
  /**
   * Lets the next leader begin at once, if the lease still carries our name. `lease` is what it certainly
   * holds; without it, it is read. Never rejects: a lease that could not be released runs out by itself.
   */
  release(lease: Lease | undefined, options: { deadlineMs: number }): Promise<void>;
}

export function createLeaseRequests(
  { client, clock, log }: { client: LeaseClient; clock: Clock; log: Logger },
  config: ElectionConfig,
): LeaseRequests {
  const { namespace, name, identity } = config;
  let failing = false;

  function send(request: LeaseRequest, options: CallOptions): Promise<Lease> {
    switch (request.kind) {
      case "get":
        return client.get(leases, { namespace, name }, options);
      case "create":
        return client.create(leases, request.lease, options);
      case "update":
        return client.update(leases, request.lease, options);
      default:
        return unreachable(request);
    }
  }

  /** Our own deadline besides the client's, kept even by a client that is deaf to its signal: the term must come to an end. */
  function sendWithin(request: LeaseRequest, deadlineMs: number, signal?: AbortSignal): Promise<Lease> {
    const what = `${request.kind} lease ${namespace}/${name}`;
    const onDeadline = () =>
      new KubeError("DeadlineExceeded", `${what}: no answer within ${Math.round(deadlineMs)} ms`);
    return withDeadline(clock, { ms: deadlineMs, signal, onDeadline }, (both) =>
      Promise.race([send(request, { signal: both, deadlineMs }), rejectsOnAbort(both)]),
    );
  }

  function noteFailure(error: unknown, request: LeaseRequest): void {
    if (!failing) log.warn("lease request failed", { lease: name, request: request.kind, error });
    failing = true;
  }

  return {
    async perform(request, { deadlineMs, signal }) {
      try {
        // A write is not cut short by a stop: whether it arrived decides whether there is a lease to release.
        const lease = await sendWithin(request, deadlineMs, request.kind === "get" ? signal : undefined);
        failing = false;
        return request.kind === "get" ? { kind: "read", lease } : { kind: "written", lease };
      } catch (error) {
        if (request.kind === "get" && isKubeError(error, "NotFound"))
          return { kind: "read", lease: undefined };
        if (isKubeError(error, "Conflict", "AlreadyExists", "NotFound")) return { kind: "refused" };
        if (!signal.aborted) noteFailure(error, request);
        return { kind: "failed" };
      }
    },

    async release(known, { deadlineMs }) {
      const untilMs = clock.now() + deadlineMs;
      const leftMs = () => Math.max(1, untilMs - clock.now());
      let lease = known;
      try {
        // Twice, because a renewal whose answer was lost may have come between.
        for (let tries = 0; tries < 2; tries++) {
          lease ??= await sendWithin({ kind: "get" }, leftMs());
          if (recordOf(lease).holderIdentity !== identity) return;
          try {
            await sendWithin({ kind: "update", lease: releasedLease(lease, clock.wall()) }, leftMs());
            log.info("lease released", { lease: name });
            return;
          } catch (error) {
            if (!isKubeError(error, "Conflict")) throw error;
            lease = undefined;
          }
        }
      } catch (error) {
        log.warn("lease not released; it runs out by itself", { lease: name, error });
      }
    },
  };
}

function rejectsOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
    if (signal.aborted) reject(abortReason(signal));
  });
}

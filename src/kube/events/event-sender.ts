import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { events, type KubeEvent } from "../api/event.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { isKubeError, type KubeErrorCode } from "../errors.ts";
import type { Outgoing } from "./event-outbox.ts";

export type Sent =
  | { readonly kind: "sent" }
  /** The server will never take it: no such namespace, no right to. */
  | { readonly kind: "rejected"; readonly error: unknown }
  /** Tried 12 times, or the process is ending. */
  | { readonly kind: "unreachable"; readonly error: unknown };

export interface SenderDeps {
  readonly client: Pick<Client, "create" | "patch">;
  readonly clock: Clock;
  readonly random: Random;
}

/** With 10 s between them, two minutes: the restart of an API server. */
const TRIES_MAX = 12;
const RETRY_MS = 10_000;
const CALL_MS = 10_000;

/** What may go away by itself; everything else the server means. */
const PASSING: readonly KubeErrorCode[] = [
  "Unreachable",
  "ConnectionLost",
  "DeadlineExceeded",
  "BadResponse",
  "TooManyRequests",
  "InternalError",
  "ServiceUnavailable",
  "ServerTimeout",
  "Timeout",
];

/** Never rejects. Once `stopping` has aborted a failure is final; `abandon` cuts a call short. */
export async function sendEvent(
  { client, clock, random }: SenderDeps,
  outgoing: Outgoing,
  { stopping, abandon }: { stopping: AbortSignal; abandon: AbortSignal },
): Promise<Sent> {
  for (let tries = 1; ; tries++) {
    try {
      await write(client, outgoing, { signal: abandon, deadlineMs: CALL_MS });
      return { kind: "sent" };
    } catch (error) {
      if (abandon.aborted) return { kind: "unreachable", error };
      if (!isKubeError(error, ...PASSING)) return { kind: "rejected", error };
      if (tries === TRIES_MAX || stopping.aborted) return { kind: "unreachable", error };
    }
    // 5 to 15 s, so that controllers cut off together do not come back together. A stop ends the wait: one last try.
    await clock.sleep(RETRY_MS * (0.5 + random.float()), stopping).catch(() => undefined);
  }
}

async function write(
  client: SenderDeps["client"],
  { kind, event }: Outgoing,
  options: CallOptions,
): Promise<void> {
  if (kind === "create") return create(client, event, options);
  const { name = "", namespace } = event.metadata;
  const value = { count: event.count, lastTimestamp: event.lastTimestamp, message: event.message };
  try {
    await client.patch(
      events,
      { name, namespace },
      { type: "merge", value },
      { ...options, repeatable: true },
    );
  } catch (error) {
    // Events live for an hour; one that is gone begins anew with the count it has.
    if (!isKubeError(error, "NotFound")) throw error;
    await create(client, event, options);
  }
}

async function create(client: SenderDeps["client"], event: KubeEvent, options: CallOptions): Promise<void> {
  try {
    await client.create(events, event, options);
  } catch (error) {
    // The name is random: if it exists, an earlier try of ours arrived and only its answer was lost.
    if (!isKubeError(error, "AlreadyExists")) throw error;
  }
}

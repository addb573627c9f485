import { events, type KubeEvent } from "../api/event.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { isKubeError, type KubeErrorCode } from "../errors.ts";
import type { Outgoing } from "./event-outbox.ts";

export type Sent =
  | { readonly kind: "sent" }
  /** The server will never take it: no such namespace, no right to. */
  | { readonly kind: "rejected"; readonly error: unknown }
  /** It was not to be had, or had too much to do: the next try may do better, `retryAfterMs` from now at the earliest. */
  | { readonly kind: "unreachable"; readonly error: unknown; readonly retryAfterMs: number };

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

/** One try, repeated by the client within 10 s where that is safe. Never rejects; `abandon` cuts it short. */
export async function sendEvent(
  client: Pick<Client, "create" | "patch">,
  outgoing: Outgoing,
  abandon: AbortSignal,
): Promise<Sent> {
  try {
    await write(client, outgoing, { signal: abandon, deadlineMs: CALL_MS });
    return { kind: "sent" };
  } catch (error) {
    if (!abandon.aborted && !isKubeError(error, ...PASSING)) return { kind: "rejected", error };
    const retryAfterMs = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
    return { kind: "unreachable", error, retryAfterMs };
  }
}

async function write(
  client: Pick<Client, "create" | "patch">,
  { kind, event }: Outgoing,
  options: CallOptions,
): Promise<void> {
  if (kind === "create") return create(client, event, options);
  try {
    await update(client, event, options);
  } catch (error) {
    // Events live for an hour; one that is gone begins anew with the count it has.
    if (!isKubeError(error, "NotFound")) throw error;
    await create(client, event, options);
  }
}

async function update(
  client: Pick<Client, "create" | "patch">,
  { metadata: { name = "", namespace }, count, lastTimestamp, message }: KubeEvent,
  options: CallOptions,
): Promise<void> {
  const value = { count, lastTimestamp, message };
  await client.patch(events, { name, namespace }, { type: "merge", value }, { ...options, repeatable: true });
}

async function create(
  client: Pick<Client, "create" | "patch">,
  event: KubeEvent,
  options: CallOptions,
): Promise<void> {
  try {
    await client.create(events, event, options);
  } catch (error) {
    // The name is random: if it exists, an earlier try of ours arrived and only its answer was lost.
    if (!isKubeError(error, "AlreadyExists")) throw error;
    // It may have happened again since.
    if ((event.count ?? 1) > 1) await update(client, event, options);
  }
}

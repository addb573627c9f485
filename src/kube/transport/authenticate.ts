import { abortable } from "../../base/clock.ts";
import type { Credential, Credentials } from "./access.ts";

/**
 * Sends with the current credential, and once more with a new one if the server said 401 and the source of
 * credentials believes that it can do better. Never a third time: a server that refuses everything would be
 * asked forever.
 */
export async function authenticated<R extends { readonly status: number }>(
  credentials: Credentials,
  signal: AbortSignal | undefined,
  { send, discard }: { send: (credential: Credential) => Promise<R>; discard: (answer: R) => Promise<void> },
): Promise<R> {
  const credential = await abortable(credentials.current(signal), signal);
  const answer = await send(credential);
  if (answer.status !== 401 || !credentials.rejected(credential)) return answer;
  await discard(answer);
  return send(await abortable(credentials.current(signal), signal));
}

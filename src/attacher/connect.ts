import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Channel } from "../csi/methods.ts";
import { AttacherError } from "./errors.ts";

/** Then a driver without a socket has failed, and whoever started both starts us again. */
const CONNECT_MS = 30_000;
const TELL_EVERY_MS = 10_000;

/** Waits for somebody to listen on the driver's socket: it may be started after us. */
export async function whenConnected(
  { channel, clock, log }: { readonly channel: Channel; readonly clock: Clock; readonly log: Logger },
  { address, signal }: { readonly address: string; readonly signal: AbortSignal },
): Promise<void> {
  let waitedMs = 0;
  const tell = () => {
    waitedMs += TELL_EVERY_MS;
    log.info("waiting for the driver's socket", { address, waitedMs });
    timer = clock.after(TELL_EVERY_MS, tell);
  };
  let timer = clock.after(TELL_EVERY_MS, tell);
  try {
    await channel.ready({ timeoutMs: CONNECT_MS, signal });
  } catch (error) {
    throw new AttacherError(
      "DriverUnusable",
      `no driver answers at --csi-address ${address} after ${CONNECT_MS / 1000} s; start it, or give its socket`,
      { cause: error },
    );
  } finally {
    timer.cancel();
  }
}

import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { DriverError, GRPC_DEADLINE_EXCEEDED, type ControllerDriver, type DriverFacts } from "./driver.ts";
import { AttacherError } from "./errors.ts";

/** Between two questions whether the driver is ready. */
const PROBE_PAUSE_MS = 1_000;

/** A driver answers who it is from memory; one that takes longer is started again together with us, as upstream does. */
const INTRODUCTION_MS = 1_000;

/** Waits for the driver to be ready, however long that takes, then asks who it is and what it can do. */
export async function introduce(
  { driver, clock, log }: { readonly driver: ControllerDriver; readonly clock: Clock; readonly log: Logger },
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<DriverFacts> {
  await whenReady({ driver, clock, log }, { timeoutMs, signal });
  const options = { timeoutMs: INTRODUCTION_MS, signal };
  const name = await attempt("GetPluginInfo", () => driver.pluginName(options));
  if (name === "") throw new AttacherError("DriverUnusable", "GetPluginInfo: the driver has an empty name");
  const capabilities = await attempt("GetPluginCapabilities", () => driver.capabilities(options));
  log.info("driver introduced itself", { driver: name, capabilities });
  return { name, capabilities };
}

async function whenReady(
  { driver, clock, log }: { driver: ControllerDriver; clock: Clock; log: Logger },
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  for (let told = false; ; told = true) {
    if (await attempt("Probe", () => isReady(driver, { timeoutMs, signal }))) return;
    if (!told) log.info("waiting for the driver to be ready");
    await clock.sleep(PROBE_PAUSE_MS, signal);
  }
}

/** A driver that takes too long is starting; one that answers with an error will not start. */
async function isReady(
  driver: ControllerDriver,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<boolean> {
  try {
    return await driver.probe(options);
  } catch (error) {
    if (error instanceof DriverError && error.grpcCode === GRPC_DEADLINE_EXCEEDED) return false;
    throw error;
  }
}

async function attempt<T>(what: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    throw new AttacherError("DriverUnusable", `${what}: ${error.message}`, { cause: error });
  }
}

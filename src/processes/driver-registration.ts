import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { serveRegistration } from "../csi/registration.ts";
import { createCsiServer, type CsiServer } from "../csi/server.ts";

export interface RegistrationOptions {
  readonly driverName: string;
  /** The driver's CSI socket as kubelet sees it: another path than ours where directories are mounted elsewhere. */
  readonly kubeletPath: string;
  /** The folder that kubelet watches for registration sockets. */
  readonly folder: string;
}

/**
 * Makes the driver known to kubelet without a node-driver-registrar beside it. A refusal ends the process, so that
 * whoever supervises it starts it and tries again. Its socket goes on a real shutdown only: kubelet then forgets the driver.
 */
export function createRegistrationServer(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  { driverName, kubeletPath, folder }: RegistrationOptions,
  onRefused: (error: string) => void,
): CsiServer {
  const announcement = { driverName, endpoint: kubeletPath };
  const served = serveRegistration(announcement, (outcome) => {
    if (outcome.kind === "registered") {
      log.info("registered with kubelet", { driver: driverName, endpoint: kubeletPath });
      return;
    }
    log.error("kubelet refused the registration", { error: outcome.error, next: "this process ends" });
    onRefused(outcome.error);
  });
  return createCsiServer({ clock, log }, { socketPath: join(folder, `${driverName}-reg.sock`), served });
}

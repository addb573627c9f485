import type { Clock } from "../base/clock.ts";
import type { Host, HostErrorCode } from "../node/host.ts";
import { NODE_VIEW } from "./host-calls.ts";
import { createFaultyMachine, type FaultyMachine } from "./host-faults.ts";

export interface FaultyNodeHost extends Host, Omit<FaultyMachine<Host, HostErrorCode>, "host"> {
  /** The next call of `mounts.mount` whose first argument names `path` (any where left out) fails, `times` over. */
  fail(
    call: string,
    fault: { readonly code?: HostErrorCode; readonly path?: string; readonly times?: number },
  ): void;
  /** The next such call does not answer before `ms` have passed; then it does its work. */
  delay(call: string, fault: { readonly ms: number; readonly path?: string; readonly times?: number }): void;
}

/** The machine as a node agent sees it, itself a `Host`. */
export function createFaultyNodeHost(host: Host, { clock }: { readonly clock: Clock }): FaultyNodeHost {
  const machine = createFaultyMachine(host, { clock, view: NODE_VIEW });
  return {
    ...machine.host,
    inject: machine.inject,
    heal: machine.heal,
    kill: machine.kill,
    dieAt: machine.dieAt,
    log: machine.log,
    fail: (call, { code = "Failed", ...fault }) => machine.inject({ call, code, ...fault }),
    delay: (call, { ms, ...fault }) => machine.inject({ call, afterMs: ms, ...fault }),
    get isDead() {
      return machine.isDead;
    },
    get changes() {
      return machine.changes;
    },
  };
}

import type { Clock } from "../base/clock.ts";
import { HostError, type Host, type HostErrorCode } from "../node/host.ts";
import { mapCalls, NODE_VIEW } from "./host-calls.ts";

/**
 * What can become of a call of the machine. A deadline says nothing of what was done: once with nothing done, once with
 * all of it. The first five come at once, with nothing done.
 */
export const IO_FAULTS = {
  EIO: { code: "Corrupted" },
  ENOSPC: { code: "NoSpace" },
  EROFS: { code: "NotPermitted" },
  ENODEV: { code: "Corrupted" },
  EBUSY: { code: "Busy" },
  timeout: { code: "TimedOut", afterMs: 10_000 },
  "done, told too late": { code: "TimedOut", afterMs: 10_000, done: true },
} as const satisfies Readonly<Record<string, { code: HostErrorCode; afterMs?: number; done?: boolean }>>;

export type IoFault = keyof typeof IO_FAULTS;

export interface HostCallFaults extends Host {
  /** `files.writeDurable /path`, in order, of every call there was. */
  readonly calls: readonly string[];
  /** Calls that met the fault. */
  readonly met: number;
  /** From now on nothing fails. */
  heal(): void;
}

/** The machine as an agent sees it, where the calls that `fails` picks, by their number and name, meet the fault. */
export function createHostCallFaults(
  host: Host,
  { clock }: { readonly clock: Clock },
  { fault, fails }: { readonly fault: IoFault; readonly fails: (call: number, name: string) => boolean },
): HostCallFaults {
  const calls: string[] = [];
  let met = 0;
  let healed = false;

  async function call(name: string, args: readonly unknown[], work: () => unknown): Promise<unknown> {
    const number = calls.push(`${name} ${subjectOf(args)}`) - 1;
    if (healed || !fails(number, name)) return work();
    met++;
    const {
      code,
      afterMs = 0,
      done = false,
    }: { code: HostErrorCode; afterMs?: number; done?: boolean } = IO_FAULTS[fault];
    if (done) await work();
    if (afterMs > 0) await clock.sleep(afterMs);
    throw new HostError(code, `${calls[number] ?? name}: ${fault} on request`, {
      cause: Object.assign(new Error(fault), { code: fault }),
    });
  }

  return {
    ...mapCalls(host, NODE_VIEW, ({ name, args }, work) => call(name, args, work)),
    calls,
    get met() {
      return met;
    },
    heal() {
      healed = true;
    },
  };
}

function subjectOf([first]: readonly unknown[]): string {
  if (typeof first === "string") return first;
  const target: unknown = typeof first === "object" && first !== null ? Reflect.get(first, "target") : "";
  return typeof target === "string" ? target : "";
}

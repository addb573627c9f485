import { DRIVER_VIEW, mapCalls, type HostCall } from "../sim/host-calls.ts";
import { HostError, type Host, type HostErrorCode } from "./host.ts";

/** How a call of the machine goes wrong. */
export type Fault =
  /** Nothing happens, and it says so. */
  | { readonly kind: "fails"; readonly code: HostErrorCode; readonly text: string }
  /** It happens, and the answer is lost. */
  | { readonly kind: "late" }
  /** A look that is wrong, or a program that says it did what it did not do. */
  | { readonly kind: "lies"; readonly which: number };

/** At which call of the process, and whether the calls of the same kind after it go the same way. */
export interface FaultAt {
  readonly call: number;
  readonly fault: Fault;
  readonly lasting: boolean;
}

type Lie = (real: unknown) => unknown;

const nothing: Lie = () => undefined;
const none: Lie = () => [];

/** What may be answered instead of the truth. Calls that are system calls on the driver's own files do not lie. */
export const LIES: Readonly<Record<string, readonly Lie[]>> = {
  "files.read": [nothing],
  "files.list": [none],
  "files.stat": [nothing],
  "files.resolve": [nothing],
  "loops.list": [none],
  "loops.sizeBytes": [() => 0n],
  "loops.detach": [nothing],
  "loops.refresh": [nothing],
  "loops.flush": [nothing],
  "filesystems.probe": [
    () => ({ kind: "blank" }),
    () => ({ kind: "filesystem", type: "xfs", neverMounted: false }),
    () => ({ kind: "filesystem", type: "ext4", neverMounted: true }),
    () => ({ kind: "other", what: "more than one signature" }),
  ],
  "filesystems.format": [nothing],
  "filesystems.check": [nothing],
  "filesystems.sizeBytes": [() => 0n, () => 1n << 60n],
  "filesystems.grow": [nothing],
  "mounts.list": [none],
  "mounts.mount": [nothing],
  "mounts.bind": [nothing],
  "mounts.remountBind": [nothing],
  "mounts.unmount": [nothing],
  "mounts.freeze": [nothing],
  "mounts.thaw": [nothing],
};

/** Programs that lie do nothing; looks are made, and their result is replaced. */
const LOOKS = new Set(["read", "list", "stat", "resolve", "sizeBytes", "probe"]);

/** No call whose answer could be lost. */
const SILENT = new Set(["files.lock"]);

export interface FaultyHost {
  readonly host: Host;
  /** Every call so far, as `part.method`. */
  readonly calls: readonly string[];
  /** The call that went wrong, with its first argument. */
  hit(): string | undefined;
  /** From now on everything works. */
  heal(): void;
}

export function createFaultyHost(host: Host, at?: FaultAt): FaultyHost {
  const calls: string[] = [];
  let isHealthy = at === undefined;
  let hit: string | undefined;
  let kindHit: string | undefined;

  function isHit(kind: string): boolean {
    if (isHealthy || at === undefined) return false;
    return calls.length - 1 === at.call || (at.lasting && kind === kindHit);
  }

  async function goWrong(kind: string, work: () => unknown): Promise<unknown> {
    const fault = at?.fault;
    if (fault?.kind === "fails") throw new HostError(fault.code, fault.text);
    if (fault?.kind === "late") {
      const answer = await work();
      // An open file of this process: nobody holds it without knowing.
      if (typeof answer === "function") await (answer as () => Promise<void>)();
      throw new HostError("TimedOut", `${kind} answered too late`);
    }
    const lie = LIES[kind]?.[fault?.which ?? 0];
    if (lie === undefined) return work();
    return LOOKS.has(kind.slice(kind.indexOf(".") + 1)) ? lie(await work()) : lie(undefined);
  }

  const around = async ({ name: kind, args }: HostCall, work: () => unknown): Promise<unknown> => {
    if (SILENT.has(kind)) return work();
    calls.push(kind);
    if (!isHit(kind)) return work();
    hit ??= `${kind} ${String(args[0])}`;
    kindHit = kind;
    return goWrong(kind, work);
  };

  return {
    host: mapCalls(host, DRIVER_VIEW, around),
    calls,
    hit: () => hit,
    heal: () => void (isHealthy = true),
  };
}

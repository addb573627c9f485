import { readFileSync } from "node:fs";
import { platform } from "node:os";
import { ProcessError } from "./errors.ts";

/** What decides whether this process can attach loop devices and mount. */
export interface MountFacts {
  readonly platform: string;
  /** Undefined where there are no user ids. */
  readonly uid: number | undefined;
  /** CAP_SYS_ADMIN, which root in a container usually lacks; undefined where the kernel does not tell. */
  readonly sysAdmin: boolean | undefined;
}

/** Pure: why nothing can be mounted here; undefined where nothing speaks against it. */
export function mountObstacle({ platform: system, uid, sysAdmin }: MountFacts): string | undefined {
  if (system !== "linux") return `loop devices and mounts need Linux, and this is ${system}`;
  if (sysAdmin === true) return undefined;
  if (uid !== 0) return `mounting needs root, and this process runs as user ${uid ?? "unknown"}`;
  return sysAdmin === false ? "mounting needs CAP_SYS_ADMIN, which this process lacks" : undefined;
}

export function mountFacts(): MountFacts {
  return { platform: platform(), uid: process.getuid?.(), sysAdmin: hasSysAdmin(ownStatus()) };
}

/** Before anything is made or announced: what cannot mount must not say that it has started. */
export function requireMounts(what: string, wayOut: string, facts: MountFacts = mountFacts()): void {
  const why = mountObstacle(facts);
  if (why !== undefined) throw new ProcessError("NotWorking", `${what} cannot run here: ${why}; ${wayOut}`);
}

/** Bit 21 of the effective capabilities. */
const CAP_SYS_ADMIN = 21n;

export function hasSysAdmin(status: string | undefined): boolean | undefined {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status ?? "")?.[1];
  return mask === undefined ? undefined : ((BigInt(`0x${mask}`) >> CAP_SYS_ADMIN) & 1n) === 1n;
}

function ownStatus(): string | undefined {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    return undefined;
  }
}

import { chance, pick, type Random } from "../base/random.ts";
import { HostError, type Host, type HostErrorCode } from "../node/host.ts";
import { mapCalls, NODE_VIEW, subjectOf, type HostCall } from "./host-calls.ts";

interface Refusal {
  readonly errno: string;
  readonly code: HostErrorCode;
}

const EIO: Refusal = { errno: "EIO", code: "Corrupted" };
const ENOSPC: Refusal = { errno: "ENOSPC", code: "NoSpace" };
const EBUSY: Refusal = { errno: "EBUSY", code: "Busy" };

/** What a kernel says no to, and with what: a disk that fails or is full, a mount that somebody is in. */
const REFUSALS: Readonly<Record<string, readonly Refusal[]>> = {
  "files.writeDurable": [EIO, ENOSPC],
  "files.writeFile": [EIO, ENOSPC],
  "files.makeDirectories": [EIO, ENOSPC],
  "files.makeFile": [EIO, ENOSPC],
  "files.symlink": [EIO, ENOSPC],
  "files.rename": [EIO],
  "files.removeDirectory": [EIO, EBUSY],
  "files.removeFile": [EIO],
  "files.read": [EIO],
  "files.list": [EIO],
  "files.stat": [EIO],
  "mounts.mount": [EIO, EBUSY],
  "mounts.bind": [EIO],
  "mounts.unmount": [EBUSY],
  "mounts.cleanUp": [EBUSY],
  "mounts.isMountPoint": [EIO],
  "mounts.table": [EIO],
};

/** An fsync that fails says nothing of what is in the file. */
const FSYNCED = "files.writeDurable";

/** Calls of one machine's kernel that are refused at a rate, for whoever works by way of `host`. */
export class KernelFaults {
  /** Of all calls that can be refused; 0 while nothing is wrong. */
  rate = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  host(host: Host): Host {
    return mapCalls(host, NODE_VIEW, (call, work) => {
      const refusals = REFUSALS[call.name];
      if (this.rate === 0 || refusals === undefined || !chance(this.#random, this.rate)) return work();
      const refusal = pick(this.#random, refusals);
      const isDone = call.name === FSYNCED && chance(this.#random, 0.5);
      return refuse(call, refusal, isDone ? work : undefined);
    });
  }
}

async function refuse(call: HostCall, { errno, code }: Refusal, work?: () => unknown): Promise<never> {
  await work?.();
  throw new HostError(code, `${call.name} ${subjectOf(call)}: ${errno}`, {
    cause: Object.assign(new Error(errno), { code: errno }),
  });
}

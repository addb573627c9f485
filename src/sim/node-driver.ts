import type { Clock } from "../base/clock.ts";
import { silentLogger } from "../base/log.ts";
import { CsiError, type CsiCode } from "../csi/errors.ts";
import { Node, NodeServiceCapability_RPC_Type as Rpc } from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { serve, type Channel } from "../csi/methods.ts";
import { bindDevice, mountVolume, unmountVolume } from "../node/memory/driver-acts.ts";
import type { MemoryHost } from "../node/memory/host.ts";

export type DriverCall = "stage" | "unstage" | "publish" | "unpublish" | "expand";

interface Fault {
  readonly call: DriverCall;
  readonly code: CsiCode | undefined;
  /** Whether the work is done all the same. */
  readonly done: boolean;
  readonly afterMs: number;
  left: number;
}

/**
 * The node service of a CSI driver on a simulated machine. It mounts for real there, keeps every call as a line, and
 * fails, hangs or answers late on request. It outlives the agent: a restart finds what it did.
 */
export class SimNodeDriver {
  /** `stage h1`, `publish h1 u1`, oldest first. */
  readonly calls: string[] = [];
  /** Of every stage and publish of a filesystem, oldest first. */
  readonly mountFlags: (readonly string[])[] = [];
  /** Calls under way, the most at once a volume. */
  readonly overlaps: string[] = [];
  capabilities: readonly Rpc[] = [Rpc.STAGE_UNSTAGE_VOLUME, Rpc.EXPAND_VOLUME];
  /** Says nothing of what it can do: `UNAVAILABLE`. */
  isMute = false;
  /** False: it does not notice that another call of the volume is under way, and does both. */
  locks = true;
  /** How long a call takes that nothing else was asked of by `fail` and `delay`. */
  takesMs: (call: DriverCall) => number = () => 0;
  /** Told after a call has changed something on the machine, whoever still waits for its answer. */
  onEffect: (line: string) => Promise<void> = async () => undefined;
  /** Publishes of block volumes succeed and leave no device behind. */
  publishesNothing = false;
  /** Paths of the last expansion. */
  lastExpand: { readonly volumePath: string; readonly stagingTargetPath: string } | undefined;
  #lives = 0;
  readonly #faults: Fault[] = [];
  readonly #running = new Map<string, string[]>();
  readonly #clock: Clock;
  readonly #host: MemoryHost;

  constructor({ clock, host }: { readonly clock: Clock; readonly host: MemoryHost }) {
    this.#clock = clock;
    this.#host = host;
  }

  /** The next such calls fail with this code; `done` ones do their work first. */
  fail(
    call: DriverCall,
    code: CsiCode,
    { times = 1, done = false }: { times?: number; done?: boolean } = {},
  ): void {
    this.#faults.push({ call, code, done, afterMs: 0, left: times });
  }

  /** The next such calls take that long. */
  delay(call: DriverCall, afterMs: number, { times = 1 }: { times?: number } = {}): void {
    this.#faults.push({ call, code: undefined, done: true, afterMs, left: times });
  }

  /** What was asked for by `fail` and `delay` and has not come yet does not come. */
  heal(): void {
    this.#faults.splice(0);
  }

  /** The process it lives in is killed: what it was at ends there and does nothing more. */
  kill(): void {
    this.#lives++;
    this.#running.clear();
    this.heal();
  }

  connect(): Channel {
    return createMemoryChannel({ clock: this.#clock, log: silentLogger }, this.#serve());
  }

  #serve() {
    return serve(Node, {
      nodeGetCapabilities: async () => {
        if (this.isMute) throw new CsiError("UNAVAILABLE", "asked for nothing");
        const rpc = (type: Rpc) => ({ type: { case: "rpc" as const, value: { type } } });
        return { capabilities: this.capabilities.map(rpc) };
      },
      nodeStageVolume: ({ volumeId, stagingTargetPath, volumeCapability }) =>
        this.#call("stage", volumeId, "", async () => {
          if (volumeCapability?.accessType.case !== "mount") return;
          this.mountFlags.push(volumeCapability.accessType.value.mountFlags);
          await mountVolume(this.#host, stagingTargetPath, volumeId);
        }),
      nodeUnstageVolume: ({ volumeId, stagingTargetPath }) =>
        this.#call("unstage", volumeId, "", () => unmountVolume(this.#host, stagingTargetPath)),
      nodePublishVolume: ({ volumeId, targetPath, stagingTargetPath, volumeCapability }) =>
        this.#call("publish", volumeId, podOf(targetPath), async () => {
          if (volumeCapability?.accessType.case === "mount") {
            this.mountFlags.push(volumeCapability.accessType.value.mountFlags);
            await mountVolume(this.#host, targetPath, volumeId, { staged: stagingTargetPath });
          } else if (!this.publishesNothing) await bindDevice(this.#host, targetPath, volumeId);
        }),
      nodeUnpublishVolume: ({ volumeId, targetPath }) =>
        this.#call("unpublish", volumeId, podOf(targetPath), () => unmountVolume(this.#host, targetPath)),
      nodeExpandVolume: ({ volumeId, capacityRange, volumePath, stagingTargetPath }) =>
        this.#call("expand", volumeId, String(capacityRange?.requiredBytes ?? ""), async () => {
          this.lastExpand = { volumePath, stagingTargetPath };
        }),
    });
  }

  async #call(call: DriverCall, volumeId: string, more: string, work: () => Promise<void>): Promise<object> {
    const line = [call, volumeId, more].filter((part) => part !== "").join(" ");
    this.calls.push(line);
    const beside = this.#running.get(volumeId) ?? [];
    if (beside.length > 0) this.overlaps.push(`${line} beside ${beside.join(", ")}`);
    // As drivers do: a call whose caller is gone still runs, and nothing of its volume begins before it has ended.
    if (this.locks && beside.some((other) => conflicts(line, other)))
      throw new CsiError("ABORTED", `${line}: another operation of this volume is pending`);
    this.#running.set(volumeId, [...beside, line]);
    const fault = this.#faults.find((one) => one.call === call && one.left > 0);
    if (fault) fault.left--;
    const life = this.#lives;
    try {
      const tookMs = fault ? fault.afterMs : this.takesMs(call);
      if (tookMs > 0) await this.#clock.sleep(tookMs);
      if (life !== this.#lives) throw new CsiError("UNAVAILABLE", `${call}: the driver was killed`);
      if (!fault || fault.done) await work();
      await this.onEffect(line);
      if (fault?.code) throw new CsiError(fault.code, `${call} refused on request`);
      return {};
    } finally {
      const left = (this.#running.get(volumeId) ?? []).filter((other) => other !== line);
      this.#running.set(volumeId, left);
    }
  }
}

/** Publishes and unpublishes of different pods do not get into each other's way. */
function conflicts(line: string, other: string): boolean {
  const [[call, , pod], [otherCall, , otherPod]] = [line.split(" "), other.split(" ")];
  const ofPod = (name: string | undefined) => name === "publish" || name === "unpublish";
  return !ofPod(call) || !ofPod(otherCall) || pod === otherPod;
}

/** `u1` of `/var/lib/kubelet/pods/u1/volumes/...` and of `.../publish/pv/u1`. */
function podOf(targetPath: string): string {
  const match = /\/pods\/([^/]+)\//.exec(targetPath) ?? /\/([^/]+)$/.exec(targetPath);
  return match?.[1] ?? "";
}

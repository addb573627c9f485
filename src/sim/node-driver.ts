import type { Clock } from "../base/clock.ts";
import { silentLogger } from "../base/log.ts";
import { CsiError, type CsiCode } from "../csi/errors.ts";
import { Node, NodeServiceCapability_RPC_Type as Rpc } from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { serve, type Channel } from "../csi/methods.ts";
import type { Host } from "../node/host.ts";

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
  /** Calls under way, the most at once a volume. */
  readonly overlaps: string[] = [];
  capabilities: readonly Rpc[] = [Rpc.STAGE_UNSTAGE_VOLUME, Rpc.EXPAND_VOLUME];
  readonly #faults: Fault[] = [];
  readonly #running = new Map<string, string[]>();
  readonly #clock: Clock;
  readonly #host: Host;

  constructor({ clock, host }: { readonly clock: Clock; readonly host: Host }) {
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

  connect(): Channel {
    return createMemoryChannel({ clock: this.#clock, log: silentLogger }, this.#serve());
  }

  #serve() {
    return serve(Node, {
      nodeGetCapabilities: async () => ({
        capabilities: this.capabilities.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
      }),
      nodeStageVolume: ({ volumeId, stagingTargetPath, volumeCapability }) =>
        this.#call("stage", volumeId, "", async () => {
          if (volumeCapability?.accessType.case === "mount") await this.#mount(stagingTargetPath, volumeId);
        }),
      nodeUnstageVolume: ({ volumeId, stagingTargetPath }) =>
        this.#call("unstage", volumeId, "", () => this.#unmount(stagingTargetPath)),
      nodePublishVolume: ({ volumeId, targetPath, volumeCapability }) =>
        this.#call("publish", volumeId, podOf(targetPath), async () => {
          if (volumeCapability?.accessType.case === "mount") await this.#mount(targetPath, volumeId);
          else await this.#host.files.makeFile(targetPath, 0o600);
        }),
      nodeUnpublishVolume: ({ volumeId, targetPath }) =>
        this.#call("unpublish", volumeId, podOf(targetPath), () => this.#unmount(targetPath)),
      nodeExpandVolume: ({ volumeId, capacityRange }) =>
        this.#call("expand", volumeId, String(capacityRange?.requiredBytes ?? ""), async () => undefined),
    });
  }

  async #call(call: DriverCall, volumeId: string, more: string, work: () => Promise<void>): Promise<object> {
    const line = [call, volumeId, more].filter((part) => part !== "").join(" ");
    this.calls.push(line);
    const beside = this.#running.get(volumeId) ?? [];
    if (beside.length > 0) this.overlaps.push(`${line} beside ${beside.join(", ")}`);
    this.#running.set(volumeId, [...beside, line]);
    const fault = this.#faults.find((one) => one.call === call && one.left > 0);
    if (fault) fault.left--;
    try {
      if (fault && fault.afterMs > 0) await this.#clock.sleep(fault.afterMs);
      if (!fault || fault.done) await work();
      if (fault?.code) throw new CsiError(fault.code, `${call} refused on request`);
      return {};
    } finally {
      const left = (this.#running.get(volumeId) ?? []).filter((other) => other !== line);
      this.#running.set(volumeId, left);
    }
  }

  async #mount(path: string, volumeId: string): Promise<void> {
    if (await this.#host.mounts.isMountPoint(path)) return;
    await this.#host.files.makeDirectories(path, 0o750);
    await this.#host.mounts.mount({ source: volumeId, target: path, type: "tmpfs", options: [] });
  }

  async #unmount(path: string): Promise<void> {
    if (await this.#host.mounts.isMountPoint(path)) await this.#host.mounts.unmount(path);
  }
}

/** `u1` of `/var/lib/kubelet/pods/u1/volumes/...` and of `.../publish/pv/u1`. */
function podOf(targetPath: string): string {
  const match = /\/pods\/([^/]+)\//.exec(targetPath) ?? /\/([^/]+)$/.exec(targetPath);
  return match?.[1] ?? "";
}

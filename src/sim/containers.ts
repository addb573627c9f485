import type { Clock } from "../base/clock.ts";
import { chance, type Random } from "../base/random.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Mounted } from "../node/memory/tree.ts";
import type { Machine } from "./machine.ts";
import type { Storages, StoredVolume } from "./storage.ts";
import type { About, Trace } from "./trace.ts";
import { journalOf, type Journal, type VolumeData } from "./volume-data.ts";

export interface Container {
  readonly podUid: string;
  readonly pod: string;
  readonly pid: number;
  readonly volumes: readonly {
    readonly volume: StoredVolume;
    readonly mount: Mounted;
    readonly journal: Journal;
  }[];
  /** Since when it is asked to end. */
  endingSinceMs: number | undefined;
}

export interface ContainersDeps {
  readonly machine: Machine;
  /** Under which storage systems know the machine. */
  readonly nodeIds: readonly string[];
  readonly storages: Storages;
  readonly data: VolumeData;
  readonly clock: Clock;
  readonly random: Random;
  readonly trace: Trace;
  readonly onViolation: (text: string) => void;
}

const WRITE_EVERY_MS = 4_000;
/** Of all writes; with the others the process does not wait for the disk. */
const SYNCED = 0.7;
const END_MS_MAX = 3_000;
/** A process in the kernel that no signal reaches, or one with a long grace period. */
const STUBBORN = 0.05;
const STUBBORN_MS_MAX = 90_000;

/**
 * A container runtime with workloads on one machine. Containers outlive the agent that asked for them; they write to their
 * volumes until they end, and end some time after they were asked to. Nothing else than the power ends them.
 */
export class Containers {
  readonly running = new Map<string, Container>();
  /** Until then processes are stuck in the kernel, and no signal ends one. */
  stuckUntilMs = 0;
  readonly #deps: ContainersDeps;
  readonly #listeners = new Map<string, () => void>();

  constructor(deps: ContainersDeps) {
    this.#deps = deps;
    deps.machine.onPowerOff(() => {
      this.running.clear();
      this.#listeners.clear();
    });
  }

  /** Whether a process here is in the kernel where no signal reaches it, or takes far longer to end than most. */
  get isStubborn(): boolean {
    const nowMs = this.#deps.clock.now();
    const isLate = ({ endingSinceMs = nowMs }: Container) => nowMs - endingSinceMs > END_MS_MAX;
    return this.stuckUntilMs > nowMs || [...this.running.values()].some(isLate);
  }

  /** Whether a workload here can write to the volume at this moment. */
  writes(handle: string): boolean {
    return [...this.running.values()].some(({ volumes }) =>
      volumes.some(({ volume, mount }) => volume.handle === handle && this.#canWrite(volume, mount)),
    );
  }

  start(pod: Pod): void {
    const podUid = pod.metadata.uid ?? "";
    if (this.running.has(podUid)) return;
    const { machine, trace } = this.#deps;
    const volumesDir = `${machine.rootDir}/pods/${podUid}/volumes/`;
    const mounts = machine.mounts.filter(
      ({ path }) => path.startsWith(volumesDir) || path.endsWith(`/${podUid}`),
    );
    const isDevice = ({ root }: Mounted) => root.device !== undefined;
    const paths = (of: readonly Mounted[]) => of.map(({ path }) => path);
    const pid = machine.host.startProcess({
      podUid,
      binds: paths(mounts.filter((mount) => !isDevice(mount))),
      opens: paths(mounts.filter(isDevice)),
    });
    const volumes = mounts.flatMap((mount) => {
      const volume = this.#deps.storages.at(mount);
      const journal = journalOf(mount, machine.host.tree);
      return volume === undefined ? [] : [{ volume, mount, journal }];
    });
    const container: Container = {
      podUid,
      pod: pod.metadata.name ?? "",
      pid,
      volumes,
      endingSinceMs: undefined,
    };
    this.running.set(podUid, container);
    trace.add(
      machine.name,
      `starts ${container.pod} with ${volumes.map(({ volume }) => volume.handle).join(" ")}`,
      this.#about(container),
    );
    for (const { volume, journal } of volumes) {
      const problem = this.#deps.data.problem(volume, journal);
      if (problem !== undefined)
        this.#deps.onViolation(`data: ${container.pod} on ${machine.name}: ${problem}`);
    }
    this.#write(container);
  }

  /** Calls once the container has ended by itself or was ended, not where the power ended it. */
  onEnd(podUid: string, listener: () => void): void {
    this.#listeners.set(podUid, listener);
  }

  /** The runtime is told to end it; the process takes its time. */
  end(podUid: string): void {
    const container = this.running.get(podUid);
    if (container === undefined || container.endingSinceMs !== undefined) return;
    const { clock, random } = this.#deps;
    container.endingSinceMs = clock.now();
    const msMax = chance(random, STUBBORN) ? STUBBORN_MS_MAX : END_MS_MAX;
    const gone = () => {
      if (this.running.get(podUid) !== container) return;
      const stuckMs = this.stuckUntilMs - clock.now();
      if (stuckMs > 0) {
        clock.after(Math.min(stuckMs, 1_000), gone);
        return;
      }
      this.running.delete(podUid);
      this.#deps.machine.host.endProcess(container.pid);
      this.#deps.trace.add(this.#deps.machine.name, `${container.pod} has ended`, this.#about(container));
      this.#listeners.get(podUid)?.();
      this.#listeners.delete(podUid);
    };
    clock.after(random.float() * msMax, gone);
  }

  #about({ pod, volumes }: Container): About {
    const [first] = volumes;
    const node = this.#deps.machine.name;
    return { pod, node, to: "workload", ...(first && { volume: first.volume.handle }) };
  }

  #write(container: Container): void {
    if (this.running.get(container.podUid) !== container) return;
    const { machine, data, clock, random } = this.#deps;
    for (const { volume, mount, journal } of container.volumes)
      if (this.#canWrite(volume, mount))
        data.write(
          { volume, journal, synced: chance(random, SYNCED) },
          { node: machine.name, podUid: container.podUid },
        );
    clock.after(WRITE_EVERY_MS * (0.5 + random.float()), () => this.#write(container));
  }

  /** Where the disk is gone from under the filesystem it is EIO; a frozen one has its writers wait. */
  #canWrite(volume: StoredVolume, { options, filesystem }: Mounted): boolean {
    return volume.isReachedFrom(this.#deps.nodeIds) && !options.includes("ro") && !filesystem.isFrozen;
  }
}

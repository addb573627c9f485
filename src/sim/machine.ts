import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import type { Mounted } from "../node/memory/tree.ts";
import { isAtOrBelow } from "../node/mount-table.ts";
import { KernelFaults } from "./kernel-faults.ts";
import type { SimScheduler } from "./scheduler.ts";
import { Sockets } from "./sockets.ts";

/** Of a kubelet, where a machine has a computer of its own. */
export const NODE_ROOT = "/var/lib/kubelet";

/** A computer: its kernel and disk, its unix sockets. Processes die with its power; what is on the disk stays. */
export class Machine {
  readonly name: string;
  readonly host: MemoryHost;
  readonly sockets: Sockets;
  /** Of its hardware, whichever process is frozen. */
  readonly clock: Clock;
  readonly rootDir: string;
  /** What its kernel refuses to the agent. */
  readonly kernelFaults: KernelFaults;
  readonly #onOff = new Set<() => void>();
  readonly #onMount = new Set<() => void>();
  readonly #sharesHost: boolean;
  #isOn = true;

  /** On a computer that it shares with others it has a directory and a power switch of its own. */
  constructor(scheduler: SimScheduler, name: string, random: Random, shared?: MemoryHost) {
    this.name = name;
    const clock = scheduler.createClock();
    this.clock = clock;
    this.host = shared ?? createMemoryHost({ clock });
    this.#sharesHost = shared !== undefined;
    this.rootDir = shared === undefined ? NODE_ROOT : `/var/lib/mooring/nodes/${name}`;
    this.kernelFaults = new KernelFaults(random.fork("kernel"));
    this.sockets = new Sockets({ clock, random });
  }

  /** Of this machine, not of another on the same computer. */
  get mounts(): readonly Mounted[] {
    const { mounts } = this.host.tree;
    return this.#sharesHost ? mounts.filter(({ path }) => isAtOrBelow(path, this.rootDir)) : mounts;
  }

  /** Told after a driver has mounted something here. */
  onMount(listener: () => void): void {
    this.#onMount.add(listener);
  }

  mounted(): void {
    for (const listener of this.#onMount) listener();
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  onPowerOff(listener: () => void): void {
    this.#onOff.add(listener);
  }

  /** Everything that runs or is mounted here is gone at once. */
  powerOff(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    for (const listener of this.#onOff) listener();
    this.host.reboot(this.#sharesHost ? { below: this.rootDir } : {});
    this.sockets.clear();
  }

  powerOn(): void {
    this.#isOn = true;
  }
}

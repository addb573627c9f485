import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { filesystemOn, loseBlocks, type Disk } from "../node/memory/disks.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import type { Mounted } from "../node/memory/tree.ts";
import { isAtOrBelow } from "../node/mount-table.ts";
import { KernelFaults } from "./kernel-faults.ts";
import type { SimScheduler } from "./scheduler.ts";
import { Sockets } from "./sockets.ts";

/** Of a kubelet, where a machine has a computer of its own. */
export const NODE_ROOT = "/var/lib/kubelet";

/**
 * A computer: its kernel and disk, its unix sockets. Processes die with its power; what was synced to a disk stays, and of
 * the rest what the seed says.
 */
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
  readonly #onLoss = new Set<(disk: Disk) => void>();
  /** Of what was not synced when the power failed. */
  readonly #loss: Random;
  readonly #onMount = new Set<() => void>();
  readonly #sharesHost: boolean;
  #isOn = true;
  #boots = 1;

  /** On a computer that it shares with others it has a directory and a power switch of its own. */
  constructor(scheduler: SimScheduler, name: string, random: Random, shared?: MemoryHost) {
    this.name = name;
    const clock = scheduler.createClock();
    this.clock = clock;
    this.host = shared ?? createMemoryHost({ clock });
    this.#sharesHost = shared !== undefined;
    this.rootDir = shared === undefined ? NODE_ROOT : `/var/lib/mooring/nodes/${name}`;
    this.kernelFaults = new KernelFaults(random.fork("kernel"));
    this.#loss = random.fork("power loss");
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

  /** Told of each disk that may have lost what was not synced to it. */
  onLoss(listener: (disk: Disk) => void): void {
    this.#onLoss.add(listener);
  }

  /** Everything that runs or is mounted here is gone at once. A computer that it shares still has what was not synced. */
  powerOff(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    for (const listener of this.#onOff) listener();
    if (this.#sharesHost) this.host.reboot({ below: this.rootDir });
    else this.#lost(this.host.crash({ random: this.#loss }));
    this.sockets.clear();
  }

  /** The computer that it shares with others loses its power, and with it what was not synced by any of them. */
  powerOffAll(): void {
    this.powerOff();
    if (this.#sharesHost) this.#lost(this.host.crash({ random: this.#loss }));
  }

  /** A disk is gone from under the machine: what its kernel still had for it never gets there. */
  loseDisk(disk: Disk): void {
    filesystemOn(disk)?.unsynced.lose({ random: this.#loss });
    loseBlocks(disk, this.#loss);
    this.#lost([disk]);
  }

  #lost(disks: readonly Disk[]): void {
    for (const disk of disks) for (const listener of this.#onLoss) listener(disk);
  }

  powerOn(): void {
    this.#isOn = true;
    this.#boots++;
  }

  /** As its kernel says it: another after each boot. */
  get bootId(): string {
    return `${this.name}-boot-${this.#boots}`;
  }

  /** Its disk is replaced by an empty one. */
  wipe(): void {
    this.host.tree.walk(this.rootDir, { follow: true })?.inode?.children.clear();
  }
}

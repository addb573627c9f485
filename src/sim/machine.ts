import type { Random } from "../base/random.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import { NODE_ROOT } from "./node-world.ts";
import type { SimScheduler } from "./scheduler.ts";
import { Sockets } from "./sockets.ts";

/** A computer: its kernel and disk, its unix sockets. Processes die with its power; what is on the disk stays. */
export class Machine {
  readonly name: string;
  readonly host: MemoryHost;
  readonly sockets: Sockets;
  readonly rootDir = NODE_ROOT;
  readonly #onOff = new Set<() => void>();
  #isOn = true;

  constructor(scheduler: SimScheduler, name: string, random: Random) {
    this.name = name;
    const clock = scheduler.createClock();
    this.host = createMemoryHost({ clock });
    this.sockets = new Sockets({ clock, random });
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
    this.host.reboot();
    this.sockets.clear();
  }

  powerOn(): void {
    this.#isOn = true;
  }
}

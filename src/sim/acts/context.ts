import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Client } from "../../kube/client/client.ts";
import type { Act, ActOf } from "../act.ts";
import type { App, Apps } from "../apps.ts";
import type { World } from "../world.ts";

/** What an act is carried out with. */
export class ActContext {
  readonly world: World;
  readonly apps: Apps;
  /** Nodes that an operator has declared dead, which he does only once they are. */
  readonly tainted = new Set<string>();
  /** PersistentVolumes that an operator is about to make, by name. */
  readonly volumesToMake = new Map<string, PersistentVolume>();
  /** Whose volume a snapshot was cut of, by its name; also once that app is gone. */
  readonly snapshotsOf = new Map<string, App>();
  /** Nobody breaks anything any more. */
  isHealed = false;
  #made = 0;
  /** What people are at right now. */
  readonly #begun = new Set<Promise<unknown>>();

  constructor(world: World, apps: Apps) {
    this.world = world;
    this.apps = apps;
  }

  /** Of somebody with a perfect network and every right. */
  get client(): Client {
    return this.world.client;
  }

  /** For what people make: never twice. */
  newName(prefix: string): string {
    return `${prefix}-${++this.#made}`;
  }

  /** What fails by then fails without consequence: whoever did it has gone home. */
  readonly later = (ms: number, work: () => Promise<unknown>): void => {
    const { scheduler } = this.world;
    scheduler.createClock().after(ms, () => void this.begin(work()).catch(() => undefined));
  };

  /** Somebody is at it until it settles. */
  begin<T>(work: Promise<T>): Promise<T> {
    this.#begun.add(work);
    const end = () => void this.#begun.delete(work);
    work.then(end, end);
    return work;
  }

  /** Everybody has had his answers, or has given up: a request that found no server is sent again for half a minute. */
  async allEnded(): Promise<void> {
    while (this.#begun.size > 0) await Promise.allSettled(this.#begun);
  }
}

/** How the acts of some kinds are carried out. */
export type Performers<K extends Act["kind"]> = {
  readonly [Kind in K]: (act: ActOf<Kind>, context: ActContext) => Promise<unknown>;
};

import { SAN_DRIVER } from "../san.ts";
import { NO_CALL_FAULTS } from "../sockets.ts";
import { VOLUMES_MAX, type SimNode, type World } from "../world.ts";
import { Facts } from "./facts.ts";

/**
 * Something that is broken, by what and where. Objects that people delete or make are none, since those are in the store for all to
 * read, except where programs wait for long after that for what nobody can read there. A process is broken while it is dead,
 * frozen or has no good network.
 */
export type Fault =
  | "server"
  | "pool"
  | `process ${string}`
  | `power ${string}`
  /** Calls to drivers of a machine fail, hang or are slow. */
  | `calls ${string}`
  /** Its kernel refuses calls, or a mount hangs, is busy or answers with an error. */
  | `kernel ${string}`
  /** Processes there that no signal reaches, or that take long to end. */
  | `stuck ${string}`
  /** Its driver takes fewer volumes. */
  | `limit ${string}`
  /** Its Node object is gone, or was made anew, and says nothing yet of what the one before it said. */
  | `renewed ${string}`
  /**
   * The VolumeAttachment of a volume that it uses is being deleted, by a person or by force. Its driver may refuse until the
   * volume is unmounted, and is asked again after pauses that have grown meanwhile.
   */
  | `detached ${string}`
  /** The CSIDriver object says that the volumes of a driver need no attach, which is wrong: the driver finds no disk to mount. */
  | "csidriver";

/** What is broken, and what was lately: read off the world, so that whatever breaks it is seen. */
export class FaultLedger {
  readonly #world: World;
  /** When each was last seen in force. */
  readonly #seen = new Map<Fault, number>();
  readonly #lives = new Map<string, number>();
  /** Of each Node that was ever seen. */
  readonly #uids = new Map<string, string>();
  readonly #facts: Facts;

  constructor(world: World) {
    this.#world = world;
    this.#facts = new Facts(world);
  }

  /** To be called about once a simulated second. */
  look(): void {
    const { nowMs } = this.#world.scheduler;
    for (const fault of this.#inForce()) this.#seen.set(fault, nowMs);
  }

  /** In force at some time within the last `withinMs`. */
  lately(withinMs: number): readonly Fault[] {
    const { nowMs } = this.#world.scheduler;
    return [...this.#seen].filter(([, atMs]) => nowMs - atMs <= withinMs).map(([fault]) => fault);
  }

  *#inForce(): Iterable<Fault> {
    const { server, san, infra, processes, nodes, objects } = this.#world;
    if (!server.isUp) yield "server";
    if (san.isFull) yield "pool";
    const csiDriver = objects.get("csidrivers.storage.k8s.io", SAN_DRIVER);
    if (csiDriver?.spec.attachRequired === false) yield "csidriver";
    if (infra.sockets.faults !== NO_CALL_FAULTS) yield "calls infra";
    for (const [name, process] of processes) {
      // One that was killed and started again between two looks reads everything anew.
      const isSameLife = this.#lives.get(name) === process.lives;
      this.#lives.set(name, process.lives);
      if (!process.isUnhindered || !isSameLife) yield `process ${name}`;
    }
    for (const node of nodes.values()) yield* this.#ofNode(node);
    for (const attachment of objects.all("volumeattachments.storage.k8s.io")) {
      const { metadata, spec } = attachment;
      const isUsed = this.#facts.isListedInUse(this.#facts.handleOf(attachment) ?? "", spec.nodeName);
      if (metadata.deletionTimestamp !== undefined && isUsed) yield `detached ${spec.nodeName}`;
    }
  }

  #isRenewed(name: string): boolean {
    const known = this.#uids.get(name);
    const uid = this.#facts.node(name)?.metadata.uid;
    if (uid !== undefined) this.#uids.set(name, uid);
    return known !== undefined && uid !== known;
  }

  *#ofNode({ name, machine, containers, limits }: SimNode): Iterable<Fault> {
    const { host, sockets, kernelFaults, isOn } = machine;
    if (!isOn) yield `power ${name}`;
    if (this.#isRenewed(name)) yield `renewed ${name}`;
    if (sockets.faults !== NO_CALL_FAULTS) yield `calls ${name}`;
    const { hung, broken } = host.tree;
    const isDead = hung.size > 0 || broken.size > 0;
    if (kernelFaults.rate > 0 || isDead || host.kernel.held.size > 0) yield `kernel ${name}`;
    if (containers.isStubborn) yield `stuck ${name}`;
    if (limits.volumesMax < VOLUMES_MAX) yield `limit ${name}`;
  }
}

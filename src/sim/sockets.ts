import type { Clock } from "../base/clock.ts";
import { silentLogger } from "../base/log.ts";
import { chance, type Random } from "../base/random.ts";
import { CsiError, type CsiCode } from "../csi/errors.ts";
import { createMemoryChannel, type MemoryChannel } from "../csi/memory-channel.ts";
import type { Channel, ServedMethod } from "../csi/methods.ts";
import type { SocketWatch } from "../node/registration/sockets.ts";
import type { Life } from "./life.ts";

/** What goes wrong between a caller and a driver, as probabilities of one call. */
export interface CallFaults {
  /** Refused and not carried out, with one of these codes. */
  readonly refused: number;
  readonly codes: readonly CsiCode[];
  /** Carried out; the caller hears nothing before its deadline. */
  readonly answerLost: number;
  /** Neither carried out nor answered, until the storage gives up on it minutes later. */
  readonly hung: number;
  /** How long a call takes on its way and in the driver, at most; drawn evenly. */
  readonly takesMsMax: number;
}

export const NO_CALL_FAULTS: CallFaults = { refused: 0, codes: [], answerLost: 0, hung: 0, takesMsMax: 20 };

const HUNG_MS = 120_000;
const NEVER_BUSY = { has: () => false, add: () => undefined, delete: () => undefined };

/** One call that came to a driver, once it is known what became of it. */
export interface SocketCall {
  /** `/csi.v1.Node/NodeStageVolume`. */
  readonly path: string;
  readonly request: object;
  /** `ok`, or what the caller met instead. */
  readonly outcome: string;
}

interface Socket {
  readonly identity: string;
  /** Undefined once its server is gone; the file stays where a process was killed. */
  served: readonly ServedMethod[] | undefined;
  readonly channels: Set<MemoryChannel>;
}

/** Volumes with a call under way. */
interface Busy {
  has(volume: string): boolean;
  add(volume: string): unknown;
  delete(volume: string): unknown;
}

/**
 * One process reads one socket: calls of a volume come to its lock in the order in which they were sent, however long each was on
 * its way.
 */
class Arrivals {
  readonly #last = new Map<string, Promise<void>>();

  /** `before`: all that came earlier have been taken up, or never will be. */
  come(volume: string): { readonly before: Promise<void>; readonly takenUp: () => void } {
    const before = this.#last.get(volume) ?? Promise.resolve();
    let takenUp: () => void = () => undefined;
    const turn = new Promise<void>((resolve) => (takenUp = resolve));
    const both = before.then(() => turn);
    this.#last.set(volume, both);
    void both.then(() => this.#last.get(volume) === both && this.#last.delete(volume));
    return { before, takenUp };
  }
}

/** How calls of one volume keep out of each other's way. */
interface Order {
  readonly busy: Busy;
  /** Undefined where no two of them are under way at once. */
  readonly arrivals: Arrivals | undefined;
}

export interface SocketsDeps {
  /** Calls take their time by this one, whoever is dead. */
  readonly clock: Clock;
  readonly random: Random;
}

/** The unix sockets of one simulated machine: drivers listen, agents and attachers connect, folders are watched. */
export class Sockets {
  faults: CallFaults = NO_CALL_FAULTS;
  /** Told of every call that a driver took up. */
  onCall: ((call: SocketCall) => void) | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #sockets = new Map<string, Socket>();
  readonly #waiting = new Map<string, Set<MemoryChannel>>();
  readonly #watchers = new Set<() => void>();
  #made = 0;

  constructor({ clock, random }: SocketsDeps) {
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Serves until the process of this life ends; `close` is for one that ends in order and takes its socket along. A driver
   * that `locks` its volumes itself gets all calls.
   */
  listen(
    path: string,
    served: readonly ServedMethod[],
    life: Life,
    { locks = false }: { readonly locks?: boolean } = {},
  ): { close(): void } {
    const old = this.#sockets.get(path);
    const order: Order = locks
      ? { busy: NEVER_BUSY, arrivals: new Arrivals() }
      : { busy: new Set<string>(), arrivals: undefined };
    const methods = served.map((method) => this.#through(life, method, order));
    const channels = this.#waiting.get(path) ?? new Set();
    this.#waiting.delete(path);
    const socket: Socket = { identity: String(++this.#made), served: methods, channels };
    this.#sockets.set(path, socket);
    for (const channel of old?.channels ?? []) channels.add(channel);
    for (const channel of channels) channel.connect(methods);
    life.onKill(() => this.#hangUp(socket));
    this.#tell();
    return {
      close: () => {
        this.#hangUp(socket);
        if (this.#sockets.get(path) !== socket) return;
        this.#sockets.delete(path);
        this.#waiting.set(path, socket.channels);
        this.#tell();
      },
    };
  }

  /** As the process of `life` sees it. */
  connect(path: string, life: Life): Channel {
    const socket = this.#sockets.get(path);
    const channel = createMemoryChannel({ clock: life.clock, log: silentLogger }, socket?.served ?? []);
    if (socket?.served === undefined) channel.disconnect();
    const channels = socket?.channels ?? this.#waiting.get(path) ?? new Set();
    if (socket === undefined) this.#waiting.set(path, channels);
    channels.add(channel);
    life.onKill(() => channels.delete(channel));
    return life.bind<Channel>(channel);
  }

  /** Of the folder that a node agent watches. */
  watch(folder: string, life: Life): SocketWatch {
    const found = () =>
      new Map(
        [...this.#sockets]
          .filter(([path]) => path.startsWith(`${folder}/`))
          .map(([path, { identity }]) => [path, identity] as const)
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      );
    return {
      run: (onSockets, signal) =>
        new Promise<void>((resolve) => {
          const look = () => void life.clock.after(1, () => onSockets(found()));
          const leave = () => {
            this.#watchers.delete(look);
            resolve();
          };
          this.#watchers.add(look);
          life.onKill(() => this.#watchers.delete(look));
          look();
          if (signal.aborted) leave();
          else signal.addEventListener("abort", leave, { once: true });
        }),
    };
  }

  /** The machine is switched off: `/run` is empty at the next boot. */
  clear(): void {
    for (const [path, socket] of this.#sockets) {
      this.#hangUp(socket);
      this.#waiting.set(path, socket.channels);
    }
    this.#sockets.clear();
    this.#tell();
  }

  #hangUp(socket: Socket): void {
    if (socket.served === undefined) return;
    socket.served = undefined;
    for (const channel of socket.channels) channel.disconnect();
  }

  #tell(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** The handler as a caller meets it: it takes its time, and its process may be frozen or killed meanwhile. */
  #through(life: Life, method: ServedMethod, { busy, arrivals }: Order): ServedMethod {
    if (method.method.methodKind !== "unary") return method;
    const handler = method.handler as (request: object, context: never) => Promise<object>;
    const answer = async (request: object, context: never): Promise<object> => {
      const { volumeId: key = "" } = request as { readonly volumeId?: string };
      // As drivers do: a call whose caller is gone goes on, and nothing of its volume begins before it has ended.
      if (key !== "" && busy.has(key))
        throw new CsiError("ABORTED", `${method.path}: another operation of ${key} is under way`);
      busy.add(key);
      const arrival = key === "" ? undefined : arrivals?.come(key);
      const tell = (outcome: string) => this.onCall?.({ path: method.path, request, outcome });
      try {
        // One that hangs has not come to the lock.
        await this.#meetFaults(life, method.path, () => arrival?.takenUp());
        await arrival?.before;
        arrival?.takenUp();
        const lost = chance(this.#random, this.faults.answerLost);
        const result = await life.deliver(handler(request, context));
        tell(lost ? "carried out, and the answer is lost" : "ok");
        if (!lost) return result;
      } catch (error) {
        tell(error instanceof Error ? error.message : String(error));
        throw error;
      } finally {
        arrival?.takenUp();
        busy.delete(key);
      }
      return new Promise<never>(() => undefined);
    };
    return { ...method, handler: answer as ServedMethod["handler"] };
  }

  async #meetFaults(life: Life, path: string, onHang: () => void): Promise<void> {
    const { refused, codes, hung, takesMsMax } = this.faults;
    await this.#clock.sleep(this.#random.float() * takesMsMax);
    // A frozen server takes up what arrived when it thaws.
    await life.deliver(Promise.resolve());
    if (chance(this.#random, hung)) {
      onHang();
      await this.#clock.sleep(HUNG_MS);
      throw new CsiError("INTERNAL", `${path}: the storage gave up`);
    }
    if (!chance(this.#random, refused)) return;
    const code = codes[this.#random.int(codes.length)] ?? "UNAVAILABLE";
    throw new CsiError(code, `${path}: refused by chance`);
  }
}

import { chance, type Random } from "../base/random.ts";
import type { Lease } from "../kube/api/lease.ts";
import type { CallOptions } from "../kube/client/client.ts";
import type { LeaseClient } from "../kube/election/elector-requests.ts";
import { KubeError } from "../kube/errors.ts";
import type { KubeObject, ObjectRef, Resource } from "../kube/object.ts";
import { abortReason } from "../base/clock.ts";
import type { SimClock, SimScheduler } from "./scheduler.ts";

/** How badly the way to the server behaves; probabilities a request. */
export interface LeaseFaults {
  /** Each way, drawn evenly up to this; one request in twenty takes up to ten times as long. */
  readonly latencyMsMax: number;
  /** The request never arrives. Half of the time nobody says so. */
  readonly lostRequest: number;
  /** The server carries it out and the answer is lost. Half of the time nobody says so. */
  readonly lostAnswer: number;
  /** 503, with nothing done. */
  readonly refused: number;
  /** 504 although it was done, as when etcd answers too late. */
  readonly doneButFailed: number;
}

export const NO_FAULTS: LeaseFaults = {
  latencyMsMax: 50,
  lostRequest: 0,
  lostAnswer: 0,
  refused: 0,
  doneButFailed: 0,
};

/**
 * One Lease behind a network that delays, loses and reorders. A request is carried out when it arrives,
 * however long its sender has given up on it. Answers reach a process through its own clock, so a frozen
 * one reads them when it thaws.
 */
export class LeaseServer {
  faults: LeaseFaults = NO_FAULTS;
  /** A server with this off lets anybody overwrite anything: what election must not be built on. */
  checksPreconditions = true;
  #lease: Lease | undefined;
  #version = 0;
  readonly #scheduler: SimScheduler;
  readonly #random: Random;
  readonly #cutOff = new Set<SimClock>();

  constructor(scheduler: SimScheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
  }

  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** While cut off, nothing gets through to the server or back; what is under way is lost. */
  setPartitioned(clock: SimClock, partitioned: boolean): void {
    if (partitioned) this.#cutOff.add(clock);
    else this.#cutOff.delete(clock);
  }

  /** Only ever asked for the one lease. */
  clientFor(clock: SimClock): LeaseClient {
    const call = <T extends KubeObject>(options: CallOptions | undefined, work: () => Lease) =>
      this.#call(clock, options, work) as Promise<KubeObject> as Promise<T>;
    return {
      get: <T extends KubeObject>(_resource: Resource<T>, _ref: ObjectRef, options?: CallOptions) =>
        call<T>(options, () => this.#get()),
      create: <T extends KubeObject>(_resource: Resource<T>, object: T, options?: CallOptions) =>
        call<T>(options, () => this.#create(object as KubeObject as Lease)),
      update: <T extends KubeObject>(_resource: Resource<T>, object: T, options?: CallOptions) =>
        call<T>(options, () => this.#update(object as KubeObject as Lease)),
    };
  }

  #get(): Lease {
    if (this.#lease === undefined) throw new KubeError("NotFound", "get lease: not found", { status: 404 });
    return this.#lease;
  }

  #create(lease: Lease): Lease {
    if (this.#lease !== undefined)
      throw new KubeError("AlreadyExists", "create lease: it exists", { status: 409 });
    return this.#store(lease);
  }

  #update(lease: Lease): Lease {
    const current = this.#get();
    const expected = lease.metadata.resourceVersion;
    if (this.checksPreconditions && expected !== undefined && expected !== current.metadata.resourceVersion) {
      throw new KubeError("Conflict", "update lease: it has changed", { status: 409 });
    }
    return this.#store(lease);
  }

  #store(lease: Lease): Lease {
    this.#version++;
    this.#lease = structuredClone({
      ...lease,
      metadata: { ...lease.metadata, resourceVersion: String(this.#version) },
    });
    return this.#lease;
  }

  #call(clock: SimClock, { signal }: CallOptions = {}, work: () => Lease): Promise<Lease> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(abortReason(signal));
        return;
      }
      signal?.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
      const answer = (settle: () => void) => void clock.after(this.#latencyMs(), settle);
      const fail = (error: KubeError) => answer(() => reject(error));
      this.#scheduler.addAt(this.#scheduler.nowMs + this.#latencyMs(), () =>
        this.#arrive(clock, work, { resolve, fail, answer }),
      );
    });
  }

  #arrive(
    clock: SimClock,
    work: () => Lease,
    reply: {
      resolve: (lease: Lease) => void;
      fail: (error: KubeError) => void;
      answer: (settle: () => void) => void;
    },
  ): void {
    const { lostRequest, lostAnswer, refused, doneButFailed } = this.faults;
    const hangs = chance(this.#random, 0.5);
    const roll = this.#random.float();
    if (this.#cutOff.has(clock) || roll < lostRequest) {
      if (!hangs) reply.fail(new KubeError("Unreachable", "lease: connection refused"));
      return;
    }
    if (roll < lostRequest + refused) {
      reply.fail(new KubeError("ServiceUnavailable", "lease: try later", { status: 503 }));
      return;
    }
    let lease: Lease;
    try {
      lease = work();
    } catch (error) {
      reply.fail(error as KubeError);
      return;
    }
    if (roll < lostRequest + refused + doneButFailed) {
      reply.fail(new KubeError("Timeout", "lease: request did not complete in time", { status: 504 }));
    } else if (roll < lostRequest + refused + doneButFailed + lostAnswer) {
      if (!hangs) reply.fail(new KubeError("ConnectionLost", "lease: connection reset"));
    } else {
      reply.answer(() => reply.resolve(lease));
    }
  }

  #latencyMs(): number {
    const ms = this.faults.latencyMsMax * this.#random.float();
    return chance(this.#random, 0.05) ? ms * 10 : ms;
  }
}

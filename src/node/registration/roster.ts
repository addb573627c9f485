import { backoffMs } from "../../base/backoff.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { Node, type NodeGetInfoResponse } from "../../csi/gen/csi_pb.ts";
import { messageOf } from "../plugins/csi-errors.ts";
import type { CsiDriverClient, CsiDrivers } from "../plugins/csi-drivers.ts";
import type { DriverOnNode } from "./csi-node.ts";
import type { CsiNodeWriter } from "./csi-node-writer.ts";
import { mayReplace } from "./introduction.ts";
import type { RegistrarOptions } from "./registrar.ts";

/**
 * Which driver is registered by which socket, and what the cluster is told of it. Changes of one driver happen one
 * after the other: an entry on its way out of CSINode cannot cross one on its way in.
 */
export interface Roster {
  admit(
    found: FoundDriver,
  ): Promise<{ readonly kind: "admitted" } | { readonly kind: "refused"; readonly error: string }>;
  /** Undoes `admit`, if that socket's registration is the current one. */
  withdraw(driver: string, socketPath: string): Promise<void>;
  /** Begins the driver's grace, if it was registered by this socket (FIX 24); tells whether it was. */
  socketGone(driver: string, socketPath: string): boolean;
  refresh(driver: string, signal: AbortSignal): Promise<void>;
  /** What the cluster should know of registered drivers; not of those that are being changed right now. */
  told(): readonly DriverOnNode[];
  /** Removes entries of drivers that never came back; ends when there are none left. */
  prune(): Promise<void>;
  stop(): void;
}

export interface FoundDriver {
  readonly name: string;
  readonly endpoint: string;
  readonly version: string;
  readonly socketPath: string;
}

interface RosterDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly drivers: CsiDrivers;
  readonly csiNode: CsiNodeWriter;
  readonly driverInUse: (driver: string) => boolean;
  readonly isLive: (socketPath: string) => boolean;
  readonly stopping: () => AbortSignal;
  readonly onChange: (driver: string) => void;
  /** A driver's changes are over for now, so that `told` speaks of it again. */
  readonly onSettled: () => void;
}

interface Registered {
  readonly client: CsiDriverClient;
  readonly socketPath: string;
  facts: DriverOnNode;
}

const BACKOFF = { initialMs: 500, maxMs: 122_000 };

export function createRoster(
  { clock, log, drivers, csiNode, driverInUse, isLive, stopping, onChange, onSettled }: RosterDeps,
  { graceMs = 60_000, pruneAfterMs = 600_000 }: RegistrarOptions,
): Roster {
  const registered = new Map<string, Registered>();
  const graces = new Map<string, Timer>();
  const turns = new Map<string, Promise<unknown>>();

  /** One after the other for each driver; the map holds those with somebody at work. */
  function inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const turn = (turns.get(name) ?? Promise.resolve()).then(work);
    const settled = turn.then(
      () => undefined,
      () => undefined,
    );
    turns.set(name, settled);
    void settled.then(() => {
      if (turns.get(name) !== settled) return;
      turns.delete(name);
      onSettled();
    });
    return turn;
  }

  async function admitNow(found: FoundDriver): ReturnType<Roster["admit"]> {
    const { name, socketPath } = found;
    const current = registered.get(name);
    if (current !== undefined && current.socketPath !== socketPath && isLive(current.socketPath)) {
      const refusal = mayReplace(found, { version: current.client.version, socketPath: current.socketPath });
      if (refusal?.kind === "refused") return { kind: "refused", error: refusal.error };
    }
    const client = drivers.open(found);
    let facts: DriverOnNode;
    try {
      facts = toFacts(name, await askInfo(client, stopping()));
      await csiNode.install(facts, stopping());
    } catch (error) {
      client.retire();
      if (current === undefined || current.socketPath === socketPath) drop(name);
      return {
        kind: "refused",
        error: `RegisterPlugin error -- plugin registration failed with err: ${messageOf(error)}`,
      };
    }
    endGrace(name);
    registered.set(name, { client, socketPath, facts });
    drivers.put(client);
    onChange(name);
    log.info("driver registered", { driver: name, version: found.version, socket: socketPath });
    return { kind: "admitted" };
  }

  /** Not usable from now on; what the cluster knows of it stays until its grace is over. */
  function drop(name: string): void {
    const current = registered.get(name);
    registered.delete(name);
    if (current !== undefined) drivers.remove(current.client);
    onChange(name);
    if (!graces.has(name)) beginGrace(name);
  }

  function beginGrace(name: string): void {
    endGrace(name);
    // A process that ends says nothing of its drivers, and a timer would keep it from ending.
    if (stopping().aborted) return;
    graces.set(
      name,
      clock.after(graceMs, () => {
        graces.delete(name);
        void inTurn(name, () => leave(name));
      }),
    );
  }

  function endGrace(name: string): void {
    graces.get(name)?.cancel();
    graces.delete(name);
  }

  /** Out of everything, unless its socket has come back meanwhile. */
  async function leave(name: string): Promise<void> {
    const current = registered.get(name);
    if (current !== undefined && isLive(current.socketPath)) return;
    registered.delete(name);
    if (current !== undefined) drivers.remove(current.client);
    onChange(name);
    await uninstall(name);
  }

  /** Until it is done; a driver that registers meanwhile waits one try at most. */
  async function uninstall(name: string, failures = 0): Promise<void> {
    if (stopping().aborted || registered.has(name)) return;
    try {
      await csiNode.uninstall(name, stopping());
      log.info("driver deregistered", { driver: name });
    } catch (error) {
      const retryMs = backoffMs(failures + 1, BACKOFF);
      log.warn("driver not removed from CSINode", { driver: name, retryMs, error });
      if (stopping().aborted) return;
      graces.set(
        name,
        clock.after(retryMs, () => {
          graces.delete(name);
          void inTurn(name, () => uninstall(name, failures + 1));
        }),
      );
    }
  }

  return {
    admit: (found) => inTurn(found.name, () => admitNow(found)),
    withdraw: (name, socketPath) =>
      inTurn(name, async () => {
        if (registered.get(name)?.socketPath === socketPath) drop(name);
      }),
    socketGone(name, socketPath) {
      if (registered.get(name)?.socketPath !== socketPath) return false;
      log.info("driver's socket gone", { driver: name, socket: socketPath, graceMs });
      beginGrace(name);
      return true;
    },
    async refresh(name, signal) {
      const current = registered.get(name);
      if (current === undefined) throw new Error(`driver ${name} is not registered`);
      const facts = toFacts(name, await askInfo(current.client, signal));
      // Only the count: an id or a topology that changed is the business of its next registration.
      current.facts = { ...current.facts, maxVolumes: facts.maxVolumes };
      await csiNode.refresh(facts, signal);
    },
    told: () => [...registered].filter(([name]) => !turns.has(name)).map(([, { facts }]) => facts),
    async prune() {
      for (;;) {
        const stopped = await clock.sleep(pruneAfterMs, stopping()).then(
          () => false,
          () => true,
        );
        if (stopped) return;
        if (await pruneOnce()) return;
      }
    },
    stop() {
      for (const timer of graces.values()) timer.cancel();
      graces.clear();
    },
  };

  /** Tells whether nothing is left that a later round might remove. */
  async function pruneOnce(): Promise<boolean> {
    let done = true;
    const installed = await csiNode.drivers(stopping()).catch(() => undefined);
    for (const name of installed ?? []) {
      if (registered.has(name) || graces.has(name)) continue;
      // A volume of it may be mounted, and controllers find the node by this entry.
      if (driverInUse(name)) done = false;
      else await inTurn(name, () => uninstall(name));
    }
    return done && installed !== undefined;
  }
}

function askInfo(client: CsiDriverClient, signal: AbortSignal): Promise<NodeGetInfoResponse> {
  return client.call(Node.method.nodeGetInfo, {}, { signal });
}

function toFacts(
  name: string,
  { nodeId, maxVolumesPerNode, accessibleTopology }: NodeGetInfoResponse,
): DriverOnNode {
  return { name, nodeId, maxVolumes: maxVolumesPerNode, topology: { ...accessibleTopology?.segments } };
}

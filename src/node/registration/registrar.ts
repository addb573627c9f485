import { backoffMs } from "../../base/backoff.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import type { Channel } from "../../csi/methods.ts";
import type { CsiDrivers } from "../plugins/csi-drivers.ts";
import { createAllocatableRefresh } from "./allocatable.ts";
import type { CsiNodeWriter } from "./csi-node-writer.ts";
import { introduce, tellRefused, tellRegistered } from "./introduction.ts";
import { createProjection, type SeenByWatch } from "./projection.ts";
import { createRoster } from "./roster.ts";
import type { Sockets, SocketWatch } from "./sockets.ts";

/**
 * Finds drivers by their registration sockets and makes them known: to the CSI plugin, which calls them, and to the
 * cluster, by CSINode and Node. A socket has one registration at a time under way, and a back-off of its own.
 */
export interface Registrar {
  run(signal: AbortSignal): Promise<void>;
  /** NodeGetInfo again, now, into CSINode; an error where the driver is not registered. */
  refreshAllocatable(driver: string, signal: AbortSignal): Promise<void>;
  /** A CSIDriver object came, changed or went. */
  driverObjectChanged(driver: string): void;
}

export interface RegistrarDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  readonly sockets: SocketWatch;
  /** To a registration socket. */
  readonly connect: (socketPath: string) => Channel;
  readonly drivers: CsiDrivers;
  readonly csiNode: CsiNodeWriter;
  readonly seen: SeenByWatch;
  /** How often a driver wants to be asked for its limit, by its CSIDriver object. */
  readonly allocatablePeriodMsOf: (driver: string) => number | undefined;
  /** Whether a volume of the driver is wanted here or may be mounted: then its entry in CSINode stays. */
  readonly driverInUse: (driver: string) => boolean;
}

export interface RegistrarOptions {
  /** A driver's pod restarts within seconds; its entry in CSINode outlives that (FIX 24). */
  readonly graceMs?: number;
  /** Entries of drivers that have not come back that long after our start are removed. */
  readonly pruneAfterMs?: number;
}

/** As for operations on volumes. */
const BACKOFF = { initialMs: 500, maxMs: 122_000 };

interface Socket {
  readonly path: string;
  /** Undefined once it is gone. */
  identity: string | undefined;
  /** The one that was dealt with, for good or for ever. */
  doneIdentity: string | undefined;
  /** Who was behind it last. */
  driver: string | undefined;
  failures: number;
  running: boolean;
  retry: Timer | undefined;
}

export function createRegistrar(deps: RegistrarDeps, options: RegistrarOptions = {}): Registrar {
  const { clock, log, drivers, connect, sockets: watched } = deps;
  const sockets = new Map<string, Socket>();
  let stopping = new AbortController().signal;

  const allocatable = createAllocatableRefresh({
    clock,
    periodMsOf: (driver) => (drivers.get(driver) ? deps.allocatablePeriodMsOf(driver) : undefined),
    refresh: (driver) =>
      roster
        .refresh(driver, stopping)
        .catch((error: unknown) => log.warn("allocatable not refreshed", { driver, error })),
  });
  const roster = createRoster(
    {
      ...deps,
      isLive: (path) => sockets.get(path)?.identity !== undefined,
      stopping: () => stopping,
      onChange: (driver) => allocatable.changed(driver),
      onSettled: () => projection.changed(),
    },
    options,
  );
  const projection = createProjection({ ...deps, told: () => roster.told() });

  function onSockets(found: Sockets): void {
    for (const path of found.keys()) if (!sockets.has(path)) sockets.set(path, newSocket(path));
    for (const socket of sockets.values()) {
      socket.identity = found.get(socket.path);
      visit(socket);
    }
  }

  /** Looks at one socket and starts what it needs; does nothing where that is under way. */
  function visit(socket: Socket): void {
    if (socket.running || stopping.aborted) return;
    if (socket.identity === undefined) {
      forget(socket);
      return;
    }
    if (socket.identity === socket.doneIdentity) return;
    socket.retry?.cancel();
    socket.retry = undefined;
    socket.running = true;
    void attempt(socket, socket.identity);
  }

  function forget(socket: Socket): void {
    socket.retry?.cancel();
    sockets.delete(socket.path);
    const { driver } = socket;
    if (driver === undefined || !roster.socketGone(driver, socket.path)) return;
    // Another socket of the same driver that was turned down, or replaced, gets its chance now.
    for (const other of sockets.values()) {
      if (other.driver !== driver) continue;
      other.doneIdentity = undefined;
      visit(other);
    }
  }

  async function attempt(socket: Socket, identity: string): Promise<void> {
    let failed: unknown;
    try {
      await register(socket);
      socket.failures = 0;
      socket.doneIdentity = identity;
    } catch (error) {
      failed = error;
    }
    socket.running = false;
    if (stopping.aborted) return;
    if (failed !== undefined) {
      const delayMs = backoffMs(++socket.failures, BACKOFF);
      log.warn("plugin not registered", {
        socket: socket.path,
        failures: socket.failures,
        retryMs: delayMs,
        error: failed,
      });
      // One that was replaced meanwhile is tried at once: somebody has started it anew.
      if (socket.identity === identity) {
        socket.retry = clock.after(delayMs, () => visit(socket));
        return;
      }
    }
    visit(socket);
  }

  async function register(socket: Socket): Promise<void> {
    const channel = connect(socket.path);
    try {
      const found = await introduce(channel, socket.path, stopping);
      if (found.kind === "not-ours") {
        log.info("plugin of another component left alone", { socket: socket.path, type: found.type });
        return;
      }
      if (found.kind === "refused") throw await refuse(channel, found.error);
      socket.driver = found.name;
      const admitted = await roster.admit({ ...found, socketPath: socket.path });
      if (admitted.kind === "refused") throw await refuse(channel, admitted.error);
      try {
        await tellRegistered(channel, stopping);
      } catch (error) {
        await roster.withdraw(found.name, socket.path);
        throw error;
      }
    } finally {
      channel.close();
    }
  }

  /** The error to fail with; that the plugin could not be told changes nothing about it. */
  async function refuse(channel: Channel, error: string): Promise<Error> {
    await tellRefused(channel, error, stopping).catch((untold: unknown) =>
      log.warn("plugin not told of its refusal", { error: untold }),
    );
    return new Error(error);
  }

  (deps.metrics ?? noMetrics).gauge({
    name: "plugin_manager_total_plugins",
    help: "Number of plugins in Plugin Manager",
    labels: ["socket_path", "state"],
    collect(gauge) {
      gauge.reset();
      for (const { path, identity, doneIdentity } of sockets.values()) {
        if (identity === undefined) continue;
        gauge.set(1, { socket_path: path, state: "desired_state_of_world" });
        if (identity === doneIdentity) gauge.set(1, { socket_path: path, state: "actual_state_of_world" });
      }
    },
  });

  return {
    async run(signal) {
      stopping = signal;
      try {
        await Promise.all([
          deps.csiNode.initialise(signal).then(() => projection.run(signal)),
          watched.run(onSockets, signal),
          roster.prune(),
        ]);
      } finally {
        allocatable.stop();
        for (const { retry } of sockets.values()) retry?.cancel();
        roster.stop();
      }
    },
    refreshAllocatable: (driver, signal) => roster.refresh(driver, signal),
    driverObjectChanged: (driver) => allocatable.changed(driver),
  };
}

function newSocket(path: string): Socket {
  return {
    path,
    identity: undefined,
    doneIdentity: undefined,
    driver: undefined,
    failures: 0,
    running: false,
    retry: undefined,
  };
}

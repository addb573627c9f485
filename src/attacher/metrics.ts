import type { Clock } from "../base/clock.ts";
import type { Histogram, Metrics } from "../base/metrics.ts";
import { codeName, DriverError, type ControllerDriver } from "./driver.ts";
import type { Backlog } from "./backlog.ts";
import type { LaneGate } from "./lane-gate.ts";
import { isMigrationDriver } from "./names.ts";
import type { Operation } from "./plan.ts";
import { WAITING_REASONS, type WaitingReason, type Waits } from "./waiting.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";

/** Upstream's. */
const OPERATION_BUCKETS_S = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Calls made before the driver has said its name. */
const UNKNOWN_DRIVER = "unknown-driver";

const METHODS = {
  probe: "/csi.v1.Identity/Probe",
  pluginName: "/csi.v1.Identity/GetPluginInfo",
  capabilities: "/csi.v1.Identity/GetPluginCapabilities",
  publish: "/csi.v1.Controller/ControllerPublishVolume",
  unpublish: "/csi.v1.Controller/ControllerUnpublishVolume",
  listVolumes: "/csi.v1.Controller/ListVolumes",
} as const;

/** The calls of a driver, measured under upstream's name. Only drivers of in-tree volumes have the label `migrated`. */
export function measureDriver(
  driver: ControllerDriver,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics },
  name: string = UNKNOWN_DRIVER,
): ControllerDriver {
  const durations = metrics.histogram<keyof OperationLabels | "migrated">({
    name: "csi_sidecar_operations_seconds",
    help: "Calls to CSI drivers, by method and answer.",
    labels: ["driver_name", "method_name", "grpc_status_code", "migrated"],
    buckets: OPERATION_BUCKETS_S,
  });
  const mayBeMigrated = isMigrationDriver(name);

  async function timed<T>(
    method: keyof typeof METHODS,
    migrated: boolean | undefined,
    call: () => Promise<T>,
  ): Promise<T> {
    const startedMs = clock.now();
    let code = "OK";
    try {
      return await call();
    } catch (error) {
      const grpcCode = error instanceof DriverError ? error.grpcCode : undefined;
      code = grpcCode === undefined ? "unknown-non-grpc" : codeName(grpcCode);
      throw error;
    } finally {
      const told = { driver_name: name, method_name: METHODS[method], grpc_status_code: code };
      observe(
        durations,
        (clock.now() - startedMs) / 1000,
        told,
        mayBeMigrated ? migrated === true : undefined,
      );
    }
  }

  return {
    probe: (options) => timed("probe", undefined, () => driver.probe(options)),
    pluginName: (options) => timed("pluginName", undefined, () => driver.pluginName(options)),
    capabilities: (options) => timed("capabilities", undefined, () => driver.capabilities(options)),
    publish: (request, options) => timed("publish", options.migrated, () => driver.publish(request, options)),
    unpublish: (request, options) =>
      timed("unpublish", options.migrated, () => driver.unpublish(request, options)),
    listVolumes: (request, options) =>
      timed("listVolumes", undefined, () => driver.listVolumes(request, options)),
  };
}

type OperationLabels = Readonly<Record<"driver_name" | "method_name" | "grpc_status_code", string>>;

function observe(
  durations: Histogram<keyof OperationLabels | "migrated">,
  seconds: number,
  labels: OperationLabels,
  migrated: boolean | undefined,
): void {
  const all = migrated === undefined ? labels : { ...labels, migrated: String(migrated) };
  durations.observe(seconds, all as OperationLabels & { readonly migrated: string });
}

const OPERATIONS: readonly Operation[] = ["attach", "detach"];

/** What waits, asked at every scrape. */
export function registerBacklog(
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics },
  parts: {
    readonly driver: string;
    readonly queues: Readonly<Record<Operation, WorkQueue<string>>>;
    readonly backlog: Backlog;
    readonly gate: LaneGate;
    readonly waits: Waits;
  },
): void {
  const { driver, queues, backlog, gate, waits } = parts;
  metrics.gauge({
    name: "csi_attacher_pending_operations",
    help: "VolumeAttachments that wait: ready for a worker, or delayed after a failure.",
    labels: ["driver_name", "operation", "state"],
    collect(gauge) {
      for (const operation of OPERATIONS) {
        const { depth, delayed } = queues[operation];
        gauge.set(depth, { driver_name: driver, operation, state: "ready" });
        gauge.set(delayed, { driver_name: driver, operation, state: "delayed" });
      }
    },
  });
  metrics.gauge({
    name: "mooring_attacher_waiting",
    help: "VolumeAttachments that are not yet as they should be, by what they wait for.",
    labels: ["driver_name", "reason"],
    collect(gauge) {
      const counts = new Map<WaitingReason, number>();
      for (const { reason } of waits.values()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
      for (const reason of WAITING_REASONS)
        gauge.set(counts.get(reason) ?? 0, { driver_name: driver, reason });
    },
  });
  const register = (name: string, help: string, read: (operation: Operation) => number) =>
    metrics.gauge({
      name,
      help,
      labels: ["driver_name", "operation"],
      collect(gauge) {
        for (const operation of OPERATIONS) gauge.set(read(operation), { driver_name: driver, operation });
      },
    });
  register("mooring_attacher_backlog", "VolumeAttachments that are not yet as they should be.", (operation) =>
    backlog.size(operation),
  );
  register(
    "mooring_attacher_backlog_oldest_seconds",
    "How long the oldest of them has waited.",
    (operation) => {
      const oldest = backlog.oldest(operation);
      return oldest === undefined ? 0 : (clock.now() - oldest.sinceMs) / 1000;
    },
  );
  register(
    "mooring_attacher_backlog_eta_seconds",
    "When all of them are done, at the pace of the last 32; infinite while none was.",
    (operation) => backlog.etaMs(operation, clock.now()) / 1000,
  );
  register("mooring_attacher_workers", "Workers that the lane may use at the moment.", (operation) =>
    gate.limit(operation),
  );
}

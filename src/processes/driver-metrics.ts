import type { PromMetrics } from "../base/prom-metrics.ts";
import type { CallRecord } from "../csi/methods.ts";
import type { DriverUsage, LoopDriver } from "../driver/driver.ts";

/** What `mooring driver` measures: its calls, its objects and its disk. */
export interface DriverMetrics {
  observe(call: CallRecord): void;
  /** The same metrics for `/metrics`: images are looked at once a scrape, which cannot be done in passing. */
  readonly scraped: PromMetrics;
}

export function createDriverMetrics(
  metrics: PromMetrics,
  driver: LoopDriver,
  driverName: string,
): DriverMetrics {
  const seconds = metrics.histogram<"driver_name" | "method_name" | "grpc_status_code">({
    name: "csi_plugin_operations_seconds",
    help: "how long calls took, by method and code",
    labels: ["driver_name", "method_name", "grpc_status_code"],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
  });
  metrics.gauge<"kind">({
    name: "mooring_driver_objects",
    help: "volumes, snapshots, attachments and staged volumes of this driver",
    labels: ["kind"],
    collect: (gauge) => {
      for (const [kind, count] of Object.entries(driver.counts())) gauge.set(count, { kind });
    },
  });
  metrics.gauge({
    name: "mooring_driver_reserve_records",
    help: "records of calls that let go which can be written on a full disk",
    collect: (gauge) => gauge.set(driver.spares()),
  });
  const setUsage = usageGauges(metrics);
  return {
    observe: ({ path, code, tookMs }) =>
      seconds.observe(tookMs / 1_000, { driver_name: driverName, method_name: path, grpc_status_code: code }),
    scraped: {
      ...metrics,
      async render() {
        setUsage(await driver.usage());
        return metrics.render();
      },
    },
  };
}

function usageGauges(metrics: PromMetrics): (usage: DriverUsage) => void {
  const bytes = metrics.gauge<"kind">({
    name: "mooring_driver_bytes",
    help: "promised to volumes and snapshots, used by their images, free and total of the disk below",
    labels: ["kind"],
  });
  const devices = metrics.gauge({
    name: "mooring_driver_loop_devices",
    help: "loop devices with an image of this driver behind them",
  });
  return ({ promisedBytes, usedBytes, poolFreeBytes, poolTotalBytes, loopDevices }) => {
    bytes.set(Number(promisedBytes), { kind: "promised" });
    bytes.set(Number(usedBytes), { kind: "used" });
    bytes.set(Number(poolFreeBytes), { kind: "free" });
    bytes.set(Number(poolTotalBytes), { kind: "total" });
    devices.set(loopDevices);
  };
}

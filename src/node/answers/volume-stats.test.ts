import { expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { RecordedEvent } from "../../kube/events/events.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { toVolumeName } from "../../volumes/names.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { NodePlugin, StatsRequest } from "../plugin.ts";
import { createPluginTable } from "../plugin-table.ts";
import type { ConditionedStats } from "../plugins/stats.ts";
import { createVolumeStats } from "./volume-stats.ts";
import type { MountedVolume } from "./queries.ts";

const MINUTE = 66_001; // with all of its jitter

function pvOf(driver: string, name: string): VolumeSpec {
  const volume = { metadata: { name }, spec: { csi: { driver, volumeHandle: name } } };
  return { kind: "persistent", volume, readOnly: false, migrated: "none" };
}

/** A node whose pods have claims mounted; drivers answer as the test says. */
function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const metrics = createPromMetrics({ processMetrics: false });
  const events: RecordedEvent[] = [];
  const asked: string[] = [];
  const answers = new Map<string, () => Promise<ConditionedStats>>();
  const pods = new Map<string, Pod>();
  const mounted = new Map<string, Map<string, MountedVolume>>();
  const driverOf = (spec: VolumeSpec) =>
    (spec.kind === "persistent" && spec.volume.spec?.csi?.driver) || "none";
  const plugin = {
    name: "kubernetes.io/csi",
    canSupport: () => true,
    metricName: (spec: VolumeSpec) => `kubernetes.io/csi:${driverOf(spec)}`,
    block: { globalMapPath: () => "/map" },
    async stats({ spec, volumePath }: StatsRequest) {
      const name = (spec.kind === "persistent" && spec.volume.metadata.name) || "";
      asked.push(`${name} ${volumePath}`);
      return answers.get(name)?.() ?? { capacityBytes: 100, usedBytes: 40, availableBytes: 60 };
    },
  } as unknown as NodePlugin;

  function pod(
    name: string,
    claim: string,
    { driver = "d", mode = "Filesystem" }: { driver?: string; mode?: MountedVolume["mode"] } = {},
  ) {
    pods.set(name, {
      metadata: { name, namespace: "ns", uid: name },
      spec: { containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: claim } }] },
    });
    const spec = pvOf(driver, `pv-${claim}`);
    const volume = toVolumeName("kubernetes.io/csi", `${driver}^${claim}`);
    const path = `/pods/${name}`;
    const here = {
      volume,
      specName: `pv-${claim}`,
      spec,
      mode,
      path,
      readOnly: false,
      selinuxRelabel: false,
    };
    mounted.set(name, new Map([["v", here]]));
  }
  const stop = new AbortController();
  const loop = createVolumeStats({
    clock,
    random: createSeededRandom(2),
    log: createLogger(() => undefined),
    metrics,
    events: { record: (event) => void events.push(event) },
    queries: { getMountedVolumesForPod: (uid) => mounted.get(uid) ?? new Map() },
    pods: () => pods.values(),
    plugins: createPluginTable(() => [plugin]),
  });
  const done = loop.run(stop.signal);
  const lines = async (name: string) =>
    (await metrics.render()).split("\n").filter((line) => line.startsWith(`${name}{`));
  return { scheduler, clock, events, asked, answers, pods, mounted, pod, lines, stop, done };
}

test("every claim that is mounted is shown, asked about once a minute however many pods share it", async () => {
  const world = given();
  world.pod("a", "data");
  world.pod("b", "data");
  world.pod("c", "raw", { mode: "Block" });

  await world.scheduler.runFor(MINUTE);

  expect(world.asked).toEqual(["pv-data /pods/a", "pv-raw /map/c"]);
  expect(await world.lines("kubelet_volume_stats_used_bytes")).toEqual([
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="data"} 40',
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="raw"} 40',
  ]);
  expect(await world.lines("kubelet_volume_stats_inodes")).toEqual([]);
  expect(await world.lines("kubelet_volume_metric_collection_duration_seconds_count")).toEqual([
    'kubelet_volume_metric_collection_duration_seconds_count{metric_source="d"} 2',
  ]);
});

test("what is no longer mounted is no longer shown; what fails keeps its last answer", async () => {
  const world = given();
  world.pod("a", "data");
  world.pod("b", "gone");
  await world.scheduler.runFor(MINUTE);

  world.answers.set("pv-data", () => Promise.reject(new Error("the driver restarts")));
  world.mounted.delete("b");
  await world.scheduler.runFor(MINUTE);

  expect(await world.lines("kubelet_volume_stats_capacity_bytes")).toEqual([
    'kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="data"} 100',
  ]);
});

test("FIX 38: a driver that hangs holds up two of its own volumes at a time, and no other's", async () => {
  const world = given();
  for (const name of ["h1", "h2", "h3"]) {
    world.pod(name, name, { driver: "hung" });
    world.answers.set(`pv-${name}`, () => new Promise(() => undefined));
  }
  world.pod("fine", "fine");

  await world.scheduler.runFor(3 * MINUTE);

  expect(world.asked.filter((line) => line.startsWith("pv-h"))).toHaveLength(2);
  expect(world.asked.filter((line) => line.startsWith("pv-fine")).length).toBeGreaterThanOrEqual(3);
});

test("a volume that is not well is told about on its pod: once, and again when the trouble is another", async () => {
  const world = given();
  world.pod("a", "data");
  const says = (abnormal: boolean, message: string) =>
    world.answers.set("pv-data", async () => ({ usedBytes: 1, condition: { abnormal, message } }));

  for (const [abnormal, message] of [
    [false, ""],
    [true, "a disk is slow"],
    [true, "a disk is slow"],
    [true, "a disk is gone"],
    [false, "mended"],
  ] as const) {
    says(abnormal, message);
    await world.scheduler.runFor(MINUTE);
  }

  expect(world.events.map(({ reason, message, ref }) => `${reason} ${ref.name ?? ""} ${message}`)).toEqual([
    "VolumeConditionAbnormal a Volume pv-data: a disk is slow",
    "VolumeConditionAbnormal a Volume pv-data: a disk is gone",
  ]);
  expect(await world.lines("kubelet_volume_stats_health_status_abnormal")).toEqual([
    'kubelet_volume_stats_health_status_abnormal{namespace="ns",persistentvolumeclaim="data"} 0',
  ]);
});

test("it ends when it is told to", async () => {
  const world = given();
  world.pod("a", "data");
  await world.scheduler.runFor(MINUTE);

  world.stop.abort();
  await world.scheduler.runFor(1);

  await world.done;
  const before = world.asked.length;
  await world.scheduler.runFor(MINUTE);
  expect(world.asked).toHaveLength(before);
});

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { createPromMetrics } from "../src/base/prom-metrics.ts";
import { configMaps } from "../src/kube/api/config-map.ts";
import { createClient } from "../src/kube/client/api-client.ts";
import { given } from "../src/sim/attach-detach-world.ts";
import { startCore } from "../src/sim/harness.ts";

/**
 * Whoever had dashboards and alerts before has them after: what carries a name of kube-controller-manager, the
 * external-attacher or the kubelet has that program's labels. The label sets are facts about Kubernetes 1.36 and
 * csi-lib-utils, looked up there.
 */
const UPSTREAM: Readonly<Record<string, readonly string[]>> = {
  // client-go, of all three programs.
  rest_client_requests_total: ["code", "method", "host"],
  rest_client_request_duration_seconds: ["verb", "host"],
  rest_client_rate_limiter_duration_seconds: ["verb", "host"],
  rest_client_request_size_bytes: ["verb", "host"],
  rest_client_response_size_bytes: ["verb", "host"],
  rest_client_request_retries_total: ["code", "verb", "host"],
  workqueue_depth: ["name"],
  workqueue_adds_total: ["name"],
  workqueue_retries_total: ["name"],
  workqueue_queue_duration_seconds: ["name"],
  workqueue_work_duration_seconds: ["name"],
  workqueue_unfinished_work_seconds: ["name"],
  workqueue_longest_running_processor_seconds: ["name"],
  leader_election_master_status: ["name"],
  leader_election_slowpath_total: ["name"],
  // kube-controller-manager.
  attachdetach_controller_total_volumes: ["plugin_name", "state"],
  attach_detach_controller_attachdetach_controller_forced_detaches: ["reason"],
  storage_count_attachable_volumes_in_use: ["node", "volume_plugin"],
  storage_operation_duration_seconds: ["volume_plugin", "operation_name", "status", "migrated"],
  // external-attacher.
  csi_sidecar_operations_seconds: ["driver_name", "method_name", "grpc_status_code", "migrated"],
  // kubelet.
  csi_operations_seconds: ["driver_name", "method_name", "grpc_status_code", "migrated"],
  volume_operation_total_seconds: ["plugin_name", "operation_name"],
  volume_manager_total_volumes: ["plugin_name", "state"],
  reconstruct_volume_operations_total: [],
  reconstruct_volume_operations_errors_total: [],
  plugin_manager_total_plugins: ["socket_path", "state"],
  kubelet_volume_metric_collection_duration_seconds: ["metric_source"],
  ...Object.fromEntries(
    ["capacity_bytes", "available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"]
      .concat("health_status_abnormal")
      .map((what) => [`kubelet_volume_stats_${what}`, ["namespace", "persistentvolumeclaim"]]),
  ),
  ...Object.fromEntries(
    [
      "container_errors",
      "container_warnings",
      "pod_context_mismatch_errors",
      "pod_context_mismatch_warnings",
    ].map((what) => [`volume_manager_selinux_${what}_total`, ["access_mode"]]),
  ),
  ...Object.fromEntries(
    ["volume_context_mismatch_errors", "volume_context_mismatch_warnings", "volumes_admitted"].map((what) => [
      `volume_manager_selinux_${what}_total`,
      ["volume_plugin", "access_mode"],
    ]),
  ),
};

/** Under a name that begins like upstream's, without one there. */
const OURS = /^(mooring_|csi_attacher_pending_operations$|csi_plugin_operations_seconds$|apiserver_)/;

const ROOT = resolve(import.meta.dirname, "..");

describe("docs/reference/metrics.md", () => {
  const page = readFileSync(join(ROOT, "docs/reference/metrics.md"), "utf8");
  const rows = [...page.matchAll(/^\| `([a-z_]+)` \| ([^|]*) \|/gm)].map(([, name = "", labels = ""]) => ({
    name,
    labels:
      labels === "–"
        ? []
        : labels === "of a claim"
          ? ["namespace", "persistentvolumeclaim"]
          : labels.split(", "),
  }));

  test("every metric of upstream's name has upstream's labels", () => {
    const theirs = rows.filter(({ name }) => !OURS.test(name));

    expect(Object.fromEntries(theirs.map(({ name, labels }) => [name, labels]))).toEqual(UPSTREAM);
  });
});

test("where the source spells labels out, they are upstream's", () => {
  const spelled = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.includes(".test"))
    .flatMap((path) => [
      ...readFileSync(join(ROOT, "src", path), "utf8").matchAll(
        /name: "([a-z_]+)",\s*help:\s*"[^"]*",\s*labels: \[([^\]]*)\]/g,
      ),
    ])
    .map(([, name = "", labels = ""]) => [name, labels.match(/[a-z_]+/g) ?? []] as const)
    .filter(([name]) => name in UPSTREAM);

  expect(spelled.length).toBeGreaterThan(12);
  for (const [name, labels] of spelled) expect([name, labels]).toEqual([name, UPSTREAM[name]]);
});

/** Name and labels of every series in a page of metrics. */
function seriesOf(text: string): { name: string; labels: Record<string, string> }[] {
  return [...text.matchAll(/^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? [^ ]+$/gm)].map(
    ([, name = "", labels = ""]) => ({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = "", value = ""]) => [key, value]),
      ),
    }),
  );
}

test("what a client tells of its requests is what client-go tells", async () => {
  const { clock, random, server } = await startCore();
  const metrics = createPromMetrics();
  const host = "10.96.0.1:443";
  const client = createClient({ transport: server.transport, clock, random, metrics, host });
  const ref = { namespace: "default", name: "one" };

  await client.create(configMaps, { metadata: ref }).catch(() => undefined);
  await client.get(configMaps, { ...ref, name: "none" }).catch(() => undefined);
  const stop = new AbortController();
  await client.watch(configMaps, { signal: stop.signal });
  stop.abort(new Error("over"));

  const series = seriesOf(await metrics.render());
  const found = series.filter(({ name }) => name.startsWith("rest_client_"));
  expect(found.length).toBeGreaterThan(10);
  for (const { name, labels } of found) {
    const { le: _, ...rest } = labels;
    expect([name, Object.keys(rest).sort()]).toEqual([name, [...(UPSTREAM[name] ?? [])].sort()]);
    expect(labels["host"]).toBe(host);
  }
  const requests = found.filter(({ name }) => name === "rest_client_requests_total");
  expect(requests.map(({ labels }) => `${labels["method"]} ${labels["code"]}`).sort()).toEqual([
    "GET 200",
    "GET 404",
    "POST 201",
  ]);
});

test("the comparison with VolumeAttachments is counted a node, as upstream counts it", async () => {
  const world = await given({
    nodes: ["n1", "n2", "idle"],
    pods: { one: { on: "n1", uses: ["v", "w"] }, two: { on: "n2", uses: ["x"] } },
  });
  const count = (status: string) =>
    world.metric("storage_operation_duration_seconds_count", {
      operation_name: "verify_volumes_are_attached_per_node",
      volume_plugin: "<n/a>",
      migrated: "false",
      status,
    });
  await world.advance(61_000);
  expect(await count("success")).toBe(2);
  expect(await count("fail-unknown")).toBeUndefined();

  await world.advance(60_000);
  expect(await count("success")).toBe(4);
});

import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { connect, freePort, startCluster, type Cluster } from "./cluster.ts";
import { mooring, Running, scratch } from "./mooring.ts";
import { letGoOf } from "./up-world.ts";

const place = scratch();
const kubeconfig = join(place.path, "admin.kubeconfig");
let cluster: Cluster;

/** A pod whose claim asks for a class that is not there, and an attachment that nobody wants. */
beforeAll(async () => {
  cluster = await startCluster(place.path, await freePort());
  await create("/api/v1/nodes", { kind: "Node", metadata: { name: "node-a" } });
  await create("/api/v1/namespaces/default/persistentvolumeclaims", claim("data"));
  await create("/api/v1/namespaces/default/pods", podWith("data"));
  await create("/apis/storage.k8s.io/v1/volumeattachments", {
    kind: "VolumeAttachment",
    metadata: { name: "csi-left" },
    spec: { attacher: "csi.example.com", nodeName: "node-a", source: { persistentVolumeName: "pv-gone" } },
  });
});

const started: Running[] = [];

function start(...args: string[]): Running {
  const process = new Running(...args);
  started.push(process);
  return process;
}

afterAll(async () => {
  await cluster.kill();
  for (const process of started) {
    process.kill("SIGKILL");
    await process.exit();
  }
  letGoOf(place.path);
  place.remove();
});

async function create(path: string, object: { kind: string; metadata: object; [field: string]: unknown }) {
  const apiVersion = path.startsWith("/api/") ? "v1" : "storage.k8s.io/v1";
  const { status, body } = await cluster.call("POST", path, { apiVersion, ...object });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${JSON.stringify(body)}`);
}

function podWith(claimName: string) {
  return {
    kind: "Pod",
    metadata: { name: "web" },
    spec: {
      containers: [{ name: "app", image: "app", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
    },
  };
}

function claim(name: string) {
  return {
    kind: "PersistentVolumeClaim",
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

test("why names the blocker in its first sentence, without colours, and as JSON", () => {
  const text = mooring("why", "pod/web", "--kubeconfig", kubeconfig);
  const json = mooring("why", "pvc/data", "-o", "json", "--kubeconfig", kubeconfig);

  expect([text.code, text.stderr]).toEqual([0, ""]);
  const [answer = ""] = text.stdout.split("\n\n");
  expect(answer.replaceAll("\n", " ")).toMatch(
    /^Pod default\/web waits: StorageClass fast, which claim default\/data asks for, does not exist/,
  );
  expect(text.stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  expect(text.stdout).not.toContain("\u001b");
  expect(JSON.parse(json.stdout)).toMatchObject({
    healthy: false,
    blocker: { reason: "class-missing", waiting: "claim-unbound" },
  });
});

test("get lists volumes and attachments with why they wait; what does not exist is 1", () => {
  const volumes = mooring("get", "volumes", "-o", "wide", "--kubeconfig", kubeconfig);
  const attachments = mooring("get", "attachments", "-o", "yaml", "--kubeconfig", kubeconfig);
  const missing = mooring("why", "pod/nobody", "--kubeconfig", kubeconfig);

  expect(volumes.code).toBe(0);
  expect(volumes.stdout).toMatch(
    /^POD +CLAIM +VOLUME +NODE .* STATE +SINCE +WHY\nweb +data .* unbound +\S+ +StorageClass fast/,
  );
  expect(parse(attachments.stdout)).toMatchObject({
    items: [{ name: "csi-left", state: "attaching", reason: "foreign-attachment" }],
  });
  expect([missing.code, missing.stdout]).toEqual([1, ""]);
  expect(missing.stderr).toMatch(/^mooring: NotFound: explaining pod\/nobody in namespace default: .*-n\n$/);
});

test("get -w prints a line for every change", async () => {
  const watching = new Running("get", "volumes", "-w", "--kubeconfig", kubeconfig);
  await watching.says(/^web +data +unbound/m);

  await create("/api/v1/namespaces/default/persistentvolumeclaims", claim("later"));
  await watching.says(/^ +later +unbound/m);
  watching.kill("SIGTERM");

  expect(await watching.exit()).toMatchObject({ code: 0 });
  expect(watching.stdout.match(/^web /gm)).toHaveLength(1);
});

test("where nobody listens it fails at once, and says which file named the address and what to do", async () => {
  const server = `https://127.0.0.1:${await freePort()}`;
  const config = parse(readFileSync(kubeconfig, "utf8")) as { clusters: { cluster: { server: string } }[] };
  for (const { cluster: target } of config.clusters) target.server = server;
  const wrong = join(place.path, "wrong.kubeconfig");
  writeFileSync(wrong, stringify(config), { mode: 0o600 });
  const startedAtMs = performance.now();

  const answers = [
    mooring("why", "pod/web", "--kubeconfig", wrong),
    mooring("get", "volumes", "-w", "--kubeconfig", wrong),
  ];

  for (const { code, stdout, stderr } of answers) {
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^mooring: cannot read the cluster at https:\S+, which \S+wrong\.kubeconfig names: .* refused; .*`mooring up`.*--kubeconfig FILE\n$/,
    );
  }
  // Each takes 1 s, most of it for starting; with the patience of a process it was 31 s.
  expect(performance.now() - startedAtMs).toBeLessThan(20_000);
});

test("without a right it says which, and explains with the rest", async () => {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const rules = [
    { apiGroups: [""], resources: ["pods", "persistentvolumeclaims"], verbs: ["list"] },
    {
      apiGroups: ["storage.k8s.io"],
      resources: ["storageclasses", "csinodes", "csidrivers"],
      verbs: ["list"],
    },
  ];
  const apiVersion = "rbac.authorization.k8s.io/v1";
  await cluster.call("POST", `${rbac}/clusterroles`, {
    apiVersion,
    kind: "ClusterRole",
    metadata: { name: "some" },
    rules,
  });
  await cluster.call("POST", `${rbac}/clusterrolebindings`, {
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: { name: "jane-some" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "some" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" }],
  });
  const config = parse(readFileSync(kubeconfig, "utf8")) as { users: { user: Record<string, unknown> }[] };
  for (const { user } of config.users) user["as"] = "jane";
  const janes = join(place.path, "jane.kubeconfig");
  writeFileSync(janes, stringify(config), { mode: 0o600 });

  const why = mooring("why", "pod/web", "--kubeconfig", janes);
  const node = mooring("why", "node/node-a", "--kubeconfig", janes);

  expect(why.stdout).toMatch(/^Pod default\/web waits: StorageClass fast/);
  expect(why.stdout).toMatch(/^ {2}- list volumeattachments\.storage\.k8s\.io: not permitted$/m);
  expect(node.code).toBe(1);
  expect(node.stderr).toMatch(
    /^mooring: Forbidden: explaining node\/node-a: cannot list nodes: not permitted; /,
  );
});

test("of a cluster of `mooring up` the node itself is asked: why names the call that fails", async () => {
  const data = join(place.path, "up");
  const config = ["--kubeconfig", join(data, "admin.kubeconfig")];
  const faults = ["--faults", "NodeStageVolume=error:13"];
  const up = start("up", "--nodes", "1", "--data-dir", data, "--listen", "127.0.0.1:0", ...faults);
  await up.says(/debug +http:\/\/127\.0\.0\.1:\d+/);
  const watching = start("get", "volumes", "-w", "-o", "wide", ...config);
  const transport = await connect(join(data, "admin.kubeconfig"));
  for (const [path, object] of [
    [
      "persistentvolumeclaims",
      { ...claim("data"), spec: { ...claim("data").spec, storageClassName: "loop" } },
    ],
    ["pods", podWith("data")],
  ] as const) {
    const body = JSON.stringify({ apiVersion: "v1", ...object });
    const headers = { "content-type": "application/json" };
    await transport.request({ method: "POST", path: `/api/v1/namespaces/default/${path}`, headers, body });
  }
  await transport.close();
  await watching.says(/^web +data .* mounting .*NodeStageVolume.*an error on purpose/m);
  watching.kill("SIGTERM");

  const why = mooring("why", "pod/web", "-o", "wide", ...config);
  const mode = statSync(join(data, "endpoints.json")).mode & 0o777;
  const stale = readFileSync(join(data, "endpoints.json"), "utf8");
  up.kill("SIGTERM");
  await up.exit();

  expect(why.stdout).toMatch(/^Pod default\/web waits: .*NodeStageVolume.*an error on purpose/);
  expect(why.stdout).toMatch(/^Evidence: +mooring node node-1: waitingFor = backoff: .*an error on purpose/m);
  expect(why.stdout).not.toContain("Note:");
  expect(mode).toBe(0o600);
  expect(existsSync(join(data, "endpoints.json"))).toBe(false);
  expect(Object.keys(JSON.parse(stale) as object)).toEqual(["server", "controller", "attacher", "nodes"]);
});

test("pages that nobody answers any more are noted; an address that a flag names has to answer", async () => {
  const { clusters } = parse(readFileSync(kubeconfig, "utf8")) as {
    clusters: { cluster: { server: string } }[];
  };
  const url = `http://127.0.0.1:${await freePort()}`;
  const endpoints = { server: clusters[0]?.cluster.server, controller: url, attacher: "", nodes: {} };
  writeFileSync(join(place.path, "endpoints.json"), JSON.stringify(endpoints));

  const stale = mooring("why", "pod/web", "--kubeconfig", kubeconfig);
  const named = mooring("why", "pod/web", "--kubeconfig", kubeconfig, "--node-endpoint", url);
  rmSync(join(place.path, "endpoints.json"));

  expect(stale.code).toBe(0);
  expect(stale.stdout).toMatch(/^Pod default\/web waits: StorageClass fast/);
  expect(stale.stdout).toMatch(new RegExp(`^Note:\n {2}- ${url} does not answer`, "m"));
  expect([named.code, named.stdout]).toEqual([1, ""]);
  expect(named.stderr).toMatch(/cannot ask mooring node at .*ECONNREFUSED/);
});

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { freePort, startCluster, type Cluster } from "./cluster.ts";
import { mooring, Running, scratch } from "./mooring.ts";

const place = scratch();
const kubeconfig = join(place.path, "admin.kubeconfig");
let cluster: Cluster;

/** A pod whose claim asks for a class that is not there, and an attachment that nobody wants. */
beforeAll(async () => {
  cluster = await startCluster(place.path, await freePort());
  await create("/api/v1/nodes", { kind: "Node", metadata: { name: "node-a" } });
  await create("/api/v1/namespaces/default/persistentvolumeclaims", claim("data"));
  await create("/api/v1/namespaces/default/pods", {
    kind: "Pod",
    metadata: { name: "web" },
    spec: {
      containers: [{ name: "app", image: "app" }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    },
  });
  await create("/apis/storage.k8s.io/v1/volumeattachments", {
    kind: "VolumeAttachment",
    metadata: { name: "csi-left" },
    spec: { attacher: "csi.example.com", nodeName: "node-a", source: { persistentVolumeName: "pv-gone" } },
  });
});

afterAll(async () => {
  await cluster.kill();
  place.remove();
});

async function create(path: string, object: { kind: string; metadata: object; [field: string]: unknown }) {
  const apiVersion = path.startsWith("/api/") ? "v1" : "storage.k8s.io/v1";
  const { status, body } = await cluster.call("POST", path, { apiVersion, ...object });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${JSON.stringify(body)}`);
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
  expect(text.stdout.split("\n")[0]).toBe(
    "Pod default/web waits: StorageClass fast, which claim default/data asks for, does not exist.",
  );
  expect(text.stdout).not.toContain("\u001b");
  expect(JSON.parse(json.stdout)).toMatchObject({
    healthy: false,
    blocker: { reason: "class-missing", waiting: "claim-unbound" },
  });
});

test("get lists volumes and attachments with why they wait; what does not exist is 1", () => {
  const volumes = mooring("get", "volumes", "--kubeconfig", kubeconfig);
  const attachments = mooring("get", "attachments", "-o", "yaml", "--kubeconfig", kubeconfig);
  const missing = mooring("why", "pod/nobody", "--kubeconfig", kubeconfig);

  expect(volumes.code).toBe(0);
  expect(volumes.stdout).toMatch(
    /^POD +CLAIM +VOLUME +NODE +STATE +SINCE +WHY\nweb +data +unbound +\S+ +StorageClass fast/,
  );
  expect(parse(attachments.stdout)).toMatchObject({
    items: [{ name: "csi-left", state: "attaching", reason: "attachment-orphaned-unsure" }],
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

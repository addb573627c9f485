// What people deploy: files in which everything comes at once, as drivers publish them.
import { expect, test } from "vitest";
import type { Suite } from "./kubectl-suite.ts";

const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1" };
const GROUP = "rbac.authorization.k8s.io";

export function deployments({ kubectl, given }: Suite): void {
  test("twenty namespaces with a pod in each apply in one go", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `at-once-${index}`);
    const file = kubectl.file("at-once", ...names.flatMap((name) => [namespace(name), pod(name)]));

    const said = await kubectl.ok("apply", "-f", file);

    expect(said.match(/^pod\/p created$/gm)).toHaveLength(names.length);
  });

  test("a CSI driver with its sidecars applies, and applies again without a change", async () => {
    await given("driver");
    const file = kubectl.file("driver", ...driverManifests("driver"));

    const said = await kubectl.ok("apply", "-f", file);
    expect(said.match(/ created$/gm)).toHaveLength(driverManifests("driver").length);

    const again = await kubectl.ok("apply", "-f", file);
    expect(again.match(/ unchanged$/gm)).toHaveLength(driverManifests("driver").length);
    expect(await kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", file)).not.toContain(
      "error",
    );
  });

  test("an account that its RoleBindings name without a namespace has what they give", async () => {
    await given("bound");
    await kubectl.ok("apply", "-f", kubectl.file("bound", ...driverManifests("bound", "bound.example.io")));
    const as = (namespace: string) => ["--as", `system:serviceaccount:${namespace}:plugin`, "-n", "bound"];

    expect(await kubectl.ok("auth", "can-i", "update", "leases", ...as("bound"))).toBe("yes\n");
    expect(await kubectl.refused("auth", "can-i", "update", "leases", ...as("driver"))).toBe("");
  });
}

function namespace(name: string) {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

function pod(home: string) {
  const spec = { containers: [{ name: "c", image: "example/app:1" }] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: home }, spec };
}

/** The shapes of a published driver: one account, bindings for each sidecar, one StatefulSet with all of them in it. */
function driverManifests(home: string, driver = "driver.example.io") {
  const labels = { "app.kubernetes.io/name": "plugin", "app.kubernetes.io/part-of": driver };
  const metadata = (name: string) => ({ name, namespace: home, labels });
  const leases = {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "update", "create"],
  };
  const volumes = { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "list", "watch"] };
  const sidecars = ["attacher", "provisioner", "resizer", "snapshotter", "health-monitor"];
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata("plugin") },
    ...sidecars.flatMap((sidecar) => [
      { ...RBAC, kind: "Role", metadata: metadata(`${sidecar}-cfg`), rules: [leases] },
      {
        ...RBAC,
        kind: "ClusterRole",
        metadata: { name: `${home}-${sidecar}-runner`, labels },
        rules: [volumes],
      },
      {
        ...RBAC,
        kind: "RoleBinding",
        metadata: metadata(`plugin-${sidecar}`),
        roleRef: { apiGroup: GROUP, kind: "Role", name: `${sidecar}-cfg` },
        // Without a namespace, as they are published: it is the binding's own.
        subjects: [{ kind: "ServiceAccount", name: "plugin" }],
      },
      {
        ...RBAC,
        kind: "ClusterRoleBinding",
        metadata: { name: `${home}-plugin-${sidecar}`, labels },
        roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: `${home}-${sidecar}-runner` },
        subjects: [{ kind: "ServiceAccount", name: "plugin", namespace: home }],
      },
    ]),
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: driver, labels },
      spec: {
        volumeLifecycleModes: ["Persistent", "Ephemeral"],
        podInfoOnMount: true,
        fsGroupPolicy: "File",
      },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: metadata("plugin"),
      spec: { selector: labels, ports: [{ name: "dummy", port: 12_345 }] },
    },
    statefulSet(metadata("plugin"), sidecars),
    {
      apiVersion: "snapshot.storage.k8s.io/v1",
      kind: "VolumeSnapshotClass",
      metadata: { name: `${home}-snapclass`, labels },
      driver,
      deletionPolicy: "Delete",
    },
  ];
}

function statefulSet(metadata: { labels: Record<string, string> }, sidecars: readonly string[]) {
  const socket = { name: "socket-dir", mountPath: "/csi" };
  const hostPath = (name: string, type: string) => ({ name, hostPath: { path: `/var/lib/${name}`, type } });
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata,
    spec: {
      serviceName: "plugin",
      // One pod on each machine: a driver is bound to the disk below it.
      replicas: 1,
      selector: { matchLabels: metadata.labels },
      template: {
        metadata: { labels: metadata.labels },
        spec: {
          serviceAccountName: "plugin",
          containers: [
            {
              name: "plugin",
              image: "example/plugin:v1",
              args: ["--v=5", "--endpoint=$(CSI_ENDPOINT)", "--nodeid=$(KUBE_NODE_NAME)"],
              env: [
                { name: "CSI_ENDPOINT", value: "unix:///csi/csi.sock" },
                {
                  name: "KUBE_NODE_NAME",
                  valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } },
                },
              ],
              securityContext: { privileged: true },
              ports: [{ containerPort: 9_898, name: "healthz", protocol: "TCP" }],
              livenessProbe: {
                failureThreshold: 5,
                httpGet: { path: "/healthz", port: "healthz" },
                initialDelaySeconds: 10,
                timeoutSeconds: 3,
                periodSeconds: 2,
              },
              volumeMounts: [
                socket,
                { name: "pods", mountPath: "/var/lib/kubelet/pods", mountPropagation: "Bidirectional" },
              ],
            },
            ...sidecars.map((name) => ({
              name,
              image: `example/${name}:v1`,
              args: ["-v=5", "--csi-address=/csi/csi.sock"],
              securityContext: { privileged: true },
              volumeMounts: [socket],
            })),
          ],
          volumes: [hostPath("socket-dir", "DirectoryOrCreate"), hostPath("pods", "Directory")],
        },
      },
    },
  };
}

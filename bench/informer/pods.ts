import { chance, pick, type Random } from "../../src/base/random.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import type { Pod } from "../../src/kube/api/pod.ts";
import { managedBy } from "./managed-fields.ts";
import { namespaceOf, nodeName, podIndex, podName } from "./names.ts";
import type { Kind } from "./kind.ts";
import { compile, hex, hole, timeOf, uidOf, type Template } from "./template.ts";

/** Pods as a cluster of web services, workers and databases has them: 6 to 8 kB of JSON each. */
export function createPods({ count, nodes }: { count: number; nodes: number }): Kind {
  const workloads = Array.from({ length: WORKLOADS }, (_, index) => createWorkload(index));
  return {
    path: "/api/v1/pods",
    apiVersion: "v1",
    kind: "Pod",
    count,
    json(index) {
      const workload = workloads[index % WORKLOADS] as Workload;
      return workload.template({
        name: podName(workload.name, index),
        namespace: namespaceOf(index),
        uid: uidOf(index, 1),
        ownerUid: uidOf(index % 5_000, 2),
        version: String(1_000_000_000 + index),
        time: timeOf(index),
        node: nodeName(index % nodes),
        ip: `10.${128 + ((index >> 16) & 63)}.${(index >> 8) & 255}.${index & 255}`,
        hostIp: `10.0.${(index >> 8) & 255}.${index & 255}`,
        containerId: hex(index, 3, 60),
        claim: `data-${workload.name}-${index}`,
      });
    },
    pathOf: (index) =>
      `/api/v1/namespaces/${namespaceOf(index)}/pods/${podName(workloads[index % WORKLOADS]?.name ?? "", index)}`,
    indexOf: podIndex,
  };
}

/** Names of pods, as somebody would know them who has them in a cache. */
export function podRefs(count: number): { namespace: string; name: string }[] {
  const kind = createPods({ count, nodes: 1 });
  return Array.from({ length: count }, (_, index) => {
    const [, , , , namespace = "", , name = ""] = kind.pathOf?.(index).split("/") ?? [];
    return { namespace, name };
  });
}

/** Different pod templates; a real cluster of 50,000 pods has a few hundred, which look much the same. */
const WORKLOADS = 64;

interface Workload {
  readonly name: string;
  readonly template: Template;
}

function createWorkload(index: number): Workload {
  const random = createSeededRandom(`pods/${index}`);
  const app = `${pick(random, ["checkout", "catalog", "search", "billing", "orders", "gateway"])}-${pick(random, ["api", "worker", "db", "web"])}`;
  const hash = hex(index, 4, 10);
  return { name: `${app}-${hash}`, template: compile(createPod(random, app, hash)) };
}

function createPod(random: Random, app: string, hash: string): Pod {
  const stateful = chance(random, 0.5);
  const names = [app, "istio-proxy", ...(chance(random, 0.2) ? ["log-shipper"] : [])];
  const metadata = createMetadata(app, hash);
  const spec = createSpec(random, names, { stateful });
  const status = createStatus(names);
  const { containers, volumes } = spec;
  const { conditions } = status;
  const { annotations, labels, ownerReferences } = metadata;
  return {
    metadata: {
      ...metadata,
      resourceVersion: hole("version"),
      managedFields: [
        managedBy("kube-controller-manager", {
          metadata: { annotations, labels, ownerReferences },
          spec: { containers: containers.map(outline), volumes },
        }),
        managedBy("kubelet", { status: { conditions } }, { subresource: "status" }),
      ],
    },
    spec: { ...spec, nodeName: hole("node") },
    status,
  };
}

/** Of a container the fields that deployments usually set; the rest are defaults, which nobody owns. */
function outline({ name, image, env, resources }: ReturnType<typeof createContainer>) {
  return { name, image, env, resources };
}

function createMetadata(app: string, hash: string) {
  return {
    name: hole("name"),
    generateName: `${app}-${hash}-`,
    namespace: hole("namespace"),
    uid: hole("uid"),
    creationTimestamp: hole("time"),
    labels: {
      "app.kubernetes.io/name": app,
      "app.kubernetes.io/instance": `${app}-production`,
      "pod-template-hash": hash,
      "security.istio.io/tlsMode": "istio",
    },
    annotations: {
      "prometheus.io/scrape": "true",
      "prometheus.io/port": "9090",
      "checksum/config": hex(1, 5, 64),
      "kubectl.kubernetes.io/default-container": app,
      "kubectl.kubernetes.io/restartedAt": "2025-02-28T08:00:00Z",
    },
    ownerReferences: [
      {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: `${app}-${hash}`,
        uid: hole("ownerUid"),
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
}

function createSpec(random: Random, names: readonly string[], { stateful }: { stateful: boolean }) {
  const token = `kube-api-access-${hex(random.int(1_000), 6, 5)}`;
  return {
    containers: names.map((name) => createContainer(random, name, { token, stateful })),
    volumes: [
      ...(stateful ? [{ name: "data", persistentVolumeClaim: { claimName: hole("claim") } }] : []),
      { name: "config", configMap: { name: `${names[0] ?? ""}-config`, defaultMode: 420 } },
      { name: "tmp", emptyDir: {} },
      { name: token, projected: createTokenVolume() },
    ],
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    serviceAccountName: names[0] ?? "",
    serviceAccount: names[0] ?? "",
    securityContext: { runAsUser: 1000, fsGroup: 1000, seccompProfile: { type: "RuntimeDefault" } },
    schedulerName: "default-scheduler",
    tolerations: [
      {
        key: "node.kubernetes.io/not-ready",
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      },
      {
        key: "node.kubernetes.io/unreachable",
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      },
    ],
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: "PreemptLowerPriority",
  };
}

function createTokenVolume() {
  return {
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      {
        downwardAPI: {
          items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
        },
      },
    ],
    defaultMode: 420,
  };
}

function createContainer(random: Random, name: string, options: { token: string; stateful: boolean }) {
  return {
    name,
    image: `registry.example/production/${name}:v4.12.${random.int(40)}`,
    ...(SIDECARS.includes(name) ? createSidecar(options) : createService(random, options)),
    resources: { limits: { memory: "512Mi" }, requests: { cpu: "250m", memory: "512Mi" } },
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: "IfNotPresent",
    securityContext: { capabilities: { drop: ["ALL"] }, allowPrivilegeEscalation: false },
  };
}

const SIDECARS = ["istio-proxy", "log-shipper"];

function createSidecar({ token }: { token: string }) {
  return {
    env: [{ name: "POD_NAME", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } }],
    volumeMounts: [
      { name: token, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true },
    ],
  };
}

function createService(random: Random, { token, stateful }: { token: string; stateful: boolean }) {
  const probe = { httpGet: { path: "/healthz", port: 8080, scheme: "HTTP" }, timeoutSeconds: 1 };
  const variables = ["LOG_LEVEL", "REGION", "DATABASE_HOST", "CACHE_HOST"];
  return {
    env: variables
      .slice(random.int(3))
      .map((name) => ({ name, value: `${name.toLowerCase()}-${random.int(100)}.example.internal` })),
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    livenessProbe: { ...probe, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
    readinessProbe: { ...probe, periodSeconds: 5, successThreshold: 1, failureThreshold: 3 },
    volumeMounts: [
      ...(stateful ? [{ name: "data", mountPath: "/var/lib/data" }] : []),
      { name: "config", mountPath: "/etc/config", readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
      { name: token, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true },
    ],
  };
}

function createStatus(names: readonly string[]) {
  const time = hole("time");
  return {
    phase: "Running",
    conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
      type,
      status: "True",
      lastProbeTime: null as unknown as string,
      lastTransitionTime: time,
    })),
    hostIP: hole("hostIp"),
    hostIPs: [{ ip: hole("hostIp") }],
    podIP: hole("ip"),
    podIPs: [{ ip: hole("ip") }],
    startTime: time,
    containerStatuses: names.map((name, index) => ({
      name,
      state: { running: { startedAt: time } },
      lastState: {},
      ready: true,
      restartCount: 0,
      image: `registry.example/production/${name}:v4.12.0`,
      imageID: `registry.example/production/${name}@sha256:${hex(index, 7, 64)}`,
      containerID: `containerd://${hole("containerId")}${index}000`,
      started: true,
    })),
    qosClass: "Burstable",
  };
}

// What the kubectl suite creates. Each names only what a test looks at.

export function claim(namespace: string, name: string, more: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace, name, ...more },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "manual",
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

export function volume(name: string): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      capacity: { storage: "1024Mi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "manual",
      persistentVolumeReclaimPolicy: "Retain",
      csi: { driver: "disks.example.com", volumeHandle: `handle-${name}`, fsType: "ext4" },
    },
  };
}

export function storageClass(name: string): object {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: "disks.example.com",
    allowVolumeExpansion: true,
  };
}

export function node(name: string): object {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "node-role.kubernetes.io/storage": "" } },
    status: {
      allocatable: { cpu: "2", memory: "4Gi", pods: "110" },
      capacity: { cpu: "2", memory: "4Gi", pods: "110" },
      conditions: [{ type: "Ready", status: "True", reason: "NodeReady" }],
      nodeInfo: nodeInfo({ kubeletVersion: "v1.33.0", operatingSystem: "linux" }),
    },
  };
}

/** Every field is required, and most do not matter here. */
function nodeInfo(known: Record<string, string>): Record<string, string> {
  const fields = [
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
  ];
  return Object.fromEntries(fields.map((field) => [field, known[field] ?? "none"]));
}

/** Two containers, so that a strategic merge has something to leave alone; runs as `runner`. */
export function pod(
  namespace: string,
  name: string,
  { claimName, nodeName }: { claimName?: string; nodeName?: string } = {},
): object {
  const mounted = claimName === undefined ? {} : { volumeMounts: [{ name: "data", mountPath: "/data" }] };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name },
    spec: {
      serviceAccountName: "runner",
      automountServiceAccountToken: false,
      containers: [
        { name: "app", image: "app:1", ...mounted },
        { name: "side", image: "side:1" },
      ],
      ...(claimName === undefined
        ? {}
        : { volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] }),
      ...(nodeName === undefined ? {} : { nodeName }),
    },
  };
}

export function serviceAccount(namespace: string, name: string): object {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace, name } };
}

export function configMap(namespace: string, name: string, data: Record<string, string>): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name }, data };
}

/** About one object; `describe` finds it by the object's uid, `events --for` by its name. */
export function event(
  namespace: string,
  name: string,
  {
    uid,
    reason,
    type,
    message,
  }: { uid: string; reason: string; type: "Normal" | "Warning"; message: string },
): object {
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name: `${name}.${reason.toLowerCase()}` },
    involvedObject: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid },
    reason,
    type,
    message,
    source: { component: "disks" },
    firstTimestamp: "2026-01-01T00:00:00Z",
    lastTimestamp: "2026-01-01T00:00:00Z",
    count: 1,
  };
}

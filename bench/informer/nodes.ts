import type { Node } from "../../src/kube/api/node.ts";
import { managedBy } from "./managed-fields.ts";
import { DRIVER, nodeName, uniqueVolumeName } from "./names.ts";
import type { Kind } from "./kind.ts";
import { compile, hex, hole, timeOf, uidOf } from "./template.ts";

/** Images a kubelet reports (its default limit). */
const IMAGES = 50;

const VOLUMES = 10;

/** Nodes as kubelets report them: about 10 kB of JSON each, half of it images, with ten volumes. */
export function createNodes({ count }: { count: number }): Kind {
  const template = compile(createNode());
  return {
    path: "/api/v1/nodes",
    apiVersion: "v1",
    kind: "Node",
    count,
    json: (index) =>
      template({
        name: nodeName(index),
        uid: uidOf(index, 21),
        version: String(3_000_000_000 + index),
        time: timeOf(index),
        ip: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
        machine: hex(index, 22, 17),
        ...Object.fromEntries(
          Array.from({ length: VOLUMES }, (_, volume) => [
            `volume${volume}`,
            `vol-${hex(index * VOLUMES + volume, 23, 17)}`,
          ]),
        ),
      }),
  };
}

function createNode(): Node {
  const metadata = createMetadata();
  const spec = { providerID: `aws:///eu-central-1a/i-${hole("machine")}` };
  const status = createStatus();
  const { annotations, labels } = metadata;
  const { conditions, volumesInUse } = status;
  return {
    metadata: {
      ...metadata,
      resourceVersion: hole("version"),
      managedFields: [
        managedBy("kubelet", { metadata: { annotations, labels }, spec }),
        managedBy("kubelet", { status: { conditions, volumesInUse } }, { subresource: "status" }),
      ],
    },
    spec,
    status,
  };
}

function createMetadata() {
  return {
    name: hole("name"),
    uid: hole("uid"),
    creationTimestamp: hole("time"),
    labels: {
      "kubernetes.io/hostname": hole("name"),
      "kubernetes.io/arch": "amd64",
      "kubernetes.io/os": "linux",
      "node.kubernetes.io/instance-type": "m6i.2xlarge",
      "topology.kubernetes.io/region": "eu-central-1",
      "topology.kubernetes.io/zone": "eu-central-1a",
      [`topology.${DRIVER}/zone`]: "eu-central-1a",
    },
    annotations: {
      "csi.volume.kubernetes.io/nodeid": `{"${DRIVER}":"i-${hole("machine")}"}`,
      "node.alpha.kubernetes.io/ttl": "0",
      "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    },
  };
}

function createStatus() {
  const resources = { cpu: "8", "ephemeral-storage": "83873772Ki", memory: "32386544Ki", pods: "58" };
  const volumes = Array.from({ length: VOLUMES }, (_, index) => uniqueVolumeName(hole(`volume${index}`)));
  return {
    capacity: resources,
    allocatable: resources,
    conditions: ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({
      type,
      status: type === "Ready" ? "True" : "False",
      lastHeartbeatTime: "2025-03-01T10:20:30Z",
      lastTransitionTime: hole("time"),
      reason: type === "Ready" ? "KubeletReady" : `KubeletHasNo${type}`,
      message: type === "Ready" ? "kubelet is posting ready status" : `kubelet has no ${type}`,
    })),
    addresses: [
      { type: "InternalIP", address: hole("ip") },
      { type: "Hostname", address: hole("name") },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: createNodeInfo(),
    images: Array.from({ length: IMAGES }, (_, index) => ({
      names: [`registry.example/app-${index}@sha256:${hex(index, 24, 64)}`],
      sizeBytes: 100_000_000 + index,
    })),
    volumesInUse: volumes,
    volumesAttached: volumes.map((name) => ({ name, devicePath: "" })),
  };
}

function createNodeInfo() {
  return {
    machineID: hole("machine"),
    systemUUID: hole("uid"),
    bootID: hole("uid"),
    kernelVersion: "6.1.0-aws",
    osImage: "Linux",
    containerRuntimeVersion: "containerd://1.7.22",
    kubeletVersion: "v1.31.2",
    kubeProxyVersion: "v1.31.2",
    operatingSystem: "linux",
    architecture: "amd64",
  };
}

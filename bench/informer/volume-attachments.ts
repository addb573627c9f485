import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { managedBy } from "./managed-fields.ts";
import { DRIVER, nodeName } from "./names.ts";
import type { Kind } from "./kind.ts";
import { compile, hex, hole, timeOf, uidOf } from "./template.ts";

/** VolumeAttachments as the external-attacher leaves them: 1.5 to 2 kB of JSON each, spread over the nodes. */
export function createVolumeAttachments({ count, nodes }: { count: number; nodes: number }): Kind {
  const template = compile(createAttachment());
  return {
    path: "/apis/storage.k8s.io/v1/volumeattachments",
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    count,
    json: (index) =>
      template({
        name: `csi-${hex(index, 11, 64)}`,
        uid: uidOf(index, 12),
        version: String(2_000_000_000 + index),
        time: timeOf(index),
        node: nodeName(index % nodes),
        nodeId: `i-${hex(index % nodes, 13, 17)}`,
        volume: `pvc-${uidOf(index, 14)}`,
      }),
  };
}

function createAttachment(): VolumeAttachment {
  const apiVersion = "storage.k8s.io/v1";
  const spec = {
    attacher: DRIVER,
    source: { persistentVolumeName: hole("volume") },
    nodeName: hole("node"),
  };
  const marks = {
    annotations: { "csi.alpha.kubernetes.io/node-id": hole("nodeId") },
    finalizers: [`external-attacher/${DRIVER.replaceAll(".", "-")}`],
  };
  const status = {
    attached: true,
    attachmentMetadata: { devicePath: "/dev/xvdba", "ebs.csi.aws.com/partition": "" },
  };
  return {
    metadata: {
      name: hole("name"),
      uid: hole("uid"),
      resourceVersion: hole("version"),
      creationTimestamp: hole("time"),
      ...marks,
      managedFields: [
        managedBy("csi-attacher", { metadata: marks }, { apiVersion }),
        managedBy("kube-controller-manager", { spec }, { apiVersion }),
        managedBy("csi-attacher", { status }, { apiVersion, subresource: "status" }),
      ],
    },
    spec,
    status,
  };
}

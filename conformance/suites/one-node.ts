import type { Node } from "../../src/kube/api/node.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import type { Play } from "../harness/cast.ts";
import { mountsBelow } from "../harness/host-leftovers.ts";

/** A kubelet is ready in 5 s on a machine at rest, and goes through its pods every 2 s at the latest. */
const STEP_MS_MAX = 90_000;
const POD = "/api/v1/namespaces/default/pods/web";

type CsiNode = KubeObject & { readonly spec?: { readonly drivers?: readonly { readonly name: string }[] } };

/** The node with the driver on it: registered by its agent, or else as a kubelet would have done it. */
export async function prepareNode(scene: Play): Promise<void> {
  const { api, cast, driver, node, stage } = scene;
  if (cast.node !== "kubelet") await createNode(scene);
  if (cast.node === "ours") scene.startAgent();
  if (cast.node === "absent") return;
  await stage.until("driver in the node's CSINode", STEP_MS_MAX, async () => {
    const { spec } = await api.send<CsiNode>("GET", `/apis/storage.k8s.io/v1/csinodes/${node}`);
    return spec?.drivers?.some(({ name }) => name === driver);
  });
}

async function createNode({ api, cast, driver, node }: Play): Promise<void> {
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  const made = await api.send("POST", "/api/v1/nodes", { metadata: { name: node, annotations } });
  const ready = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };
  await api.send("PATCH", `/api/v1/nodes/${node}/status`, {
    status: { conditions: [ready], capacity: { pods: "10" }, allocatable: { pods: "10" } },
  });
  if (cast.node === "ours") return;
  const owner = { apiVersion: "v1", kind: "Node", name: node, uid: made.metadata.uid };
  await api.send("POST", "/apis/storage.k8s.io/v1/csinodes", {
    metadata: { name: node, ownerReferences: [owner] },
    spec: { drivers: [{ name: driver, nodeID: node, topologyKeys: null }] },
  });
}

/** The kernel has the mount where the pod's containers would look for it, and the node says that it is in use. */
export async function mounted(scene: Play, volume: string): Promise<void> {
  const { api, root, stage } = scene;
  const { metadata } = await api.send("GET", POD);
  const target = `${root}/pods/${metadata.uid ?? ""}/volumes/kubernetes.io~csi/${volume}/mount`;
  await stage.until("mount of the pod's volume", STEP_MS_MAX, async () =>
    (await mountsBelow(root)).includes(target),
  );
  await inUse(scene, 1);
}

/** So many volumes are listed by the node: what keeps a controller from detaching one under its pod. */
export async function inUse({ api, node, stage }: Play, count: number): Promise<void> {
  await stage.until(`${count} in the node's volumesInUse`, STEP_MS_MAX, async () => {
    const { status } = await api.send<Node>("GET", `/api/v1/nodes/${node}`);
    return (status?.volumesInUse ?? []).length === count;
  });
}

/** Pod, mounts and staging are gone. */
export async function unmounted({ api, root, stage }: Play): Promise<void> {
  await stage.until("pod gone", STEP_MS_MAX, async () => (await api.find(POD)) === undefined);
  await stage.until("no mount left of the volume", STEP_MS_MAX, async () => {
    const left = (await mountsBelow(root)).filter((path) => path.includes("csi"));
    if (left.length > 0)
      throw new Error(`still mounted: ${left.map((path) => path.slice(root.length + 1)).join(", ")}`);
    return true;
  });
}

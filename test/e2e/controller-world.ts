// A cluster for `mooring controller`: the embedded API server as a process, and the test as everybody else in it.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Volume } from "kubernetes-types/core/v1.js";
import { parse, parseAllDocuments } from "yaml";
import { silentLogger } from "../../src/base/log.ts";
import { noMetrics } from "../../src/base/metrics.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { events } from "../../src/kube/api/event.ts";
import { leases } from "../../src/kube/api/lease.ts";
import { MANAGED_ATTACH_ANNOTATION, nodes } from "../../src/kube/api/node.ts";
import { persistentVolumeClaims } from "../../src/kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../src/kube/api/persistent-volume.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { volumeAttachments, type VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import type { Client } from "../../src/kube/client/client.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import { createInformer, type Informer } from "../../src/kube/informer/informer.ts";
import type { KubeObject, Resource } from "../../src/kube/object.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";
import { Running } from "./mooring.ts";

export const DRIVER = "loop.example.com";
export const LEASE = { namespace: "kube-system", name: "mooring-attach-detach-controller" };
const FINALIZER = "external-attacher/loop-example-com";
const DEPLOY = resolve(import.meta.dirname, "../../deploy/controller");

const clock = createSystemClock();
const log = silentLogger;

export interface Connection {
  readonly client: Client;
  readonly transport: Transport;
}

export async function connect(kubeconfig: string): Promise<Connection> {
  const access = await loadClusterAccess({ world: createLocalWorld(), clock, log }, { kubeconfig });
  const transport = createHttpTransport(access, { clock });
  const client = createClient({ transport, clock, random: createSystemRandom(), metrics: noMetrics });
  return { client, transport };
}

/** Waits for the cluster to be as it should, told by watches; the test's own limit of time is the only one. */
export class Watched<T extends KubeObject> {
  readonly informer: Informer<T>;

  constructor(client: Client, resource: Resource<T>, signal: AbortSignal) {
    this.informer = createInformer({ client, clock, random: createSystemRandom(), log }, { resource });
    void this.informer.run(signal);
  }

  until<R>(look: (objects: readonly T[]) => R | undefined | false): Promise<R> {
    return new Promise((resolve) => {
      let leave = (): void => undefined;
      const check = () => {
        const found = this.informer.hasSynced() ? look([...this.informer.objects()]) : undefined;
        if (found === undefined || found === false) return;
        leave();
        resolve(found);
      };
      leave = this.informer.addHandler(check);
      void this.informer.whenSynced().then(check);
    });
  }
}

export interface ControllerWorld {
  readonly admin: Connection;
  /** Of the ServiceAccount of deploy/controller: what the manifests grant, and nothing else. */
  readonly kubeconfig: string;
  readonly nodes: Watched<
    KubeObject & { status?: { volumesAttached?: readonly { name: string; devicePath: string }[] } }
  >;
  readonly attachments: Watched<VolumeAttachment>;
  readonly events: Watched<KubeObject & { reason?: string; involvedObject?: { name?: string } }>;
  readonly leases: Watched<KubeObject & { spec?: { holderIdentity?: string } }>;
  /** Kills the API server and starts it again where it was, after `meanwhile`. */
  crashServer(meanwhile: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

async function startServer(dataDir: string, listen: string): Promise<Running> {
  const server = new Running("apiserver", "--data-dir", dataDir, "--listen", listen);
  await server.says(/"message":"serving"/);
  return server;
}

export async function startWorld(dataDir: string): Promise<ControllerWorld> {
  let server = await startServer(dataDir, "127.0.0.1:0");
  const [, address = ""] = await server.says(/"url":"https:\/\/([^"]+)"/);
  const adminFile = join(dataDir, "admin.kubeconfig");
  const admin = await connect(adminFile);
  await applyManifests(admin);
  const kubeconfig = join(dataDir, "controller.kubeconfig");
  writeFileSync(kubeconfig, serviceAccountConfig(readFileSync(adminFile, "utf8"), await requestToken(admin)));
  const watching = new AbortController();
  const watched = <T extends KubeObject>(resource: Resource<T>) =>
    new Watched(admin.client, resource, watching.signal);
  return {
    admin,
    kubeconfig,
    nodes: watched(nodes),
    attachments: watched(volumeAttachments),
    events: watched(events),
    leases: watched(leases),
    async crashServer(meanwhile) {
      server.kill("SIGKILL");
      await server.exit();
      await meanwhile();
      server = await startServer(dataDir, address);
    },
    async stop() {
      watching.abort(new Error("the test is over"));
      await admin.transport.close();
      server.kill("SIGKILL");
      await server.exit();
    },
  };
}

const APPLIED: Readonly<Record<string, Resource>> = {
  ServiceAccount: {
    group: "",
    version: "v1",
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    namespaced: true,
  },
  Role: {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "Role",
    plural: "roles",
    namespaced: true,
  },
  RoleBinding: {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "RoleBinding",
    plural: "rolebindings",
    namespaced: true,
  },
};

async function applyManifests({ client }: Connection): Promise<void> {
  for (const file of ["service-account.yaml", "role.yaml"]) {
    for (const document of parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8"))) {
      const object = document.toJS() as KubeObject;
      const metadata = { ...object.metadata, namespace: LEASE.namespace };
      await client.create(APPLIED[object.kind ?? ""]!, { ...object, metadata });
    }
  }
}

async function requestToken({ transport }: Connection): Promise<string> {
  const answer = await transport.request({
    method: "POST",
    path: `/api/v1/namespaces/${LEASE.namespace}/serviceaccounts/attachdetach-controller/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: 3_600 },
    }),
  });
  return (JSON.parse(answer.body) as { status: { token: string } }).status.token;
}

/** The administrator's cluster, the account's token. */
function serviceAccountConfig(adminConfig: string, token: string): string {
  const { clusters } = parse(adminConfig) as { clusters: readonly { name: string }[] };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters,
    users: [{ name: "controller", user: { token } }],
    contexts: [{ name: "controller", context: { cluster: clusters[0]!.name, user: "controller" } }],
    "current-context": "controller",
  });
}

export const uniqueName = (volume: string) => `kubernetes.io/csi/${DRIVER}^handle-${volume}`;

/** A node whose kubelet leaves attaching to the controller, and is ready. */
export async function givenNode({ admin: { client } }: ControllerWorld, name: string): Promise<void> {
  await client.create(nodes, { metadata: { name, annotations: { [MANAGED_ATTACH_ANNOTATION]: "true" } } });
  await client.patch(
    nodes,
    { name },
    { type: "merge", value: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
    { subresource: "status" },
  );
}

/** What the kubelet reports as mounted. */
export async function useVolumes(
  world: ControllerWorld,
  node: string,
  volumes: readonly string[],
): Promise<void> {
  const value = { status: { volumesInUse: volumes.map(uniqueName) } };
  await world.admin.client.patch(nodes, { name: node }, { type: "merge", value }, { subresource: "status" });
}

/** A volume, its claim bound to it, both named alike. */
export async function givenVolume({ admin: { client } }: ControllerWorld, name: string): Promise<void> {
  const capacity = { storage: "1Gi" };
  const claim = await client.create(persistentVolumeClaims, {
    metadata: { namespace: "default", name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      volumeName: name,
      storageClassName: "",
      resources: { requests: capacity },
    },
  });
  const { uid = "" } = claim.metadata;
  await client.create(persistentVolumes, {
    metadata: { name },
    spec: {
      capacity,
      accessModes: ["ReadWriteOnce"],
      csi: { driver: DRIVER, volumeHandle: `handle-${name}` },
      claimRef: { kind: "PersistentVolumeClaim", namespace: "default", name, uid },
      storageClassName: "",
    },
  });
  await client.patch(
    persistentVolumeClaims,
    { namespace: "default", name },
    { type: "merge", value: { status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity } } },
    { subresource: "status" },
  );
}

/** A pod on a node that uses the claim of the same name, or another volume. */
export async function givenPod(
  { admin: { client } }: ControllerWorld,
  name: string,
  node: string,
  volume: Omit<Volume, "name"> = { persistentVolumeClaim: { claimName: name } },
): Promise<void> {
  await client.create(pods, {
    metadata: { namespace: "default", name },
    spec: {
      nodeName: node,
      containers: [{ name: "main", image: "none", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", ...volume }],
    },
  });
}

export async function deletePod({ admin: { client } }: ControllerWorld, name: string): Promise<void> {
  await client.delete(pods, { namespace: "default", name }, { gracePeriodSeconds: 0 });
}

/** The VolumeAttachment of a volume, once there is one. */
export function attachmentOf({ attachments }: ControllerWorld, volume: string): Promise<VolumeAttachment> {
  return attachments.until((all) => all.find(({ spec }) => spec.source.persistentVolumeName === volume));
}

/** What an external-attacher does: a finalizer first, then the driver's answer. */
export async function attach(
  { admin: { client } }: ControllerWorld,
  { metadata }: VolumeAttachment,
): Promise<void> {
  const ref = { name: metadata.name ?? "" };
  await client.patch(volumeAttachments, ref, {
    type: "merge",
    value: { metadata: { finalizers: [FINALIZER] } },
  });
  await client.patch(
    volumeAttachments,
    ref,
    { type: "merge", value: { status: { attached: true } } },
    { subresource: "status" },
  );
}

/** Waits for the deletion, and lets the driver's part of it be done. */
export async function detach(world: ControllerWorld, volume: string): Promise<VolumeAttachment> {
  const deleted = await world.attachments.until((all) =>
    all.find(
      ({ spec, metadata }) => spec.source.persistentVolumeName === volume && metadata.deletionTimestamp,
    ),
  );
  await world.admin.client.patch(
    volumeAttachments,
    { name: deleted.metadata.name ?? "" },
    { type: "merge", value: { metadata: { finalizers: null } } },
  );
  await world.attachments.until((all) => all.every(({ metadata }) => metadata.uid !== deleted.metadata.uid));
  return deleted;
}

/** Whether the node lists the volume as attached. */
export function lists(
  { nodes }: ControllerWorld,
  node: string,
  volume: string,
  listed: boolean,
): Promise<true> {
  return nodes.until((all) => {
    const attached = all.find(({ metadata }) => metadata.name === node)?.status?.volumesAttached ?? [];
    return attached.some(({ name }) => name === uniqueName(volume)) === listed || undefined;
  });
}

export function eventFor({ events }: ControllerWorld, pod: string, reason: string) {
  return events.until((all) =>
    all.find((event) => event.involvedObject?.name === pod && event.reason === reason),
  );
}

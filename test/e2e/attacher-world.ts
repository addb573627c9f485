// What `mooring attacher` needs around it: an account with the rights of deploy/attacher, and a driver on a socket.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  PluginCapability_Service_Type as Service,
  type ControllerPublishVolumeRequest,
  type ControllerUnpublishVolumeRequest,
} from "../../src/csi/gen/csi_pb.ts";
import { CsiError } from "../../src/csi/errors.ts";
import { serve } from "../../src/csi/methods.ts";
import { createCsiServer, type CsiServer } from "../../src/csi/server.ts";
import type { KubeObject, Resource } from "../../src/kube/object.ts";
import { DRIVER, type Connection } from "./controller-world.ts";

const DEPLOY = resolve(import.meta.dirname, "../../deploy/attacher");
const NAMESPACE = "kube-system";

const resource = (group: string, kind: string, plural: string, namespaced = false): Resource => ({
  group,
  version: "v1",
  kind,
  plural,
  namespaced,
});

const RBAC = "rbac.authorization.k8s.io";
const APPLIED: Readonly<Record<string, Resource>> = {
  ServiceAccount: resource("", "ServiceAccount", "serviceaccounts", true),
  Role: resource(RBAC, "Role", "roles", true),
  RoleBinding: resource(RBAC, "RoleBinding", "rolebindings", true),
  ClusterRole: resource(RBAC, "ClusterRole", "clusterroles"),
  ClusterRoleBinding: resource(RBAC, "ClusterRoleBinding", "clusterrolebindings"),
};

/** Applies deploy/attacher and writes a kubeconfig of its account: what the manifests grant, and nothing else. */
export async function attacherKubeconfig(
  { client, transport }: Connection,
  dataDir: string,
): Promise<string> {
  for (const file of ["service-account.yaml", "cluster-role.yaml", "role.yaml"]) {
    for (const document of parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8"))) {
      const object = document.toJS() as KubeObject;
      const kind = APPLIED[object.kind ?? ""]!;
      const metadata = kind.namespaced ? { ...object.metadata, namespace: NAMESPACE } : object.metadata;
      await client.create(kind, { ...object, metadata });
    }
  }
  const answer = await transport.request({
    method: "POST",
    path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/csi-controller/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
  });
  const { status } = JSON.parse(answer.body) as { status: { token: string } };
  const { clusters } = parse(readFileSync(join(dataDir, "admin.kubeconfig"), "utf8")) as {
    clusters: readonly { name: string }[];
  };
  const file = join(dataDir, "attacher.kubeconfig");
  const context = { cluster: clusters[0]!.name, user: "attacher" };
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters,
      users: [{ name: "attacher", user: { token: status.token } }],
      contexts: [{ name: "attacher", context }],
      "current-context": "attacher",
    }),
  );
  return file;
}

/** Lets the account read secrets of one namespace, as the guide says for drivers that need them. */
export async function grantSecrets({ client }: Connection, namespace: string): Promise<void> {
  await client.create(APPLIED["RoleBinding"]!, {
    metadata: { name: "mooring-attacher-secrets", namespace },
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "mooring-attacher-secrets" },
    subjects: [{ kind: "ServiceAccount", name: "csi-controller", namespace: NAMESPACE }],
  } as KubeObject);
}

/** A driver on a unix socket that remembers what is where. */
export class SocketDriver {
  ready = true;
  readonly published = new Map<string, string>();
  readonly publishes: ControllerPublishVolumeRequest[] = [];
  readonly unpublishes: ControllerUnpublishVolumeRequest[] = [];
  /** Publishes are answered once this has resolved. */
  answering: Promise<void> = Promise.resolve();
  readonly #server: CsiServer;

  constructor(socketPath: string, name = DRIVER) {
    this.#server = createCsiServer(
      { clock: createSystemClock(), log: silentLogger },
      {
        socketPath,
        served: [...serve(Identity, this.#identity(name)), ...serve(Controller, this.#controller())],
      },
    );
  }

  start(): Promise<void> {
    return this.#server.start();
  }

  async stop(): Promise<void> {
    await this.#server.stop({ graceMs: 0 });
  }

  #identity(name: string) {
    return {
      probe: async () => ({ ready: this.ready }),
      getPluginInfo: async () => ({ name, vendorVersion: "1" }),
      getPluginCapabilities: async () => ({
        capabilities: [{ type: { case: "service" as const, value: { type: Service.CONTROLLER_SERVICE } } }],
      }),
    };
  }

  #controller() {
    return {
      controllerGetCapabilities: async () => ({
        capabilities: [{ type: { case: "rpc" as const, value: { type: Rpc.PUBLISH_UNPUBLISH_VOLUME } } }],
      }),
      controllerPublishVolume: async (request: ControllerPublishVolumeRequest) => {
        this.publishes.push(request);
        await this.answering;
        const password = request.secrets["password"];
        if (password === "wrong horse") throw new CsiError("UNAUTHENTICATED", `no such user: ${password}`);
        this.published.set(request.volumeId, request.nodeId);
        return { publishContext: { devicePath: "/dev/loop7" } };
      },
      controllerUnpublishVolume: async (request: ControllerUnpublishVolumeRequest) => {
        this.unpublishes.push(request);
        this.published.delete(request.volumeId);
        return {};
      },
    };
  }
}

// What `mooring attacher` needs around it: an account with the rights of deploy/attacher, and a driver on a socket.
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
import type { KubeObject } from "../../src/kube/object.ts";
import { accountKubeconfig, roleBindings } from "./account.ts";
import { DRIVER, type Connection } from "./controller-world.ts";

const NAMESPACE = "kube-system";
const RBAC = "rbac.authorization.k8s.io";

/** What deploy/attacher grants, and nothing else. */
export function attacherKubeconfig(connection: Connection, dataDir: string): Promise<string> {
  return accountKubeconfig(connection, dataDir, {
    folder: "attacher",
    files: ["service-account.yaml", "cluster-role.yaml", "role.yaml"],
    serviceAccount: "csi-controller",
  });
}

/** Lets the account read secrets of one namespace, as the guide says for drivers that need them. */
export async function grantSecrets({ client }: Connection, namespace: string): Promise<void> {
  await client.create(roleBindings, {
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

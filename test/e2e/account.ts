// What a manifest grants, and nothing else: the account of a process, with a kubeconfig to be it.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import type { KubeObject, Resource } from "../../src/kube/object.ts";
import type { Connection } from "./controller-world.ts";

const NAMESPACE = "kube-system";
const RBAC = "rbac.authorization.k8s.io";

const resource = (group: string, kind: string, plural: string, namespaced = false): Resource => ({
  group,
  version: "v1",
  kind,
  plural,
  namespaced,
});

export const roleBindings = resource(RBAC, "RoleBinding", "rolebindings", true);

const APPLIED: Readonly<Record<string, Resource>> = {
  ServiceAccount: resource("", "ServiceAccount", "serviceaccounts", true),
  Role: resource(RBAC, "Role", "roles", true),
  RoleBinding: roleBindings,
  ClusterRole: resource(RBAC, "ClusterRole", "clusterroles"),
  ClusterRoleBinding: resource(RBAC, "ClusterRoleBinding", "clusterrolebindings"),
};

export interface Account {
  /** Below deploy/. */
  readonly folder: string;
  readonly files: readonly string[];
  readonly serviceAccount: string;
}

/** Applies the manifests of an account and writes a kubeconfig for it into `dataDir`; answers where. */
export async function accountKubeconfig(
  { client, transport }: Connection,
  dataDir: string,
  { folder, files, serviceAccount }: Account,
): Promise<string> {
  for (const file of files) {
    const text = readFileSync(resolve(import.meta.dirname, "../../deploy", folder, file), "utf8");
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as KubeObject;
      const kind = APPLIED[object.kind ?? ""]!;
      const metadata = kind.namespaced ? { ...object.metadata, namespace: NAMESPACE } : object.metadata;
      await client.create(kind, { ...object, metadata });
    }
  }
  const answer = await transport.request({
    method: "POST",
    path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${serviceAccount}/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
  });
  const { status } = JSON.parse(answer.body) as { status: { token: string } };
  const { clusters } = parse(readFileSync(join(dataDir, "admin.kubeconfig"), "utf8")) as {
    clusters: readonly { name: string }[];
  };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters,
    users: [{ name: folder, user: { token: status.token } }],
    contexts: [{ name: folder, context: { cluster: clusters[0]!.name, user: folder } }],
    "current-context": folder,
  };
  const file = join(dataDir, `${folder}.kubeconfig`);
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

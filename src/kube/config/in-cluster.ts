import { anonymous, type ClusterAccess } from "../transport/access.ts";
import { cannotRead, certificateProblem } from "./pem.ts";
import { Problems } from "./problems.ts";
import { createTokenFileCredentials, UnusableToken, type UserDeps } from "./user.ts";
import type { ConfigWorld } from "./world.ts";

/** Where the kubelet mounts a pod's service account. */
const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";
const BYTES_MAX = 1024 * 1024;

export function isInCluster(world: ConfigWorld): boolean {
  return Boolean(world.env["KUBERNETES_SERVICE_HOST"]) && Boolean(world.env["KUBERNETES_SERVICE_PORT"]);
}

/** The access of a pod: its service account at the `kubernetes` service. */
export async function inClusterAccess(deps: UserDeps): Promise<ClusterAccess> {
  const { world } = deps;
  const problems = new Problems();
  const tokenFile = `${SERVICE_ACCOUNT_DIR}/token`;
  const credentials = await createTokenFileCredentials(deps, tokenFile).catch((error: unknown) => {
    const problem = error instanceof UnusableToken ? error.message : cannotRead(tokenFile, error);
    problems.add(
      { file: tokenFile },
      `${problem}; a pod gets it unless automountServiceAccountToken is false`,
    );
    return anonymous;
  });
  const ca = await readCa(deps, problems);
  const namespace = await readOptional(world, `${SERVICE_ACCOUNT_DIR}/namespace`);
  problems.throwIfAny();
  return {
    server: serviceUrl(world),
    tls: ca === undefined ? {} : { ca },
    ...(namespace === undefined ? {} : { namespace: namespace.trim() }),
    credentials,
    impersonation: {},
  };
}

function serviceUrl({ env }: ConfigWorld): string {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "";
  return new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`).origin;
}

async function readCa({ world, log }: UserDeps, problems: Problems): Promise<string | undefined> {
  const file = `${SERVICE_ACCOUNT_DIR}/ca.crt`;
  const ca = await readOptional(world, file);
  // As client-go: an API server with a public certificate needs no CA of its own.
  if (ca === undefined) log.warn("no CA for the cluster; trusting the system's roots", { file });
  const problem = ca === undefined ? undefined : certificateProblem(ca);
  if (problem !== undefined) problems.add({ file }, problem);
  return ca;
}

async function readOptional(world: ConfigWorld, path: string): Promise<string | undefined> {
  return world.readFile(path, { maxBytes: BYTES_MAX }).catch(() => undefined);
}

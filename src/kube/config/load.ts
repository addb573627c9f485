import { assert } from "../../base/assert.ts";
import { silentLogger, type Logger } from "../../base/log.ts";
import type { Clock } from "../../base/clock.ts";
import { anonymous, type ClusterAccess } from "../transport/access.ts";
import { KubeError } from "../errors.ts";
import { CLUSTER_FIELDS, readCluster } from "./cluster.ts";
import { environmentProxy } from "./environment-proxy.ts";
import type { Fields } from "./fields.ts";
import { findKubeconfigs } from "./find.ts";
import { readImpersonation } from "./impersonation.ts";
import { inClusterAccess, isInCluster } from "./in-cluster.ts";
import { mergeKubeconfigs, parseKubeconfig } from "./parse.ts";
import { Problems } from "./problems.ts";
import { emptyFields, selectContext, type Selection } from "./select.ts";
import { hasClientCertificate, readUser, USER_FIELDS, type UserDeps } from "./user.ts";
import type { ConfigWorld } from "./world.ts";

export interface LoadOptions {
  /** The only file to read; it must exist. */
  readonly kubeconfig?: string | undefined;
  /** Instead of the file's current-context. */
  readonly context?: string | undefined;
  /** Instead of the cluster's address; without any kubeconfig it is enough by itself. */
  readonly server?: string | undefined;
  /** Instead of the context's. */
  readonly namespace?: string | undefined;
}

/**
 * How to reach the cluster that this process was told to use: the kubeconfig that kubectl would use, else the
 * service account of the pod we run in. Rejects with BadConfig, which lists everything that is wrong at once, each
 * with its file and field.
 *
 * Where kubectl is lenient this is too (missing files in KUBECONFIG, `host:port` without a scheme, a context
 * without a user), and where client-go protects its user this does (credentials are not sent over plain http).
 */
export async function loadClusterAccess(
  { world, clock, log = silentLogger }: { world: ConfigWorld; clock: Clock; log?: Logger },
  options: LoadOptions = {},
): Promise<ClusterAccess> {
  const deps = { world, clock, log };
  const problems = new Problems();
  const { texts, looked } = await findKubeconfigs(world, options.kubeconfig, problems);
  const config = mergeKubeconfigs(texts.map(({ file, text }) => parseKubeconfig(file, text, problems)));
  problems.throwIfAny();
  const isEmpty = config.clusters.size + config.users.size + config.contexts.size === 0;
  if (isEmpty && options.server === undefined) return accessWithoutKubeconfig(deps, options, looked);
  const selection = isEmpty
    ? { cluster: emptyFields("no kubeconfig", problems), user: emptyFields("no kubeconfig", problems) }
    : selectContext(config, { context: options.context, files: texts.map(({ file }) => file) }, problems);
  problems.throwIfAny();
  assert(selection !== undefined, "no context selected and no problem found");
  return contextAccess(deps, selection, options, problems);
}

async function accessWithoutKubeconfig(
  deps: UserDeps,
  options: LoadOptions,
  looked: readonly string[],
): Promise<ClusterAccess> {
  if (options.kubeconfig !== undefined) {
    throw new KubeError(
      "BadConfig",
      `${options.kubeconfig}: has no clusters, users or contexts; is it the right file?`,
    );
  }
  if (!isInCluster(deps.world)) throw nothingFound(looked);
  const access = await inClusterAccess(deps);
  return withDefined(access, {
    proxyUrl: environmentProxy(deps.world.env, access.server),
    namespace: options.namespace ?? access.namespace,
  });
}

async function contextAccess(
  deps: UserDeps,
  { cluster, user, namespace }: Selection,
  options: LoadOptions,
  problems: Problems,
): Promise<ClusterAccess> {
  warnOfUnknownFields(deps.log, cluster, CLUSTER_FIELDS);
  warnOfUnknownFields(deps.log, user, USER_FIELDS);
  const userHasCertificate = hasClientCertificate(user);
  const target = await readCluster(deps.world, cluster, { server: options.server, userHasCertificate });
  // With a server that cannot be used the user is read all the same: one run should show every problem.
  const credentials = await readUser(deps, user, target ?? { server: "", tls: {} });
  const impersonation = readImpersonation(user);
  problems.throwIfAny();
  assert(target !== undefined, "no server and no problem found");
  const isPlain = target.server.startsWith("http:");
  if (isPlain && credentials !== anonymous) {
    deps.log.warn("credentials are not sent over plain http", { ...cluster.at("server") });
  }
  const access = {
    server: target.server,
    tls: target.tls,
    credentials: isPlain ? anonymous : credentials,
    impersonation,
  };
  return withDefined(access, { proxyUrl: target.proxyUrl, namespace: options.namespace ?? namespace });
}

function withDefined(
  access: ClusterAccess,
  { proxyUrl, namespace }: { proxyUrl: string | undefined; namespace: string | undefined },
): ClusterAccess {
  return {
    ...access,
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

/** kubectl ignores a misspelt field without a word; a warning finds `certificate-authority-dat` sooner. */
function warnOfUnknownFields(log: Logger, fields: Fields, known: readonly string[]): void {
  for (const name of fields.names().filter((name) => !known.includes(name))) {
    log.warn("unknown field in kubeconfig is ignored", { ...fields.at(name) });
  }
}

function nothingFound(looked: readonly string[]): KubeError {
  const places = [...looked, "a pod's environment (KUBERNETES_SERVICE_HOST is not set)"].join(", ");
  return new KubeError(
    "BadConfig",
    `no cluster to talk to: looked at ${places}; give --kubeconfig FILE or set KUBECONFIG`,
  );
}

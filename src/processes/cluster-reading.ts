import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { silentLogger } from "../base/log.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import { loadClusterAccess } from "../kube/config/load.ts";
import { systemCode, type ConfigWorld } from "../kube/config/world.ts";
import type { KubeError } from "../kube/errors.ts";
import { createHttpTransport } from "../kube/transport/http-transport.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { ProcessError } from "./errors.ts";
import { createFirstContact } from "./first-contact.ts";
import { createLocalWorld } from "./local-world.ts";
import { productVersion } from "./product.ts";

/** A cluster that a person asks about: nothing is ever written to it. */
export interface ReadableCluster {
  readonly client: Pick<Client, "get" | "list" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
  /** Of the kubeconfig's context. */
  readonly namespace: string;
  readonly server: string;
  close(): Promise<void>;
}

/** What `mooring up` writes in the directory it is started in. */
const LOCAL_KUBECONFIG = ".mooring/admin.kubeconfig";

export async function openForReading(
  kubeconfig: string | undefined,
  context?: string,
  answerMs?: number,
): Promise<ReadableCluster> {
  const [clock, random, world] = [createSystemClock(), createSystemRandom(), createLocalWorld()];
  const file = kubeconfig ?? (await localKubeconfig(world));
  const access = await loadClusterAccess(
    { world, clock, log: silentLogger },
    file === undefined ? { context } : { kubeconfig: file, context },
  );
  const inner = createHttpTransport(access, { clock, userAgent: `mooring/${productVersion()} (cli)` });
  const transport = createFirstContact(
    { inner, clock },
    (error) => unreachable(access.server, sourceOf(world, file), error),
    answerMs === undefined ? {} : { answerMs },
  );
  const client = createClient({ transport, clock, random }, { fieldManager: "mooring-cli" });
  return {
    client,
    clock,
    random,
    namespace: access.namespace ?? "default",
    server: access.server,
    close: () => transport.close(),
  };
}

function unreachable(server: string, source: string, error: KubeError): ProcessError {
  return new ProcessError(
    "NotWorking",
    `cannot read the cluster at ${server}, which ${source} names: ${error.detail}; ` +
      "if it is the cluster of `mooring up`, start that; another one is meant with --kubeconfig FILE",
    { cause: error },
  );
}

/** Where the address came from, in words. */
function sourceOf({ env, homeDir }: ConfigWorld, file: string | undefined): string {
  if (file !== undefined) return file;
  const listed = env["KUBECONFIG"] ?? "";
  return listed === "" ? `${homeDir}/.kube/config or the environment of this pod` : `KUBECONFIG (${listed})`;
}

/**
 * KUBECONFIG and ~/.kube/config come first, as for kubectl; the cluster of `mooring up` in this directory is meant
 * where neither is there.
 */
export async function localKubeconfig(world: ConfigWorld): Promise<string | undefined> {
  if ((world.env["KUBECONFIG"] ?? "") !== "") return undefined;
  if (world.homeDir !== "" && (await exists(world, `${world.homeDir}/.kube/config`))) return undefined;
  return (await exists(world, LOCAL_KUBECONFIG)) ? LOCAL_KUBECONFIG : undefined;
}

async function exists(world: ConfigWorld, path: string): Promise<boolean> {
  try {
    await world.readFile(path, { maxBytes: 1 << 20 });
    return true;
  } catch (error) {
    return systemCode(error) !== "ENOENT" && systemCode(error) !== "ENOTDIR";
  }
}

import { silentLogger, type Logger } from "../../base/log.ts";
import type { Clock } from "../../base/clock.ts";
import type { ClusterAccess } from "../transport/access.ts";
import { createFileCredentials } from "./file-credentials.ts";
import { loadClusterAccess } from "./load.ts";
import type { ConfigWorld } from "./world.ts";

/**
 * As `loadClusterAccess`, for a kubeconfig with certificates inside that somebody rewrites while we run: the embedded
 * server does so when it renews them. It is read again as files with credentials are, once a minute and at once when
 * the server rejects what it held, and gives both the client's certificate and the authorities to trust.
 */
export async function loadChangingAccess(
  { world, clock, log = silentLogger }: { world: ConfigWorld; clock: Clock; log?: Logger },
  kubeconfig: string,
): Promise<ClusterAccess> {
  const load = () => loadClusterAccess({ world, clock, log }, { kubeconfig });
  let latest = await load();
  const credentials = createFileCredentials(
    { clock, log },
    {
      files: [kubeconfig],
      initial: await latest.credentials.current(),
      async read() {
        latest = await load();
        return latest.credentials.current();
      },
    },
  );
  return {
    ...latest,
    get tls() {
      return latest.tls;
    },
    credentials,
  };
}

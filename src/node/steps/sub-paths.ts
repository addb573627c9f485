import { join } from "node:path";
import type { Context } from "../context.ts";
import { HostError } from "../host.ts";

/** Binds of parts of a volume, by container and index: unmounted and removed, with the empty directories around them. */
export async function cleanSubPaths(
  { host, paths }: Pick<Context, "host" | "paths">,
  { podUid, specName }: { readonly podUid: string; readonly specName: string },
): Promise<void> {
  const directory = paths.podSubPaths(podUid, specName);
  const containers = await host.files.list(directory);
  if (containers === undefined) return;
  for (const container of containers) {
    if (container.kind !== "directory") continue;
    const path = join(directory, container.name);
    for (const entry of (await host.files.list(path)) ?? [])
      await host.mounts.cleanUp(join(path, entry.name));
    await host.files.removeDirectory(path);
  }
  await host.files.removeDirectory(directory);
  await host.files.removeDirectory(paths.podSubPaths(podUid)).catch((error: unknown) => {
    // Other volumes of the pod have parts there too.
    if (!(error instanceof HostError && error.code === "NotEmpty")) throw error;
  });
}

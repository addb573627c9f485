import { join } from "node:path";
import { KUBECONFIG_BYTES_MAX } from "./parse.ts";
import { cannotRead } from "./pem.ts";
import type { Problems } from "./problems.ts";
import { systemCode, type ConfigWorld } from "./world.ts";

interface KubeconfigText {
  readonly file: string;
  readonly text: string;
}

interface FoundKubeconfigs {
  readonly texts: readonly KubeconfigText[];
  /** Where was looked, in words, for the message when nothing was there. */
  readonly looked: readonly string[];
}

/**
 * The order of kubectl: an explicit file; else the files of KUBECONFIG; else ~/.kube/config. Only an explicit file
 * has to exist; any file that exists has to be readable.
 */
export async function findKubeconfigs(
  world: ConfigWorld,
  explicit: string | undefined,
  problems: Problems,
): Promise<FoundKubeconfigs> {
  const { paths, looked } = candidates(world, explicit);
  const texts: KubeconfigText[] = [];
  for (const file of paths) {
    try {
      texts.push({ file, text: await world.readFile(file, { maxBytes: KUBECONFIG_BYTES_MAX }) });
    } catch (error) {
      const mayBeMissing = explicit === undefined && systemCode(error) === "ENOENT";
      if (!mayBeMissing) problems.add({ file }, cannotRead(file, error));
    }
  }
  return { texts, looked };
}

function candidates(
  world: ConfigWorld,
  explicit: string | undefined,
): { paths: readonly string[]; looked: string[] } {
  if (explicit !== undefined) return { paths: [explicit], looked: [explicit] };
  const listed = (world.env["KUBECONFIG"] ?? "").split(":").filter((path) => path !== "");
  if (listed.length > 0) {
    const paths = [...new Set(listed)];
    return { paths, looked: paths.map((path) => `${path} (from KUBECONFIG)`) };
  }
  if (world.homeDir === "") return { paths: [], looked: ["KUBECONFIG (not set)"] };
  const home = join(world.homeDir, ".kube", "config");
  return { paths: [home], looked: ["KUBECONFIG (not set)", home] };
}

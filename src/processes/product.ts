import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { KUBERNETES_VERSION } from "../apiserver/version.ts";

/** What this program is, for `mooring version`. */
export function productInfo(): { version: string; kubernetesApi: string; node: string } {
  const { major, minor } = KUBERNETES_VERSION;
  return { version: productVersion(), kubernetesApi: `${major}.${minor}`, node: process.versions.node };
}

/** From the package this file belongs to, be it a checkout or an installed one. */
export function productVersion(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) return "unknown";
    folder = parent;
  }
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  return version;
}

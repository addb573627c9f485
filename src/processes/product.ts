import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { KUBERNETES_VERSION } from "../apiserver/version.ts";

/** What this program is, for `mooring version`. */
export function productInfo(): { version: string; kubernetesApi: string; node: string } {
  const { major, minor } = KUBERNETES_VERSION;
  return { version: productVersion(), kubernetesApi: `${major}.${minor}`, node: process.versions.node };
}

export function productVersion(): string {
  const folder = packageFolder();
  if (folder === undefined) return "unknown";
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  return version;
}

/** A file of `examples/`, which come with the program. */
export function exampleFile(name: string): string {
  return join(packageFolder() ?? ".", "examples", name);
}

/** Of the package this file belongs to, be it a checkout or an installed one. */
function packageFolder(): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  return folder;
}

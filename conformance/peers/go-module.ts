import type { Pin } from "./pins.ts";

/**
 * The go.mod to build a program with exactly the versions it was released with: its own, under another name. Folders
 * beside the source are not in what the registry hands out, so what is replaced by one becomes a module again:
 *
 * - Kubernetes keeps its libraries in `staging`; v1.36.3 of it is v0.36.3 of each of them;
 * - etcd requires its neighbours by version too, so there it is enough to drop the line.
 */
export function moduleText({ version }: Pick<Pin, "version">, original: string): string {
  return original
    .replace(/^module .*$/m, "module peers")
    .replace(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${version.replace(/^v1\./, "v0.")}`)
    .replace(/^.*=> \.\.\/.*\n/gm, "");
}

import { dirname, isAbsolute, join } from "node:path";
import type { Fields } from "./fields.ts";

/** The path in a field, from the folder of its kubeconfig; undefined if there is none, or a problem was added. */
export function readPath(fields: Fields, name: string): string | undefined {
  const written = fields.string(name);
  if (written === undefined) return undefined;
  if (/[\n\0]|-----BEGIN/.test(written)) {
    fields.complain(
      name,
      "is the path of a file, but holds what looks like its content; save that and name the file",
    );
    return undefined;
  }
  return relativeTo(fields.place.file, written);
}

function relativeTo(kubeconfig: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(kubeconfig), path);
}

/**
 * A command with a slash is a path from the kubeconfig's folder; without, a name to look up in PATH. Joining can
 * lose the slash (`./plugin` from `./config` is `plugin`), and with it the meaning.
 */
export function commandRelativeTo(kubeconfig: string, command: string): string {
  if (!command.includes("/")) return command;
  const path = relativeTo(kubeconfig, command);
  return path.includes("/") ? path : `./${path}`;
}

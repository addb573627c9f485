import { HostError } from "../host.ts";
import type { Inode, Mounted, Tree } from "./tree.ts";

/** Puts a part of one filesystem at a second path: the primitive of bind mounts. */
export function bindIn(tree: Tree, source: string, target: string, options: readonly string[]): void {
  const from = tree.walk(source, { follow: true });
  if (from?.inode === undefined) throw new HostError("NotFound", `bind ${source} to ${target}: ENOENT`);
  const { mount, inode, path } = from;
  const below = path === mount.path ? "" : path.slice(mount.path === "/" ? 0 : mount.path.length);
  putMount(tree, target, inode, {
    filesystem: mount.filesystem,
    root: inode,
    rootPath: `${mount.rootPath === "/" ? "" : mount.rootPath}${below}` || "/",
    source: mount.source,
    options: withOptions(mount.options, options),
    shared: mount.shared,
  });
}

export function putMount(
  tree: Tree,
  target: string,
  root: Inode,
  mounted: Omit<Mounted, "path" | "users">,
): void {
  const place = tree.walk(target, { follow: true });
  if (place?.inode === undefined) throw new HostError("NotFound", `mount on ${target}: ENOENT`);
  if ((place.inode.kind === "directory") !== (root.kind === "directory"))
    throw new HostError(
      "Failed",
      `mount on ${target}: a directory only on a directory, a file only on a file`,
    );
  tree.addMount({ ...mounted, path: place.path, users: 0 });
}

const NO_OPTIONS = new Set(["defaults", "bind", "rbind", "remount", "_netdev", ""]);

/** `ro` replaces `rw`, `size=2` replaces `size=1`; the rest is added. */
export function withOptions(before: readonly string[], more: readonly string[]): readonly string[] {
  const key = (option: string) => (option === "ro" || option === "rw" ? "access" : option.split("=")[0]);
  const news = more.filter((option) => !NO_OPTIONS.has(option));
  const replaced = new Set(news.map(key));
  const kept = before.filter((option) => !replaced.has(key(option)));
  const all = [...new Set([...kept, ...news])];
  const access = all.includes("ro") ? "ro" : "rw";
  return [access, ...all.filter((option) => option !== "ro" && option !== "rw")];
}

import { HostError, type BindSubPath } from "../host.ts";
import { createSubPathWalk } from "../sub-path.ts";
import { bindIn } from "./binds.ts";
import type { Inode, Place, Tree } from "./tree.ts";

type Found = Place & { readonly inode: Inode };

export function bindSubPathIn(tree: Tree, { root, subPath, target, readOnly }: BindSubPath): void {
  const source = openIn(tree, root, subPath);
  const before = tree.walk(target, { follow: true });
  const mounted = before === undefined ? undefined : tree.topAt(before.path);
  if (before !== undefined && mounted !== undefined) {
    if (mounted.root === source.inode && !tree.isBroken(before.path)) return;
    tree.removeMount(mounted);
    tree.broken.delete(before.path);
  }
  makeTarget(tree, target, source.inode.kind);
  bindIn(tree, source.path, target, readOnly ? ["ro"] : []);
}

function openIn(tree: Tree, root: string, subPath: string): Found {
  const trail = [foundAt(tree, root, true)];
  const walk = createSubPathWalk(subPath);
  for (let step = walk.next(); step !== undefined; step = walk.next()) {
    const here = trail.at(-1);
    if (here === undefined) break;
    if (step.kind === "back") {
      trail.pop();
      continue;
    }
    const found = enter(tree, here, step.name, trail[0]?.inode.mode ?? 0o755);
    if (found.inode.kind === "symlink") walk.link(found.inode.linkTarget);
    else trail.push(found);
  }
  const last = trail.at(-1);
  if (last === undefined) throw new HostError("Outside", `subPath "${subPath}" leads out of ${root}`);
  return last;
}

function enter(tree: Tree, { path, inode, mount }: Found, name: string, mode: number): Found {
  if (inode.kind !== "directory")
    throw new HostError("Failed", `bind ${path}/${name}: ${path} is no directory`);
  if (!inode.children.has(name))
    tree.setEntry({ parent: inode, name, mount }, tree.newInode("directory", mode));
  return foundAt(tree, `${path}/${name}`, false);
}

function foundAt(tree: Tree, path: string, follow: boolean): Found {
  const place = tree.walk(path, { follow });
  if (place?.inode === undefined) throw new HostError("NotFound", `bind ${path}: ENOENT`);
  return { ...place, inode: place.inode };
}

function makeTarget(tree: Tree, target: string, kind: Inode["kind"]): void {
  let made = "";
  const steps = target.split("/").filter((step) => step !== "");
  for (const [index, step] of steps.entries()) {
    made += `/${step}`;
    const place = tree.walk(made, { follow: true });
    if (place === undefined || place.inode !== undefined) continue;
    const asFile = index === steps.length - 1 && kind !== "directory";
    tree.setEntry(place, asFile ? tree.newInode("file", 0o640) : tree.newInode("directory", 0o750));
  }
}

import { HostError, type HostMounts, type Mount } from "../driver/host.ts";
import { bindIn, withOptions } from "../node/memory/binds.ts";
import { FAILED, measure } from "../node/memory/files.ts";
import type { Kernel } from "../node/memory/kernel.ts";
import { canonical, deviceAt, mountIn, unmountIn } from "../node/memory/mounts.ts";
import type { Filesystem, Mounted } from "../node/memory/tree.ts";

const INODES = 65_536;

/** The mount table that the node agent sees, by the words of the driver. */
export function createDriverMounts(kernel: Kernel): HostMounts {
  const { tree } = kernel;
  let known: { readonly changes: number; readonly mounts: readonly Mount[] } | undefined;

  function topAt(path: string): Mounted {
    const top = tree.topAt(canonical(tree, path));
    if (top === undefined) throw new HostError("Failed", `${path}: not mounted`);
    return top;
  }

  function filesystemAt(path: string): Filesystem {
    const place = tree.walk(path, { follow: true });
    if (place?.inode === undefined) throw new HostError("NotFound", `${path}: ENOENT`);
    if (place.mount.filesystem.disk?.isBroken === true) throw new HostError("Failed", `${path}: EIO`);
    return place.mount.filesystem;
  }

  return {
    async list() {
      if (known?.changes !== tree.mountChanges)
        known = { changes: tree.mountChanges, mounts: tree.mounts.map(toMount) };
      return known.mounts;
    },
    async mount(device, path, type, flags) {
      if (deviceAt(tree, device)?.disk?.isBroken === true)
        throw new HostError("Failed", `mount ${device} on ${path}: EIO`);
      mountIn(tree, { source: device, target: path, type, options: flags });
    },
    bind: async (source, target) => bindIn(tree, source, target, []),
    async remountBind(path, flags) {
      const top = topAt(path);
      const writable = top.options.filter((option) => option !== "ro");
      tree.changeOptions(top, withOptions(writable, flags));
    },
    async unmount(path) {
      topAt(path);
      unmountIn(kernel, path);
    },
    async freeze(path) {
      const filesystem = filesystemAt(path);
      if (filesystem.isFrozen) throw new HostError("Busy", `${path}: already frozen`);
      filesystem.isFrozen = true;
      // A freeze writes everything, and keeps a filesystem that is unmounted meanwhile.
      filesystem.unsynced.syncAll();
      tree.use(filesystem);
    },
    async thaw(path) {
      const filesystem = filesystemAt(path);
      if (!filesystem.isFrozen) return;
      filesystem.isFrozen = false;
      tree.unuse(filesystem);
    },
    async usage(path) {
      const { root, sizeBytes } = filesystemAt(path);
      const { usedBytes, inodesUsed } = measure(root);
      return {
        totalBytes: BigInt(sizeBytes),
        usedBytes: BigInt(usedBytes),
        availableBytes: BigInt(Math.max(0, sizeBytes - usedBytes)),
        totalInodes: BigInt(INODES),
        usedInodes: BigInt(inodesUsed),
        freeInodes: BigInt(INODES - inodesUsed),
      };
    },
  };
}

function toMount({ path, filesystem, rootPath, options }: Mounted): Mount {
  return {
    path,
    deviceNumber: filesystem.deviceNumber,
    root: rootPath,
    readonly: options.includes("ro"),
    filesystemReadonly: filesystem.options.includes("ro"),
    ...(filesystem.options.includes(FAILED) && { failure: FAILED }),
  };
}

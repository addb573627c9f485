import type { Clock } from "../base/clock.ts";
import { HostError, type Host, type HostErrorCode, type HostLoops, type LoopDevice } from "../driver/host.ts";
import { HostError as KernelError, type HostErrorCode as KernelErrorCode } from "../node/host.ts";
import { filesystemOn } from "../node/memory/disks.ts";
import type { MemoryHost } from "../node/memory/host.ts";
import type { Kernel } from "../node/memory/kernel.ts";
import type { LoopDevice as KernelLoop } from "../node/memory/loops.ts";
import { createDriverFiles } from "./driver-files.ts";
import { createDriverFilesystems, createDriverImages } from "./driver-images.ts";
import { createDriverMounts } from "./driver-mounts.ts";
import { DRIVER_VIEW, mapCalls } from "./host-calls.ts";

export interface DriverHostOptions {
  /** Given, a copy of an image takes `partMs` for each file or block in it, while others go on writing. */
  readonly copies?: { readonly clock: Clock; readonly partMs: number };
}

/**
 * A machine in memory as a CSI driver sees it: the same kernel that the node agent works on. What a driver mounts is in
 * the agent's mount table, what a container has keeps the driver's device, and an image file holds a filesystem with all
 * that pods wrote into it. The state is the machine's, so each process of the driver may make a view of its own.
 */
export function createDriverHost({ kernel }: MemoryHost, { copies }: DriverHostOptions = {}): Host {
  const host: Host = {
    files: createDriverFiles(kernel),
    images: createDriverImages(kernel, copies),
    loops: createDriverLoops(kernel),
    filesystems: createDriverFilesystems(kernel),
    mounts: createDriverMounts(kernel),
  };
  return mapCalls(host, DRIVER_VIEW, (_call, work) => inDriversWords(work));
}

const CODES: Readonly<Record<KernelErrorCode, HostErrorCode>> = {
  NotFound: "NotFound",
  Exists: "NotEmpty",
  NotEmpty: "NotEmpty",
  Busy: "Busy",
  NoSpace: "NoSpace",
  NotPermitted: "NotPermitted",
  TimedOut: "TimedOut",
  NoTool: "NoTool",
  Corrupted: "Failed",
  FilesystemMismatch: "Failed",
  Outside: "Failed",
  Failed: "Failed",
};

async function inDriversWords(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    throw new HostError(CODES[error.code], error.message, { cause: error });
  }
}

function createDriverLoops({ tree, loops }: Kernel): HostLoops {
  const must = (path: string): KernelLoop => {
    const found = loops.at(path);
    if (found === undefined) throw new HostError("NotFound", `${path} is no device`);
    return found;
  };
  const same = ({ path, diskseq }: LoopDevice): KernelLoop | undefined => {
    const now = loops.at(path);
    return now !== undefined && String(now.diskseq) === diskseq ? now : undefined;
  };
  return {
    list: async () => loops.attached().map(toLoopDevice),
    async attach(image, options) {
      const place = tree.walk(image, { follow: true });
      if (place?.inode === undefined) throw new HostError("NotFound", `attach ${image}: ENOENT`);
      const { inode } = place;
      const existing =
        inode.kind === "block" ? undefined : loops.attached().find(({ backing }) => backing?.inode === inode);
      if (existing === undefined) return toLoopDevice(loops.attach(place, options));
      loops.keep(existing);
      return toLoopDevice(existing);
    },
    async detach(device) {
      const now = same(device);
      if (now !== undefined && !loops.detach(now)) throw new HostError("Busy", `${device.path} is in use`);
    },
    async pin(device) {
      const now = same(device);
      if (now === undefined) throw new HostError("NotFound", `${device.path} is another device by now`);
      now.openers++;
      let isOpen = true;
      return async () => {
        if (isOpen) now.openers--;
        isOpen = false;
        loops.settle();
      };
    },
    async refresh(path) {
      const device = must(path);
      device.sizeBytes = device.backing?.inode.device?.sizeBytes ?? device.disk?.sizeBytes ?? 0;
    },
    sizeBytes: async (path) => BigInt(must(path).sizeBytes),
    async flush(path) {
      const { disk } = must(path);
      filesystemOn(disk)?.unsynced.syncAll();
      disk?.unsyncedBlocks.clear();
    },
  };
}

/** As it is now; what is asked for later is told by another look. */
function toLoopDevice({ path, deviceNumber, diskseq, backing, readonly, autoclear }: KernelLoop): LoopDevice {
  return {
    path,
    deviceNumber,
    diskseq: String(diskseq),
    backing: backing?.identity ?? "",
    readonly,
    autoclear,
  };
}

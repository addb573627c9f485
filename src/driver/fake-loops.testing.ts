import { HostError, type HostLoops, type LoopDevice } from "./host.ts";

/** What a loop device needs of the file behind it. */
export interface FakeFile {
  readonly inode: number;
  readonly sizeBytes: bigint;
}

export interface FakeDevice<F extends FakeFile> extends LoopDevice {
  autoclear: boolean;
  sizeBytes: bigint;
  readonly entry: F;
  /** Of files that processes have open on it. */
  openers: number;
}

/**
 * Loop devices as the kernel has them: numbers are given again, the lowest first; a device with a user is not detached but
 * marked to go with its last one; a node stays when its device is gone, and names whatever is attached there next.
 */
export interface FakeLoops<F extends FakeFile> {
  readonly loops: HostLoops;
  /** What a number names now; a node outlives its devices. */
  at(path: string): FakeDevice<F> | undefined;
  hasNode(path: string): boolean;
  /** A user other than an open file has gone. */
  settle(): void;
  reboot(): void;
}

/** As it is now; what is asked for later is told by another look. */
function toLoopDevice({
  openers: _openers,
  entry: _entry,
  sizeBytes: _size,
  ...device
}: FakeDevice<FakeFile>): LoopDevice {
  return device;
}

const NONE: ReadonlySet<string> = new Set();

export function createFakeLoops<F extends FakeFile>({
  fileAt,
  isMounted,
}: {
  readonly fileAt: (path: string) => F;
  /** Its filesystem, anywhere, or frozen and unmounted: that goes on holding its device. */
  readonly isMounted: (device: FakeDevice<F>) => boolean;
}): FakeLoops<F> {
  let devices: FakeDevice<F>[] = [];
  let diskseq = 0;
  const nodes = new Set<string>();

  const at = (path: string) => devices.find((device) => device.path === path);
  const must = (path: string): FakeDevice<F> => {
    const found = at(path);
    if (found === undefined) throw new HostError("NotFound", `${path} is no device`);
    return found;
  };
  const isUsed = (device: FakeDevice<F>) =>
    device.openers > 0 ||
    isMounted(device) ||
    devices.some(({ backing }) => backing === `dev/${device.path}`);

  function settle(): void {
    for (;;) {
      const gone = devices.find((device) => device.autoclear && !isUsed(device));
      if (gone === undefined) return;
      devices = devices.filter((device) => device !== gone);
      diskseq++;
    }
  }

  const same = (device: LoopDevice) => {
    const now = at(device.path);
    return now?.diskseq === device.diskseq ? now : undefined;
  };

  const loops: HostLoops = {
    list: async () => devices.map(toLoopDevice),
    async attach(image, { readonly, avoid = NONE }) {
      const below = at(image);
      const entry = below?.entry ?? fileAt(image);
      const backing = below === undefined ? `disk/${entry.inode}` : `dev/${below.path}`;
      const existing = devices.find((device) => device.backing === backing);
      if (existing !== undefined && below === undefined) {
        existing.autoclear = false;
        return toLoopDevice(existing);
      }
      let number = 0;
      while (at(`/dev/loop${number}`) !== undefined || avoid.has(`/dev/loop${number}`)) number++;
      const device: FakeDevice<F> = {
        path: `/dev/loop${number}`,
        deviceNumber: `7:${number}`,
        diskseq: String(++diskseq),
        backing,
        readonly,
        autoclear: false,
        sizeBytes: entry.sizeBytes,
        entry,
        openers: 0,
      };
      devices.push(device);
      nodes.add(device.path);
      return toLoopDevice(device);
    },
    async detach(device) {
      const now = same(device);
      if (now === undefined) return;
      now.autoclear = true;
      settle();
      if (at(device.path) === now) throw new HostError("Busy", `${device.path} is in use`);
    },
    async pin(device) {
      const now = same(device);
      if (now === undefined) throw new HostError("NotFound", `${device.path} is another device by now`);
      now.openers++;
      return async () => {
        now.openers--;
        settle();
      };
    },
    async refresh(path) {
      const device = must(path);
      device.sizeBytes = device.entry.sizeBytes;
    },
    sizeBytes: async (path) => must(path).sizeBytes,
    flush: async () => undefined,
  };

  return {
    loops,
    at,
    hasNode: (path) => nodes.has(path),
    settle,
    reboot() {
      devices = [];
      // It begins anew, so a record of the boot before may hold a number of this one.
      diskseq = 0;
    },
  };
}

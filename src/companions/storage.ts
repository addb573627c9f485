import type { Channel } from "../csi/methods.ts";
import { createBinder } from "./binder/binder.ts";
import { createStorageCaches } from "./caches.ts";
import type { StorageDeps } from "./deps.ts";
import { introduceDriver } from "./driver.ts";
import { createProvisioner } from "./provisioner/provisioner.ts";
import { createResizer } from "./resizer/resizer.ts";
import { createSnapshotter } from "./snapshotter/snapshotter.ts";

export interface StorageOptions {
  /** To the controller service of each driver. */
  readonly channels: readonly Channel[];
  /** The filesystem of volumes whose class names none; "" leaves it to the driver. */
  readonly defaultFsType?: string;
}

export interface StorageCompanions {
  run(signal: AbortSignal): Promise<void>;
  /** Everything was read, and every driver has introduced itself. */
  hasSynced(): boolean;
}

/** One claim binder, and a provisioner, resizer and snapshotter for each driver, on one set of caches. */
export function createStorageCompanions(
  deps: StorageDeps,
  { channels, defaultFsType = "" }: StorageOptions,
): StorageCompanions {
  const caches = createStorageCaches({ ...deps, random: deps.random.fork("storage-caches") });
  const cached = { ...deps, caches };
  const binder = createBinder(cached);
  let introduced = 0;

  async function runWithDriver(channel: Channel, signal: AbortSignal): Promise<void> {
    const driver = await introduceDriver({ ...deps, channel }, signal);
    introduced++;
    deps.log.info("storage companions work", { driver: driver.name });
    const withDriver = { ...cached, driver, defaultFsType };
    const companions = [
      createProvisioner(withDriver),
      createResizer(withDriver),
      createSnapshotter(withDriver),
    ];
    await Promise.all(companions.map((companion) => companion.run(signal)));
  }

  return {
    hasSynced: () => introduced === channels.length && caches.hasSynced(),
    async run(signal) {
      try {
        const drivers = channels.map((channel) => runWithDriver(channel, signal));
        await Promise.all([caches.run(signal), binder.run(signal), ...drivers]);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}

import type { Channel } from "../csi/methods.ts";
import { createBinder } from "./binder/binder.ts";
import { createStorageCaches } from "./caches.ts";
import type { StorageDeps } from "./deps.ts";
import { introduceDriver } from "./driver.ts";
import { createProvisioner } from "./provisioner/provisioner.ts";
import { createResizer } from "./resizer/resizer.ts";
import { createSnapshotter } from "./snapshotter/snapshotter.ts";

export interface StorageOptions {
  /** To the driver's controller service. */
  readonly channel: Channel;
  /** The filesystem of volumes whose class names none; "" leaves it to the driver. */
  readonly defaultFsType?: string;
}

export interface StorageCompanions {
  run(signal: AbortSignal): Promise<void>;
  /** Everything was read, and the driver has introduced itself. */
  hasSynced(): boolean;
}

/** Claim binder, provisioner, resizer and snapshotter for one driver, on one set of caches. */
export function createStorageCompanions(
  deps: StorageDeps,
  { channel, defaultFsType = "" }: StorageOptions,
): StorageCompanions {
  const caches = createStorageCaches({ ...deps, random: deps.random.fork("storage-caches") });
  const cached = { ...deps, caches };
  const binder = createBinder(cached);
  let introduced = false;

  async function runWithDriver(signal: AbortSignal): Promise<void> {
    const driver = await introduceDriver({ ...deps, channel }, signal);
    introduced = true;
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
    hasSynced: () => introduced && caches.hasSynced(),
    async run(signal) {
      try {
        await Promise.all([caches.run(signal), binder.run(signal), runWithDriver(signal)]);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}

import { removeMount, holdOf } from "../actual.ts";
import type { Context } from "../context.ts";
import { withUsers } from "../evidence/users.ts";
import { VolumeError, withStep } from "../errors.ts";
import { hasDriver } from "../late-calls.ts";
import { begin } from "./operation.ts";
import { cleanSubPaths } from "./sub-paths.ts";
import type { Held, PodMount, VolumeState } from "../world.ts";

/** Takes a volume from a pod. Unmounts of several pods run side by side; nothing else runs beside them. */
export function startUnmount(context: Context, volume: VolumeState, mount: PodMount): void {
  const { podUid, specName, spec } = mount;
  begin(
    context,
    volume,
    { operation: "volume_unmount", podUid, exclusive: false, pods: [podUid] },
    async (signal) => {
      // Binds of parts of the volume come first: with one left, the volume itself is busy.
      await cleanSubPaths(context, { podUid, specName }).catch((error: unknown) => {
        throw withStep("error cleaning subPath mounts: ", error);
      });
      // From here on it may be gone, so a pod that wants it again needs a set-up.
      mount.state = "uncertain";
      // Whoever finds this after a crash knows that the driver may be at it still.
      if (hasDriver(volume)) await context.journal.settle(volume);
      const known = volume.held?.unknown ? undefined : spec;
      const paths = [context.paths.podVolume(podUid, volume.plugin.name, specName)];
      await volume.plugin
        .tearDown({ volume: volume.name, podUid, specName, spec: known, signal })
        .catch(async (error: unknown) => {
          if (signal.aborted) throw error;
          throw await withUsers(context, { paths, devicePath: "" }, error);
        });
      removeMount(context.world, volume, podUid);
    },
  );
}

/** Undoes the step once a node. */
export function startUnmountDevice(context: Context, volume: VolumeState): void {
  begin(context, volume, { operation: "unmount_device", exclusive: true, pods: [] }, async (signal) => {
    const held = holdOf(volume);
    const { device } = volume.plugin;
    if (device) {
      const deviceMountPath = held.deviceMountPath || device.mountPath(held.spec);
      await refuseReferences(context, deviceMountPath);
      held.device = "uncertain";
      if (hasDriver(volume)) await context.journal.settle(volume);
      const { spec, devicePath } = held;
      await device
        .unmount({ volume: volume.name, spec, deviceMountPath, devicePath, signal })
        .catch(async (error: unknown) => {
          if (signal.aborted) throw error;
          throw await withUsers(context, { paths: [deviceMountPath], devicePath: "" }, error);
        });
    }
    await refuseOpenDevice(context, held);
    held.device = "not-mounted";
  });
}

/** Another mount of the same device outside the plugins' own directories means that somebody still uses it. */
async function refuseReferences({ host, paths }: Context, deviceMountPath: string): Promise<void> {
  const own = deviceMountPath.startsWith(`${paths.plugins}/`)
    ? deviceMountPath.slice(paths.root.length)
    : deviceMountPath;
  const table = await host.mounts.table();
  const others = table.references(deviceMountPath).filter((path) => !path.includes(own));
  if (others.length === 0) return;
  throw new VolumeError(
    "transient",
    `the device mount path "${deviceMountPath}" is still mounted by other references [${others.join(" ")}]`,
  );
}

/** After a device was let go nobody may have it open; a path that is no device says nothing. */
export async function refuseOpenDevice({ host, log }: Context, { devicePath }: Held): Promise<void> {
  if (!devicePath.startsWith("/")) return;
  const stat = await host.files.statTarget(devicePath);
  if (stat?.kind !== "block" && stat?.kind !== "char") return;
  if (await host.devices.isInUse(devicePath))
    throw await withUsers(
      { host, log },
      { paths: [], devicePath },
      new VolumeError("uncertain", "the device is in use when it was no longer expected to be in use"),
    );
}

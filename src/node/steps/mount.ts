import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { referenceTo } from "../../kube/events/events.ts";
import { specName } from "../../volumes/spec.ts";
import { deviceStepFailed, holdOf, podStepFailed, setMount } from "../actual.ts";
import { tellPod, type Context } from "../context.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import { expandDuringMount } from "./expand.ts";
import { checkMountOptions, checkNodeAffinity } from "./mount-checks.ts";
import { desiredSizeLimitBytes } from "../plugins/pod-resources.ts";
import { begin, failureOf, refuseUnwanted } from "./operation.ts";
import { podSecurity } from "./pod-security.ts";
import { mountedLabel } from "./selinux.ts";
import type { MountAttributes } from "../plugin.ts";
import type { Held, VolumeState, Want } from "../world.ts";

/** Given to plugins that wait for a device themselves: 10 min, as upstream. */
const ATTACH_TIMEOUT_MS = 600_000;

/** The step once a node: stage, or mount the device. */
export function startMountDevice(context: Context, volume: VolumeState, want: Want): void {
  const pods = [...volume.wants.keys()];
  begin(context, volume, { operation: "mount_device", exclusive: true, pods }, async (signal, unwanted) => {
    const held = holdOf(volume);
    await telling(context, want, "MountVolume.NodeAffinity check failed", () => check(context, want));
    await telling(context, want, "MountVolume.MountOptionSupport check failed", () =>
      checkMountOptions(want.spec, volume.plugin.traits(want.spec)),
    );
    await telling(context, want, "MountVolume.WaitForAttach failed", () =>
      waitForAttach(volume, want, { held, signal: AbortSignal.any([signal, unwanted]) }),
    );
    refuseUnwanted(unwanted);
    await telling(context, want, "MountVolume.MountDevice failed", () =>
      mountDevice(context, volume, { want, held, signal }),
    );
  });
}

async function mountDevice(
  context: Context,
  volume: VolumeState,
  { want, held, signal }: { want: Want; held: Held; signal: AbortSignal },
): Promise<void> {
  const { device } = volume.plugin;
  if (!device) return;
  const { spec, pod } = want;
  const deviceMountPath = device.mountPath(spec);
  held.deviceMountPath = deviceMountPath;
  chooseLabel(held, want);
  await context.journal.intend(volume, { device: true, podUid: want.podUid });
  try {
    signal.throwIfAborted();
    await device.mount({
      volume: volume.name,
      spec,
      pod,
      devicePath: held.devicePath,
      deviceMountPath,
      fsGroup: podSecurity(pod).fsGroup,
      selinuxLabel: held.selinuxLabel,
      mayBeThere: held.reconstructed || held.device === "uncertain",
      signal,
    });
    held.device = "mounted";
  } catch (thrown) {
    const error = failureOf(thrown, signal);
    if (error.kind === "filesystem-mismatch" && spec.kind === "persistent")
      context.events.record({
        ref: referenceTo(persistentVolumes, spec.volume),
        type: "Warning",
        reason: "FailedMountOnFilesystemMismatch",
        message: error.message,
      });
    deviceStepFailed(held, error);
    throw error;
  }
}

/** The step once a pod: publish, bind, or write the content. Also repeats it to refresh. */
export function startMount(context: Context, volume: VolumeState, want: Want): void {
  const { podUid } = want;
  const { attachable, deviceMountable } = volume.plugin.traits(want.spec);
  const exclusive = deviceMountable || attachable !== "no";
  begin(
    context,
    volume,
    { operation: "volume_mount", podUid, exclusive, pods: [podUid] },
    async (signal, unwanted) => {
      const held = holdOf(volume);
      const isRemount = held.mounts.get(podUid)?.state === "mounted";
      if (!deviceMountable || held.device !== "mounted") {
        await telling(context, want, "MountVolume.NodeAffinity check failed", () => check(context, want));
        await telling(context, want, "MountVolume.MountOptionSupport check failed", () =>
          checkMountOptions(want.spec, volume.plugin.traits(want.spec)),
        );
        await telling(context, want, "MountVolume.WaitForAttach failed", () =>
          waitForAttach(volume, want, { held, signal: AbortSignal.any([signal, unwanted]) }),
        );
      }
      refuseUnwanted(unwanted);
      let selinuxRelabel = false;
      await telling(context, want, "MountVolume.SetUp failed", async () => {
        ({ selinuxRelabel } = await setUp(context, volume, {
          want,
          held,
          signal,
          unwanted,
          isRemount,
        }));
      });
      const path = volume.plugin.mountPath(want.spec, podUid);
      const place = { podUid, spec: want.spec, path, selinuxRelabel };
      // It is there from here on, so a failure to grow it must not make us forget to take it down.
      if (!isRemount) setMount(context.world, volume, { ...place, state: "uncertain" });
      if (!isRemount)
        await telling(context, want, "MountVolume.Setup failed while expanding volume", () =>
          expandDuringMount(context, volume, { want, held, path, signal }),
        );
      // A refresh asked for while this one ran is not lost: it set the mark on the mount, which is replaced here.
      const again = held.mounts.get(podUid)?.remountRequired ?? false;
      const mount = setMount(context.world, volume, { ...place, state: "mounted" });
      mount.remountRequired = again;
      if (!isRemount)
        context.measure.mounted(volume.plugin.metricName(want.spec), context.clock.now() - want.sinceMs);
    },
  );
}

interface SetUp {
  readonly want: Want;
  readonly held: Held;
  readonly signal: AbortSignal;
  readonly unwanted: AbortSignal;
  readonly isRemount: boolean;
}

async function setUp(
  context: Context,
  volume: VolumeState,
  { want, held, signal, unwanted, isRemount }: SetUp,
): Promise<MountAttributes> {
  const { podUid, spec, pod } = want;
  chooseLabel(held, want);
  const { plugin } = volume;
  const before = held.mounts.get(podUid);
  if (isJournaled(volume, want)) await context.journal.intend(volume, { podUid });
  if (before) before.remountRequired = false;
  try {
    signal.throwIfAborted();
    if (!isRemount && held.device === "mounted")
      await refuseUnstaged(volume, plugin.device?.isUnstaged?.(spec, signal));
    return await plugin.setUp({
      volume: volume.name,
      spec,
      pod,
      podUid,
      devicePath: held.devicePath,
      deviceMountPath: held.deviceMountPath,
      ...podSecurity(pod),
      sizeLimitBytes: desiredSizeLimitBytes(pod, spec),
      selinuxLabel: held.selinuxLabel,
      mayBeThere: before?.state === "uncertain",
      isRemount,
      signal,
      unwanted,
    });
  } catch (thrown) {
    const error = failureOf(thrown, AbortSignal.any([signal, unwanted]));
    // The refresh is still due; the mount itself is as it was.
    if (before) before.remountRequired = isRemount;
    podStepFailed(context.world, volume, { podUid, spec, path: plugin.mountPath(spec, podUid), error });
    throw error;
  }
}

/**
 * A driver that is upgraded may stage what its version before did not, and refuses to publish for ever what was set up without.
 * The step once a node is done first then.
 */
export async function refuseUnstaged(
  { name }: VolumeState,
  isUnstaged: Promise<boolean> | undefined,
): Promise<void> {
  const isRefused = await isUnstaged?.catch((error: unknown) => {
    const { message, kind, blockedBy } = toVolumeError(error);
    // No driver was called: what was not there is not there now, and what may be there may be there still.
    throw new VolumeError("transient", message, { cause: error, kind, blockedBy });
  });
  if (isRefused !== true) return;
  const message = `${name} was set up when its driver did not stage volumes, which it does now; it is staged first`;
  throw new VolumeError("transient", message, { kind: "not-staged" });
}

/** The first mount decides for all that share it; the plan lets no other in. */
function chooseLabel(held: Held, { selinuxLabel }: Want): void {
  if (mountedLabel(held) === undefined) held.selinuxLabel = selinuxLabel;
}

/** Content of a pod alone is found again by its directory; what is shared or staged is not. */
export function isJournaled({ plugin }: VolumeState, { spec }: Want): boolean {
  const { attachable, deviceMountable } = plugin.traits(spec);
  return deviceMountable || attachable !== "no";
}

export function check(context: Context, { spec }: Want): void {
  checkNodeAffinity(spec, context.node());
}

export async function waitForAttach(
  volume: VolumeState,
  { spec, pod, podUid }: Want,
  { held, signal }: { held: Held; signal: AbortSignal },
): Promise<void> {
  const { name, plugin } = volume;
  if (held.attachable !== "yes" || !plugin.attach) return;
  held.devicePath = await plugin.attach.waitForAttach({
    volume: name,
    spec,
    pod,
    podUid,
    devicePath: held.devicePath,
    timeoutMs: ATTACH_TIMEOUT_MS,
    signal,
  });
}

/**
 * After a start drivers register within seconds: that one has not yet is no failure to tell a pod of, whose volumes are
 * tried again the moment it does. One that is still missing then is told at the next attempt.
 */
const REGISTRATION_MS = 15_000;

function isRegistering({ clock, startedAtMs }: Context, { blockedBy }: VolumeError): boolean {
  return clock.now() - startedAtMs < REGISTRATION_MS && blockedBy.some(({ kind }) => kind === "driver");
}

/** A failure becomes an event of the pod, word for word as upstream tells it, and goes on. */
export async function telling(
  context: Context,
  { pod, spec }: Want,
  step: string,
  work: () => Promise<void> | void,
  reason = "FailedMount",
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    const error = toVolumeError(thrown);
    if (!context.stopping.aborted && !isRegistering(context, error)) {
      const message = `${step} for volume "${specName(spec)}" : ${error.message}`;
      tellPod(context, pod, { type: "Warning", reason, message });
    }
    throw thrown;
  }
}

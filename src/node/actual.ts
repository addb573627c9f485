import { assert } from "../base/assert.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import type { VolumeError } from "./errors.ts";
import { identityOf } from "./replaced.ts";
import { isHere, type Held, type PodMount, type VolumeMode, type VolumeState, type World } from "./world.ts";

/** What is on this node, and what may be: the only functions that change `held`. */

export function markAttached(
  volume: VolumeState,
  {
    spec,
    mode,
    devicePath,
    attachable,
  }: { spec: VolumeSpec; mode: VolumeMode; devicePath: string; attachable: "yes" | "no" },
): void {
  if (volume.held) {
    volume.held.devicePath = devicePath;
    // Never the other way: what was attached once is in use until nothing of it is left.
    if (attachable === "yes") volume.held.attachable = "yes";
    return;
  }
  volume.held = newHeld({ spec, mode, attachable, devicePath, reconstructed: false });
}

export function newHeld(
  known: Pick<Held, "spec" | "mode" | "attachable" | "devicePath" | "reconstructed"> & {
    readonly unknown?: boolean;
  },
): Held {
  return {
    unknown: false,
    ...known,
    device: "not-mounted",
    deviceMountPath: "",
    sizeBytes: 0,
    expansionRefused: false,
    expansionFailed: false,
    selinuxLabel: "",
    mounts: new Map(),
  };
}

/** A device step begins. Nothing of it is here yet: it is staged as this says, under the name its PersistentVolume has now. */
export function stageAs(held: Held, spec: VolumeSpec): void {
  if (!isHere(held)) held.spec = spec;
}

/**
 * A device step failed. What may be there already, by an earlier attempt or since before a restart, may be there still: a second
 * attempt that was refused, or that never came to the driver, says nothing about the first. Only its tear-down ends that.
 */
export function deviceStepFailed(held: Held, { outcome }: VolumeError): void {
  if (outcome === "uncertain" && held.device === "not-mounted") held.device = "uncertain";
}

/** A pod step failed. What is mounted stays so: a refresh that fails takes nothing away; and what may be there, as of a device. */
export function podStepFailed(
  world: World,
  volume: VolumeState,
  { podUid, spec, path, error }: { podUid: string; spec: VolumeSpec; path: string; error: VolumeError },
): void {
  const held = holdOf(volume);
  const mount = held.mounts.get(podUid);
  if (error.kind === "not-staged") held.device = "not-mounted";
  if (!mount && error.outcome === "uncertain")
    setMount(world, volume, { podUid, spec, path, state: "uncertain" });
}

interface MountPlace {
  readonly podUid: string;
  readonly spec: VolumeSpec;
  readonly path: string;
  readonly state: PodMount["state"];
}

export function setMount(
  world: World,
  volume: VolumeState,
  { podUid, spec, path, state, selinuxRelabel = false }: MountPlace & { selinuxRelabel?: boolean },
): PodMount {
  const mounts = holdOf(volume).mounts;
  const before = mounts.get(podUid);
  const mount: PodMount = {
    podUid,
    spec,
    outerNames: volume.wants.get(podUid)?.outerNames ?? before?.outerNames ?? [],
    identity: before?.identity ?? identityOf(spec),
    specName: specName(spec),
    state,
    path: path || (before?.path ?? ""),
    reconstructed: state === "uncertain" && (before?.reconstructed ?? false),
    remountRequired: false,
    selinuxRelabel,
  };
  mounts.set(podUid, mount);
  world.link(podUid, volume);
  return mount;
}

export function removeMount(world: World, volume: VolumeState, podUid: string): void {
  holdOf(volume).mounts.delete(podUid);
  world.tidy(volume, podUid);
}

export function forget(volume: VolumeState): void {
  const { held } = volume;
  assert(
    !held || held.mounts.size === 0,
    `${volume.name} is forgotten but ${held?.mounts.size} pods have it`,
  );
  volume.held = undefined;
}

export function holdOf({ held, name }: VolumeState): Held {
  assert(held !== undefined, `${name}: a step ran although nothing of it is here`);
  return held;
}

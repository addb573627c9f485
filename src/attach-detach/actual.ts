import type { VolumeSpec } from "../volumes/spec.ts";
import type { Tally } from "./tally.ts";
import { excluding, including, type Hold, type Placement, type World } from "./world.ts";

/**
 * What is attached, and what may be. Attached: a driver said so. Uncertain: a request may have reached it and we
 * do not know how it ended. Detached: no hold.
 */
export interface ActualDeps {
  readonly world: World;
  readonly tally: Tally;
}

export interface Attached {
  readonly spec: VolumeSpec | undefined;
  readonly devicePath: string;
  /** Whether the node may be told. */
  readonly listed: boolean;
  readonly proven: boolean;
  readonly nowMs: number;
}

/**
 * A volume just attached and listed is presumed mounted until its node is heard of: the kubelet may be quicker than the
 * watch. One that is not listed cannot have been mounted.
 */
export function markAttached(
  { world, tally }: ActualDeps,
  placement: Placement,
  { spec, devicePath, listed, proven, nowMs }: Attached,
): void {
  const hold = placement.hold ?? createHold(placement, nowMs);
  if (placement.hold === undefined && listed)
    placement.node.assumed = including(placement.node.assumed, placement);
  setSpec(tally, placement, hold, spec ?? hold.spec);
  hold.confirmed = true;
  hold.devicePath = devicePath;
  hold.listed = listed;
  hold.proven = proven;
  if (placement.want) hold.unwantedSinceMs = undefined;
  world.noteUnwanted(placement);
}

/**
 * Never listed: a node must not mount what may not be there. Whether it is mounted is what its node says;
 * presumed so only where the node is unknown.
 */
export function markUncertain(
  { world, tally }: ActualDeps,
  placement: Placement,
  { spec, nowMs }: { readonly spec: VolumeSpec | undefined; readonly nowMs: number },
): void {
  const { node } = placement;
  const hold = placement.hold ?? createHold(placement, nowMs);
  if (placement.hold === undefined && !node.exists) node.assumed = including(node.assumed, placement);
  setSpec(tally, placement, hold, spec ?? hold.spec);
  hold.confirmed = false;
  hold.devicePath = "";
  hold.listed = false;
  hold.proven = false;
  world.noteUnwanted(placement);
}

/** What was only found by name turns out to be this. */
export function learnSpec(
  { tally }: Pick<ActualDeps, "tally">,
  placement: Placement,
  spec: VolumeSpec | undefined,
): void {
  if (placement.hold && spec) setSpec(tally, placement, placement.hold, spec);
}

export function markDetached({ world, tally }: ActualDeps, placement: Placement): void {
  if (placement.hold === undefined) return;
  tally.held(placement.hold.spec, -1);
  placement.hold = undefined;
  world.noteUnwanted(placement);
  placement.node.assumed = excluding(placement.node.assumed, placement);
  placement.node.inherited = excluding(placement.node.inherited, placement);
  world.tidy(placement);
}

function createHold({ want }: Placement, nowMs: number): Hold {
  return {
    confirmed: false,
    proven: false,
    spec: undefined,
    devicePath: "",
    listed: false,
    unwantedSinceMs: want ? undefined : nowMs,
  };
}

function setSpec(tally: Tally, placement: Placement, hold: Hold, spec: VolumeSpec | undefined): void {
  if (placement.hold !== undefined) tally.held(hold.spec, -1);
  hold.spec = spec;
  placement.hold = hold;
  tally.held(spec, 1);
}

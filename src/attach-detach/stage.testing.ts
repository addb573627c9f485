import type { Node } from "../kube/api/node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import { csiVolumeName, type NodeName } from "../volumes/names.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import type { Surroundings } from "./plan.ts";
import type { Hold, NodeState, Placement, World } from "./world.ts";

/** Placements with defaults: a test names only what matters to it. */

export const NOW_MS = 1_000_000;
export const VOLUME = csiVolumeName({ driver: "d.example.com", volumeHandle: "v" });

export function specWith(accessModes: string[] = ["ReadWriteOnce"]): VolumeSpec {
  const volume: PersistentVolume = {
    metadata: { name: "pv" },
    spec: { accessModes, csi: { driver: "d.example.com", volumeHandle: "v" } },
  };
  return { kind: "persistent", volume, readOnly: false, migrated: "none" };
}

export interface NodeSketch {
  readonly name?: string;
  readonly ready?: boolean;
  readonly outOfService?: boolean;
  readonly inUse?: boolean;
  readonly lists?: boolean;
  readonly managed?: boolean;
  readonly exists?: boolean;
}

export function nodeWith(world: World, sketch: NodeSketch = {}): NodeState {
  const { name = "a", ready = true, outOfService = false, inUse = false, lists = false } = sketch;
  const state = world.node(name as NodeName);
  const node: Node = {
    metadata: { name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: outOfService ? { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] } : {},
    status: {
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      volumesInUse: inUse ? [VOLUME] : [],
      volumesAttached: lists ? [{ name: VOLUME, devicePath: "" }] : [],
    },
  };
  state.node = node;
  state.exists = sketch.exists ?? true;
  state.managed = sketch.managed ?? true;
  return state;
}

export function podNamed(name: string): Pod {
  return { metadata: { name, namespace: "default", uid: `uid-${name}` }, spec: { containers: [] } };
}

export function placementWith(
  world: World,
  { on = {}, wanted = false, held }: { on?: NodeSketch; wanted?: boolean; held?: Partial<Hold> } = {},
): Placement {
  const placement = world.placement(VOLUME, nodeWith(world, on).name);
  if (wanted)
    placement.want = { spec: specWith(), pods: [podNamed("web")], sinceMs: NOW_MS, told: new Set() };
  if (held)
    placement.hold = {
      confirmed: true,
      proven: true,
      spec: specWith(),
      devicePath: "",
      listed: false,
      unwantedSinceMs: wanted ? undefined : NOW_MS,
      ...held,
    };
  return placement;
}

export function around(changes: Partial<Surroundings> = {}): Surroundings {
  return {
    nowMs: NOW_MS,
    running: undefined,
    traced: [],
    backoff: () => undefined,
    attachment: "attached",
    orphaned: false,
    pluginKnown: true,
    claimant: () => undefined,
    forceRule: { kind: "after", ms: 360_000 },
    stalenessMs: 0,
    podsWatchedMs: 60_000,
    ...changes,
  };
}

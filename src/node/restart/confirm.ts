import type { Action } from "../plan-draft.ts";
import type { VolumeState } from "../world.ts";

/**
 * What was found after a start is set up once more, to be sure of it. Nobody waits for that: containers that use it run.
 * So it takes turns, and what a pod does wait for finds a free disk and a free driver: with 500 volumes set up again at
 * once, the two steps of a new pod's volume took 4 s instead of 50 ms.
 *
 * Bound: `CONFIRMING_MAX` at a time of one driver. A place is lent for `PLACE_MS`: calls that hang hold up no others.
 */
export interface Confirmations {
  /** Undefined: it may be done now, and is counted. Otherwise when to look again at the latest, in the clock's `now()`. */
  claim(volume: VolumeState, nowMs: number): number | undefined;
  /** It needs no place, or no longer: the next one of its driver is woken. */
  release(name: VolumeState["name"]): void;
}

const CONFIRMING_MAX = 8;
const PLACE_MS = 5_000;

interface Lane {
  /** By volume: until when its place counts. */
  readonly places: Map<VolumeState["name"], number>;
  readonly waiting: Set<VolumeState["name"]>;
}

/** Whether this step only makes sure of what was found, for pods that have it already. */
export function isConfirmation({ held, wants }: VolumeState, { kind }: Action): boolean {
  if (!held?.reconstructed || (kind !== "mount" && kind !== "mount-device")) return false;
  for (const podUid of wants.keys()) if (!held.mounts.has(podUid)) return false;
  return [...held.mounts.values()].some(({ reconstructed }) => reconstructed);
}

export function createConfirmations(wake: (name: VolumeState["name"]) => void): Confirmations {
  const lanes = new Map<string, Lane>();
  const laneOf = new Map<VolumeState["name"], Lane>();

  function lane({ plugin, held }: VolumeState): Lane {
    const key = plugin.metricName(held?.spec);
    const known = lanes.get(key) ?? { places: new Map(), waiting: new Set() };
    lanes.set(key, known);
    return known;
  }

  return {
    claim(volume, nowMs) {
      const mine = laneOf.get(volume.name) ?? lane(volume);
      laneOf.set(volume.name, mine);
      const counting = [...mine.places].filter(([name, untilMs]) => name !== volume.name && untilMs > nowMs);
      if (counting.length >= CONFIRMING_MAX) {
        mine.waiting.add(volume.name);
        return Math.min(...counting.map(([, untilMs]) => untilMs));
      }
      mine.waiting.delete(volume.name);
      mine.places.set(volume.name, nowMs + PLACE_MS);
      return undefined;
    },
    release(name) {
      const mine = laneOf.get(name);
      if (mine === undefined) return;
      laneOf.delete(name);
      mine.waiting.delete(name);
      mine.places.delete(name);
      for (const next of mine.waiting) {
        mine.waiting.delete(next);
        wake(next);
        return;
      }
    },
  };
}

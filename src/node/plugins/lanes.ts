import { Slots } from "../../volumes/plugins/slots.ts";

/** One at a time for each name, first come first served; names nobody uses are forgotten. */
export interface Lanes {
  run<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createLanes(): Lanes {
  const lanes = new Map<string, { readonly slots: Slots; users: number }>();
  return {
    async run(name, signal, work) {
      const lane = lanes.get(name) ?? { slots: new Slots(1), users: 0 };
      lanes.set(name, lane);
      lane.users++;
      try {
        return await lane.slots.run(work, signal);
      } finally {
        if (--lane.users === 0) lanes.delete(name);
      }
    },
  };
}

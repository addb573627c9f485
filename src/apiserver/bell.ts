/** Wakes one waiter. Rung while nobody waits, it lets the next wait pass at once, so that no ring is lost. */
export interface Bell {
  readonly ring: () => void;
  wait(): Promise<void>;
}

export function createBell(): Bell {
  let isRung = false;
  let wakeUp: (() => void) | undefined;
  return {
    ring() {
      isRung = true;
      wakeUp?.();
    },
    async wait() {
      if (!isRung) await new Promise<void>((resolve) => (wakeUp = resolve));
      isRung = false;
      wakeUp = undefined;
    },
  };
}

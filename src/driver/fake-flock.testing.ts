import { HostError, type HostFiles } from "./host.ts";

type Options = Parameters<HostFiles["lock"]>[1];

interface Wait {
  readonly inode: number;
  readonly shared: boolean;
  readonly start: () => void;
}

/** The kernel's locks of a machine in memory: by inode, readers together, writers alone, first come first served. */
export function createFakeFlock() {
  const held = new Map<number, { shared: boolean; count: number }>();
  const waiting = new Set<Wait>();

  function tryTake({ inode, shared }: Pick<Wait, "inode" | "shared">): boolean {
    const now = held.get(inode);
    if (now !== undefined && !(now.shared && shared)) return false;
    held.set(inode, { shared, count: (now?.count ?? 0) + 1 });
    return true;
  }

  function release(inode: number): void {
    const now = held.get(inode);
    if (now !== undefined && --now.count === 0) held.delete(inode);
    for (const wait of waiting) {
      if (wait.inode !== inode || !tryTake(wait)) continue;
      waiting.delete(wait);
      wait.start();
    }
  }

  return {
    async take(inode: number, { shared, signal }: Options): Promise<() => Promise<void>> {
      if (!tryTake({ inode, shared })) {
        await new Promise<void>((resolve, reject) => {
          const wait: Wait = { inode, shared, start: resolve };
          waiting.add(wait);
          signal.addEventListener("abort", () => {
            if (waiting.delete(wait)) reject(new HostError("TimedOut", "flock was stopped"));
          });
        });
      }
      return async () => release(inode);
    },
  };
}

import type { ActOf, HostAct } from "../act.ts";
import type { ActContext, Performers } from "./context.ts";

/** Kernels refuse and hang. */
export const HOSTS: Performers<HostAct["kind"]> = {
  "host-faults": async ({ node, rate, forMs }, { world, later }) => {
    const { kernelFaults } = world.node(node).machine;
    kernelFaults.rate = rate;
    later(forMs, async () => void (kernelFaults.rate = 0));
  },
  "hang-mount": breakMount,
  "hold-mount": breakMount,
  "stale-mount": breakMount,
  stuck: async ({ node, forMs }, { world }) => {
    const { containers } = world.node(node);
    containers.stuckUntilMs = Math.max(containers.stuckUntilMs, world.scheduler.nowMs + forMs);
  },
};

/** Every mount answers, and no signal is lost. */
export function healHosts({ world }: ActContext): void {
  for (const { machine, containers } of world.nodes.values()) {
    const { host, kernelFaults } = machine;
    kernelFaults.rate = 0;
    for (const { path } of host.tree.mounts) {
      host.heal(path);
      host.release(path);
    }
    containers.stuckUntilMs = 0;
  }
}

async function breakMount(
  { kind, node, forMs }: ActOf<"hang-mount" | "hold-mount" | "stale-mount">,
  { world, later }: ActContext,
): Promise<void> {
  const { host, mounts } = world.node(node).machine;
  const path = mounts.findLast((mount) => world.storages.at(mount) !== undefined)?.path;
  if (path === undefined) return;
  if (kind === "hang-mount") host.hang(path);
  else if (kind === "stale-mount") host.breakMount(path);
  else host.hold(path);
  later(forMs, async () => {
    if (kind === "hold-mount") host.release(path);
    else host.heal(path);
  });
}

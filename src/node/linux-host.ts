import type { Clock } from "../base/clock.ts";
import { createChildSlots, type ChildSlots } from "./child-slots.ts";
import type { Host } from "./host.ts";
import { createLinuxDevices } from "./linux-devices.ts";
import { createLinuxFiles } from "./linux-files.ts";
import { createLinuxMounts } from "./linux-mounts.ts";
import { createProbes } from "./linux-probes.ts";
import { createLinuxProcesses } from "./linux-processes.ts";
import { createTools } from "./linux-programs.ts";

export interface LinuxHost extends Host {
  /** Process ids of the children that look at paths which may hang. */
  readonly probeChildren: readonly number[];
  /** All of its children are counted here; whoever starts some for the same agent asks it too. */
  readonly slots: ChildSlots;
  /** Ends them; a host can be used on after that, and starts new ones. */
  close(): void;
}

/** This machine: its tools by argument arrays, /proc and /sys by reading, whatever may hang in children. Needs root. */
export function createLinuxHost(
  { clock }: { readonly clock: Clock },
  {
    lookTimeoutMs,
    toolDirectories,
  }: { readonly lookTimeoutMs?: number; readonly toolDirectories?: readonly string[] } = {},
): LinuxHost {
  const slots = createChildSlots({ clock });
  const tools = createTools({ clock, slots }, toolDirectories);
  const probes = createProbes(
    { clock, slots },
    lookTimeoutMs === undefined ? {} : { timeoutMs: lookTimeoutMs },
  );
  const mounts = createLinuxMounts({ probes, tools });
  return {
    files: createLinuxFiles({ probes, mounts, tools }),
    mounts,
    devices: createLinuxDevices({ clock, probes, tools }),
    programs: { run: (program, args, options) => tools.run(program, args, options) },
    processes: createLinuxProcesses({ probes }),
    slots,
    get probeChildren() {
      return probes.children;
    },
    close: () => probes.close(),
  };
}

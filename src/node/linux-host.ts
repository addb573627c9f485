import type { Clock } from "../base/clock.ts";
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
  const tools = createTools(clock, toolDirectories);
  const probes = createProbes({ clock }, lookTimeoutMs === undefined ? {} : { timeoutMs: lookTimeoutMs });
  const processes = createLinuxProcesses({ clock });
  const mounts = createLinuxMounts({ probes, tools });
  return {
    files: createLinuxFiles({ probes, mounts, tools }),
    mounts,
    devices: createLinuxDevices({ clock, probes, tools }),
    programs: { run: (program, args, options) => tools.run(program, args, options) },
    processes,
    get probeChildren() {
      return probes.children;
    },
    close() {
      probes.close();
      processes.close();
    },
  };
}

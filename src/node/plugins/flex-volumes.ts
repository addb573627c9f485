import { basename, dirname } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { AttachablePlugin } from "../../volumes/plugin.ts";
import type { FlexHost } from "../../volumes/plugins/flex-driver.ts";
import { createFlexDrivers } from "../../volumes/plugins/flex-drivers.ts";
import { parseDriverDirectory } from "../../volumes/plugins/flex-protocol.ts";
import type { NodePlugin } from "../plugin.ts";
import { createFlexNodeDriver } from "./flex-call.ts";
import { parseFlexCapabilities } from "./flex-capabilities.ts";
import { createFlexVolumePlugin, type FlexVolumeDeps } from "./flex-volume.ts";

/** The FlexVolume drivers of this node, which come and go with their files. */
export interface FlexVolumes {
  plugins(): readonly NodePlugin[];
  /** One look at the directory; awaited once before volumes are resolved. */
  probe(signal: AbortSignal): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

/**
 * The controller's prober finds, initialises and drops drivers; each plugin it makes stands for one version of one
 * program. Here each becomes a node's plugin, once, with what its `init` said.
 */
export function createFlexVolumes(
  deps: Omit<FlexVolumeDeps, "call"> & { readonly flexHost: FlexHost; readonly clock: Clock },
  { onChange }: { readonly onChange?: () => void } = {},
): FlexVolumes {
  const { flexHost, clock, log } = deps;
  /** By driver: its program, and what that last answered to `init`. As many as there are drivers: 256 at most. */
  const said = new Map<string, { readonly file: string; readonly output: string }>();
  const made = new WeakMap<AttachablePlugin, NodePlugin>();
  const listening: FlexHost = {
    list: () => flexHost.list(),
    async exec(file, args, options) {
      const run = await flexHost.exec(file, args, options);
      const driver = parseDriverDirectory(basename(dirname(file)))?.driver;
      const output = run.stdout.trim() === "" ? run.stderr : run.stdout;
      if (args[0] === "init" && driver !== undefined) said.set(driver, { file, output });
      return run;
    },
  };
  const drivers = createFlexDrivers({ host: listening, clock, log }, onChange ? { onChange } : {});

  function toNodePlugin(plugin: AttachablePlugin): NodePlugin {
    const known = made.get(plugin);
    if (known !== undefined) return known;
    const { file = "", output = "" } = said.get(plugin.name) ?? {};
    const call = createFlexNodeDriver(flexHost, { driver: plugin.name, file });
    const can = parseFlexCapabilities(output);
    const created = createFlexVolumePlugin({ ...deps, call }, { driver: plugin.name, can });
    made.set(plugin, created);
    return created;
  }

  return {
    plugins: () => drivers.plugins().map(toNodePlugin),
    probe: (signal) => drivers.probe(signal),
    run: (signal) => drivers.run(signal),
  };
}

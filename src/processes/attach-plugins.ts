import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import type { FlexHost } from "../volumes/plugins/flex-driver.ts";
import { createFcPlugin } from "../volumes/plugins/fc.ts";
import { createFlexDrivers } from "../volumes/plugins/flex-drivers.ts";
import { createIscsiPlugin } from "../volumes/plugins/iscsi.ts";
import { createFlexHost } from "./flex-host.ts";
import { createLocalWorld } from "./local-world.ts";

/** What attaches besides CSI: iSCSI and Fibre Channel always, FlexVolume as far as drivers are installed here. */
export interface AttachPlugins {
  plugins(): readonly AttachablePlugin[];
  /** The first look for FlexVolume drivers; a volume resolved before it would seem to have no plugin. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Goes on looking; not before the first look has ended. */
  run(signal: AbortSignal): Promise<void>;
}

export interface AttachPluginsOptions {
  readonly flexVolumePluginDir: string;
  /** Another machine than this one. */
  readonly flexHost?: FlexHost | undefined;
  readonly onChange: () => void;
}

export function createAttachPlugins(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  { flexVolumePluginDir, flexHost, onChange }: AttachPluginsOptions,
): AttachPlugins {
  const host = flexHost ?? localFlexHost(clock, flexVolumePluginDir);
  const flex = createFlexDrivers({ host, clock, log }, { onChange });
  const builtIn = [createIscsiPlugin(), createFcPlugin()];
  return {
    plugins: () => [...builtIn, ...flex.plugins()],
    prepare: (signal) => flex.probe(signal),
    run: (signal) => flex.run(signal),
  };
}

function localFlexHost(clock: Clock, directory: string): FlexHost {
  const world = createLocalWorld();
  const runProgram: typeof world.runProgram = (run) => world.runProgram(run);
  return createFlexHost({ clock, runProgram }, { directory, env: world.env });
}

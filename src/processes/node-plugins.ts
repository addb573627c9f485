import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import type { EventRecorder } from "../kube/events/events.ts";
import type { NodeCaches } from "../node/caches.ts";
import type { ChildSlots } from "../node/child-slots.ts";
import type { Host } from "../node/host.ts";
import { createNodeObjects } from "../node/node-objects.ts";
import type { Paths } from "../node/paths.ts";
import { createPluginTable, type PluginTable } from "../node/plugin-table.ts";
import { createBuiltInPlugins } from "../node/plugins/built-in.ts";
import { createCsiPlugin } from "../node/plugins/csi.ts";
import type { CsiDrivers } from "../node/plugins/csi-drivers.ts";
import { createFlexVolumes } from "../node/plugins/flex-volumes.ts";
import { createTrustBundles } from "../node/plugins/trust-bundles-api.ts";
import { requestToken } from "../node/token-requests.ts";
import { createTokenCache } from "../node/tokens.ts";
import type { FlexHost } from "../volumes/plugins/flex-driver.ts";
import { createFlexHost } from "./flex-host.ts";
import { createLocalWorld } from "./local-world.ts";

/** Every kind of volume this node can mount. */
export interface NodePlugins {
  readonly table: PluginTable;
  /** When the first token of this pod's volumes wants replacing, in the clock's `now()`. */
  tokenDueAtMs(podUid: string): number | undefined;
  /** The first look for FlexVolume drivers; a volume found on disk before it would seem to have no plugin. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Goes on looking; not before the first look has ended. */
  run(signal: AbortSignal): Promise<void>;
}

export interface NodePluginsDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: EventRecorder;
  readonly host: Host;
  readonly paths: Paths;
  readonly caches: NodeCaches;
  readonly drivers: CsiDrivers;
  /** Counts the processes that FlexVolume drivers are. */
  readonly slots?: ChildSlots | undefined;
}

export interface NodePluginsOptions {
  readonly nodeName: string;
  readonly flexVolumePluginDir: string;
  /** Another machine than this one. */
  readonly flexHost?: FlexHost | undefined;
  /** Gate CSIVolumeHealth. */
  readonly volumeHealth: boolean;
  readonly refreshAllocatable: (driver: string, signal: AbortSignal) => Promise<void>;
  /** A FlexVolume driver came or went: any pod may have waited for it. */
  readonly onChange: () => void;
}

export function createNodePlugins(deps: NodePluginsDeps, options: NodePluginsOptions): NodePlugins {
  const { client, clock, random, log, caches } = deps;
  const { nodeName, flexVolumePluginDir, volumeHealth, refreshAllocatable, onChange } = options;
  const tokens = createTokenCache({ clock, random: random.fork("tokens"), log }, (wanted, signal) =>
    requestToken(client, wanted, signal),
  );
  const objects = createNodeObjects(caches, {
    nodeName,
    token: (wanted, signal) => tokens.token(wanted, signal),
  });
  const given = { ...deps, objects, random: random.fork("plugins") };
  const builtIn = createBuiltInPlugins({
    ...given,
    trustBundles: createTrustBundles({ client, clock }),
    forgetTokens: (podUid) => tokens.forget(podUid),
  });
  const csi = createCsiPlugin({ ...given, nodeName }, { refreshAllocatable, volumeHealth });
  const flexHost = options.flexHost ?? localFlexHost(deps, flexVolumePluginDir);
  const flex = createFlexVolumes({ ...given, nodeName, flexHost }, { onChange });
  return {
    table: createPluginTable(() => [...builtIn, csi, ...flex.plugins()]),
    tokenDueAtMs: (podUid) => tokens.refreshAtMs(podUid),
    prepare: (signal) => flex.probe(signal),
    run: (signal) => flex.run(signal),
  };
}

function localFlexHost({ clock, slots }: NodePluginsDeps, directory: string): FlexHost {
  const world = createLocalWorld();
  const runProgram: typeof world.runProgram = (run) => {
    if (slots === undefined) return world.runProgram(run);
    const { command, args, signal } = run;
    // A driver's program may take minutes, as a CSI driver's answer may.
    const turn = { about: args.join(" "), doing: `${command} ${args[0] ?? ""}`, long: true, signal };
    return slots.program(turn, (both, onExit) => world.runProgram({ ...run, signal: both }).finally(onExit));
  };
  return createFlexHost({ clock, runProgram }, { directory, env: world.env });
}

import { Command } from "commander";
import type { LogLevel } from "../../base/log.ts";
import type { NodeOptions } from "../../processes/node.ts";
import { durationOption } from "../durations.ts";
import { booleanOption } from "../flags/boolean.ts";
import { addClientFlags, checkClientFlags, type ClientFlags } from "../flags/client.ts";
import { featureGatesOption, type FeatureGates } from "../flags/feature-gates.ts";
import { httpEndpointOption, type EndpointAddress } from "../flags/http-endpoint.ts";
import { logLevelOption } from "../flags/log-level.ts";

/** Beside the kubelet's 10248, 10250 and 10255. */
const HTTP_PORT = 10_246;

const STATS_PERIOD_MS = 60_000;
/** Twice the deadline of a call. */
const CALL_WINDOW_MS = 240_000;

/** Upstream's gates for this process. */
const GATES = { CSIVolumeHealth: false, SELinuxMount: true };

interface NodeFlags extends ClientFlags {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly pluginsRegistry?: string;
  readonly allowKubeletOnMachine?: boolean;
  readonly flexVolumePluginDir: string;
  readonly enableControllerAttachDetach: boolean;
  readonly volumeStatsAggPeriod: number;
  readonly csiCallWindow: number;
  readonly featureGates: FeatureGates<keyof typeof GATES>;
  readonly httpEndpoint: EndpointAddress | false;
  readonly logLevel: LogLevel;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(options: NodeOptions): Promise<void> {
  const { runNode } = await import("../../processes/node.ts");
  await runNode(options);
}

export function nodeCommand(start: (options: NodeOptions) => Promise<void> = run): Command {
  const command = new Command("node").description(
    "run the volume manager of one node, instead of the kubelet's; needs root; logs go to stderr as JSON",
  );
  addClientFlags(command);
  return command
    .requiredOption("--node-name <name>", "the Node object this machine is")
    .requiredOption("--root-dir <dir>", "where pods, plugins and records are kept, as the kubelet keeps them")
    .option(
      "--plugins-registry <dir>",
      "where drivers announce themselves (default: ROOT-DIR/plugins_registry)",
    )
    .option(
      "--allow-kubelet-on-machine",
      "start although a kubelet with another root directory runs here, of a cluster in a container",
    )
    .option(
      "--flex-volume-plugin-dir <dir>",
      "where FlexVolume drivers are",
      "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    )
    .addOption(
      booleanOption(
        "enable-controller-attach-detach",
        "leave attaching to the attach/detach controller; CSI drivers know no other way",
        true,
      ),
    )
    .addOption(
      durationOption("volume-stats-agg-period", "how often volumes of claims are asked how full they are", {
        defaultMs: STATS_PERIOD_MS,
        minMs: 1_000,
        why: "drivers would do nothing else",
      }),
    )
    .addOption(
      durationOption(
        "csi-call-window",
        "how long after it began a driver may be at a call that it did not answer",
        {
          defaultMs: CALL_WINDOW_MS,
          minMs: 1_000,
          why: "calls take that long",
        },
      ),
    )
    .addOption(featureGatesOption(GATES))
    .addOption(httpEndpointOption(HTTP_PORT))
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      `
Two agents must never work on one root directory, nor one beside a kubelet on the same node: it does not start where it finds
one.

Examples:
  mooring node --kubeconfig admin.conf --node-name worker-1 --root-dir /var/lib/kubelet
  curl 'http://127.0.0.1:${HTTP_PORT}/debug/volumes?pretty'`,
    )
    .action((flags: NodeFlags) => start(toOptions(command, flags)));
}

function toOptions(command: Command, flags: NodeFlags): NodeOptions {
  checkClientFlags(command, flags);
  return {
    kubeconfig: flags.kubeconfig,
    qps: flags.kubeApiQps,
    burst: flags.kubeApiBurst,
    nodeName: flags.nodeName,
    rootDir: flags.rootDir,
    pluginsRegistry: flags.pluginsRegistry,
    allowKubeletOnMachine: flags.allowKubeletOnMachine ?? false,
    flexVolumePluginDir: flags.flexVolumePluginDir,
    controllerAttaches: flags.enableControllerAttachDetach,
    volumeStatsPeriodMs: flags.volumeStatsAggPeriod,
    callWindowMs: flags.csiCallWindow,
    volumeHealth: flags.featureGates.CSIVolumeHealth,
    selinuxMount: flags.featureGates.SELinuxMount,
    httpEndpoint: flags.httpEndpoint === false ? undefined : flags.httpEndpoint,
    logLevel: flags.logLevel,
  };
}

import { Command } from "commander";
import type { LogLevel } from "../../base/log.ts";
import type { ControllerOptions } from "../../processes/controller.ts";
import { durationOption } from "../durations.ts";
import { booleanOption } from "../flags/boolean.ts";
import { addClientFlags, checkClientFlags, type ClientFlags } from "../flags/client.ts";
import { detachPolicyOption } from "../flags/detach-policy.ts";
import { httpEndpointOption, type EndpointAddress } from "../flags/http-endpoint.ts";
import {
  addLeaderElectionFlags,
  readLeaderElectionFlags,
  type LeaderElectionFlags,
} from "../flags/leader-election.ts";
import { logLevelOption } from "../flags/log-level.ts";

/** The port of kube-controller-manager, which this takes a controller over from. */
const HTTP_PORT = 10_257;

interface ControllerFlags extends ClientFlags, LeaderElectionFlags {
  readonly disableAttachDetachReconcileSync: boolean;
  readonly attachDetachReconcileSyncPeriod: number;
  readonly disableForceDetachOnTimeout: boolean;
  readonly flexVolumePluginDir: string;
  readonly detachPolicy: ControllerOptions["detachPolicies"];
  readonly httpEndpoint: EndpointAddress | false;
  readonly logLevel: LogLevel;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(options: ControllerOptions): Promise<void> {
  const { runController } = await import("../../processes/controller.ts");
  await runController(options);
}

export function controllerCommand(start: (options: ControllerOptions) => Promise<void> = run): Command {
  const command = new Command("controller").description(
    "run the attach/detach controller, instead of kube-controller-manager's; logs go to stderr as JSON",
  );
  addClientFlags(command);
  addAttachDetachFlags(command);
  addLeaderElectionFlags(command, { resourceName: "mooring-attach-detach-controller" });
  return command
    .addOption(httpEndpointOption(HTTP_PORT))
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      `
It must never run beside the original: start kube-controller-manager with
--controllers=*,-persistentvolume-attach-detach-controller first.

Examples:
  mooring controller --kubeconfig /etc/kubernetes/controller.conf
  mooring controller --kubeconfig .mooring/admin.kubeconfig --leader-elect=false
  mooring controller --kubeconfig admin.conf --detach-policy driver=ebs.csi.aws.com:when-fenced
  curl 'http://127.0.0.1:${HTTP_PORT}/debug/volumes?waiting=true&pretty'`,
    )
    .action((flags: ControllerFlags) => start(toOptions(command, flags)));
}

function addAttachDetachFlags(command: Command): void {
  command
    .addOption(
      booleanOption(
        "disable-attach-detach-reconcile-sync",
        "do not compare what is attached with the VolumeAttachments of the cluster",
        false,
      ),
    )
    .addOption(
      durationOption(
        "attach-detach-reconcile-sync-period",
        "how often everything is compared, as a safety net",
        {
          defaultMs: 60_000,
          minMs: 1_000,
          why: "to turn the comparison off use --disable-attach-detach-reconcile-sync",
        },
      ),
    )
    .addOption(
      booleanOption(
        "disable-force-detach-on-timeout",
        "never take a volume from an unhealthy node by time alone; only the out-of-service taint does",
        false,
      ),
    )
    .option(
      "--flex-volume-plugin-dir <dir>",
      "where FlexVolume drivers are",
      "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    )
    .addOption(detachPolicyOption());
}

function toOptions(command: Command, flags: ControllerFlags): ControllerOptions {
  checkClientFlags(command, flags);
  return {
    kubeconfig: flags.kubeconfig,
    qps: flags.kubeApiQps,
    burst: flags.kubeApiBurst,
    leaderElection: readLeaderElectionFlags(command, flags),
    httpEndpoint: flags.httpEndpoint === false ? undefined : flags.httpEndpoint,
    logLevel: flags.logLevel,
    disableReconcileSync: flags.disableAttachDetachReconcileSync,
    reconcileSyncPeriodMs: flags.attachDetachReconcileSyncPeriod,
    disableForceDetachOnTimeout: flags.disableForceDetachOnTimeout,
    detachPolicies: flags.detachPolicy,
    flexVolumePluginDir: flags.flexVolumePluginDir,
  };
}

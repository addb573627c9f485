import { Command, Option } from "commander";
import type { LogLevel } from "../../base/log.ts";
import type { CompanionsOptions } from "../../processes/companions.ts";
import { addClientFlags, checkClientFlags, type ClientFlags } from "../flags/client.ts";
import { logLevelOption } from "../flags/log-level.ts";
import { parseSocket } from "../flags/socket.ts";

interface CompanionsFlags extends ClientFlags {
  readonly csiAddress: string;
  readonly logLevel: LogLevel;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(options: CompanionsOptions): Promise<void> {
  const { runCompanions } = await import("../../processes/companions.ts");
  await runCompanions(options);
}

export function companionsCommand(start: (options: CompanionsOptions) => Promise<void> = run): Command {
  const command = new Command("companions").description(
    "run the claim binder, provisioner, resizer, snapshotter and scheduler of `mooring up` for a cluster without any; logs go to stderr as JSON",
  );
  return addClientFlags(command)
    .addOption(
      new Option("--csi-address <socket>", "the socket of the driver whose volumes are made")
        .makeOptionMandatory()
        .argParser(parseSocket),
    )
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      `
A cluster with a kube-controller-manager or a kube-scheduler has its own: it does not start beside them.

Examples:
  mooring companions --kubeconfig data/admin.kubeconfig --csi-address /run/loop/csi.sock`,
    )
    .action((flags: CompanionsFlags) => {
      checkClientFlags(command, flags);
      return start({
        kubeconfig: flags.kubeconfig,
        qps: flags.kubeApiQps,
        burst: flags.kubeApiBurst,
        socketPath: flags.csiAddress,
        logLevel: flags.logLevel,
      });
    });
}

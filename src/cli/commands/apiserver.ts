import { Command } from "commander";
import { listenOption, type ListenAddress } from "../listen.ts";

export function apiserverCommand(): Command {
  return new Command("apiserver")
    .description("run the embedded API server alone; logs go to stderr as JSON")
    .option("--data-dir <dir>", "where certificates and the kubeconfig are kept", "./.mooring")
    .addOption(listenOption())
    .addHelpText(
      "after",
      `
It writes DIR/admin.kubeconfig (mode 0600). In this version objects live in memory.

Examples:
  mooring apiserver --data-dir /var/lib/mooring --listen 127.0.0.1:6443
  kubectl --kubeconfig /var/lib/mooring/admin.kubeconfig get namespaces`,
    )
    .action(async ({ dataDir, listen }: { dataDir: string; listen: ListenAddress }) => {
      const { runApiServer } = await import("../../processes/apiserver.ts");
      await runApiServer({ dataDir, ...listen });
    });
}

import { Command, Option } from "commander";
import { listenOption, type ListenAddress } from "../listen.ts";
import { snapshotCommand } from "./apiserver/snapshot.ts";

interface ApiServerFlags {
  readonly dataDir: string;
  readonly listen: ListenAddress;
  readonly authorizationMode: "allow" | "rbac";
  readonly tokenAuthFile?: string;
}

/** Roles decide unless told otherwise: an account made for one thing should not be able to do another. */
export function authorizationModeOption(): Option {
  return new Option(
    "--authorization-mode <mode>",
    "rbac: roles and the node authorizer; allow: whoever has a credential",
  )
    .choices(["rbac", "allow"])
    .default("rbac");
}

export function apiserverCommand(): Command {
  return new Command("apiserver")
    .description("run the embedded API server alone, or save and restore its data; logs go to stderr as JSON")
    .addCommand(snapshotCommand())
    .option("--data-dir <dir>", "where objects, certificates and the kubeconfig are kept", "./.mooring")
    .addOption(listenOption())
    .addOption(authorizationModeOption())
    .option(
      "--token-auth-file <file>",
      'lines of token,user,uid,"group1,group2" that are accepted as bearer tokens',
    )
    .addHelpText(
      "after",
      `
It writes DIR/admin.kubeconfig (mode 0600) and keeps objects in DIR/store.

Examples:
  mooring apiserver --data-dir /var/lib/mooring --listen 127.0.0.1:6443
  kubectl --kubeconfig /var/lib/mooring/admin.kubeconfig get namespaces
  mooring apiserver snapshot save backup.snapshot --data-dir /var/lib/mooring`,
    )
    .action(async ({ listen, ...options }: ApiServerFlags) => {
      const { runApiServer } = await import("../../processes/apiserver.ts");
      await runApiServer({ ...options, ...listen });
    });
}

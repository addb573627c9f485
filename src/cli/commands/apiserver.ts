import { Command, InvalidArgumentError, Option } from "commander";
import { ALL_CONTROLLERS, parseControllers, type ControllerName } from "../../processes/apiserver-flags.ts";
import { listenOption, type ListenAddress } from "../listen.ts";
import { addHistoryOptions, toStoreOptions, type HistoryFlags } from "../flags/history.ts";
import { repairCommand } from "./apiserver/repair.ts";
import { snapshotCommand } from "./apiserver/snapshot.ts";

interface ApiServerFlags extends HistoryFlags {
  readonly dataDir: string;
  readonly listen: ListenAddress;
  readonly authorizationMode: "allow" | "rbac";
  readonly tokenAuthFile?: string;
  readonly controllers: ReadonlySet<ControllerName>;
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
  const command = new Command("apiserver")
    .description("run the embedded API server alone, or save and restore its data; logs go to stderr as JSON")
    .addCommand(snapshotCommand())
    .addCommand(repairCommand())
    .option("--data-dir <dir>", "where objects, certificates and the kubeconfig are kept", "./.mooring")
    .addOption(listenOption())
    .addOption(authorizationModeOption())
    .option(
      "--token-auth-file <file>",
      'lines of token,user,uid,"group1,group2" that are accepted as bearer tokens',
    )
    .addOption(
      new Option(
        "--controllers <list>",
        "which built-in controllers run: *, name, -name; leave to kube-controller-manager what it runs",
      )
        .default(ALL_CONTROLLERS, "*")
        .argParser(toControllers),
    );
  return addHistoryOptions(command)
    .addHelpText(
      "after",
      `
It writes DIR/admin.kubeconfig (mode 0600) and keeps objects in DIR/store.

Examples:
  mooring apiserver --data-dir /var/lib/mooring --listen 127.0.0.1:6443
  kubectl --kubeconfig /var/lib/mooring/admin.kubeconfig get namespaces
  mooring apiserver --controllers 'event-expiry'  # a kube-controller-manager does the rest
  mooring apiserver snapshot save backup.snapshot --data-dir /var/lib/mooring`,
    )
    .action(async ({ listen, tokenAuthFile, ...flags }: ApiServerFlags) => {
      const { dataDir, authorizationMode, controllers, ...history } = flags;
      const { runApiServer } = await import("../../processes/apiserver.ts");
      await runApiServer({
        ...{ dataDir, ...listen, authorizationMode, controllers, store: toStoreOptions(history) },
        ...(tokenAuthFile === undefined ? {} : { tokenAuthFile }),
      });
    });
}

function toControllers(text: string): ReadonlySet<ControllerName> {
  const controllers = parseControllers(text);
  if (typeof controllers === "string") throw new InvalidArgumentError(controllers);
  return controllers;
}

import { Command } from "commander";
import { apiserverCommand } from "./commands/apiserver.ts";
import { attacherCommand } from "./commands/attacher.ts";
import { companionsCommand } from "./commands/companions.ts";
import { completeCommand, completionCommand } from "./commands/completion.ts";
import { controllerCommand } from "./commands/controller.ts";
import { driverCommand } from "./commands/driver.ts";
import { getCommand } from "./commands/get.ts";
import { nodeCommand } from "./commands/node.ts";
import { simCommand } from "./commands/sim.ts";
import { upCommand } from "./commands/up.ts";
import { versionCommand, versionText } from "./commands/version.ts";
import { whyCommand } from "./commands/why.ts";
import { printText } from "./output/streams.ts";

/** The whole command line; a test can parse with it. */
export function createProgram(): Command {
  const program = new Command("mooring")
    .description("The Kubernetes volume control plane.")
    .version(versionText(), "--version", "print the version and end")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => printText(process.stdout, text),
      writeErr: (text) => printText(process.stderr, text),
    })
    // Flags after a command are that command's: `apiserver snapshot save --data-dir` is not the server's.
    .enablePositionalOptions()
    .showHelpAfterError("(run with --help for usage and examples)")
    .addHelpText(
      "after",
      `
Examples:
  mooring up                                 a cluster on this machine, in the foreground
  mooring up --listen 127.0.0.1:0            the same on a free port
  mooring apiserver --data-dir /var/lib/mooring
  mooring controller --kubeconfig FILE       the attach/detach controller, on any API server
  mooring attacher --csi-address SOCKET      the external-attacher of a CSI driver, on any API server
  mooring node --node-name NAME --root-dir DIR   the volume manager of one node
  mooring get volumes -A                     what is where, and what it waits for
  mooring why pod/NAME                       the one thing that keeps a pod from its volumes
  mooring sim --seed 17                      a simulated cluster with everything going wrong
  mooring version -o json

Exit codes: 0 done, 1 failed, 2 misused.`,
    );
  for (const command of [
    upCommand(),
    apiserverCommand(),
    controllerCommand(),
    attacherCommand(),
    driverCommand(),
    nodeCommand(),
    companionsCommand(),
    getCommand(),
    whyCommand(),
    simCommand(),
    completionCommand(),
    versionCommand(),
  ]) {
    program.addCommand(command);
  }
  program.addCommand(completeCommand(), { hidden: true });
  inherit(program);
  return program;
}

/** Errors are thrown to main, which knows the exit codes; all commands complain in the same way. */
function inherit(command: Command): void {
  command.exitOverride().helpCommand(false);
  for (const child of command.commands) inherit(child.copyInheritedSettings(command));
}

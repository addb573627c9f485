import { Command } from "commander";
import type { Display } from "../../processes/all-in-one.ts";
import { listenOption, type ListenAddress } from "../listen.ts";
import { authorizationModeOption } from "./apiserver.ts";

interface UpFlags {
  readonly dataDir: string;
  readonly listen: ListenAddress;
  readonly authorizationMode: "allow" | "rbac";
  readonly verbose?: boolean;
}

export function upCommand(): Command {
  return new Command("up")
    .description("run a cluster on this machine, in the foreground, until Ctrl-C")
    .option(
      "--data-dir <dir>",
      "where objects, certificates, the kubeconfig and the log are kept",
      "./.mooring",
    )
    .addOption(listenOption())
    .addOption(authorizationModeOption())
    .option("--verbose", "write logs to stderr instead of DIR/mooring.log")
    .addHelpText(
      "after",
      `
Examples:
  mooring up
  mooring up --data-dir /tmp/demo --listen 127.0.0.1:0
  kubectl --kubeconfig .mooring/admin.kubeconfig get namespaces`,
    )
    .action(async ({ listen, verbose = false, ...options }: UpFlags) => {
      // Loaded when it runs: `mooring --help` should not wait for TLS and metrics libraries.
      const { runAllInOne } = await import("../../processes/all-in-one.ts");
      const display = createDisplay((line) => process.stdout.write(`${line}\n`));
      await runAllInOne({ ...options, ...listen, verbose }, display);
    });
}

function createDisplay(print: (line: string) => void): Display {
  return {
    report({ component, detail, tookMs }) {
      print(`${component.padEnd(14)}  ready  ${`${Math.round(tookMs)} ms`.padStart(8)}  ${detail}`);
    },
    ready({ url, kubeconfig, logFile }) {
      const kubectl = `kubectl --kubeconfig ${shellQuoted(kubeconfig)}`;
      for (const line of [
        "",
        `address     ${url}`,
        `kubeconfig  ${kubeconfig}`,
        `log         ${logFile ?? "stderr"}`,
        "",
        "Try next:",
        `  ${kubectl} get namespaces`,
        `  ${kubectl} get nodes`,
        `  ${kubectl} api-resources`,
        "",
        "Objects are kept in the data directory: the next start finds them.",
        "Press Ctrl-C to stop.",
      ]) {
        print(line);
      }
    },
    stopping: (reason) => print(`\nstopping (${reason})`),
    stopped: () => print("stopped"),
  };
}

/** So that the command can be copied also when the path has a space in it. */
function shellQuoted(path: string): string {
  return /^[\w./:@%+,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

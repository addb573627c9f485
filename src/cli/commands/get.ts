import { Argument, Command, Option } from "commander";
import { addReadingFlags, type ReadingFlags } from "../flags/reading.ts";
import { LIST_NAMES, type ListName } from "../output/list-names.ts";

const FORMATS = ["table", "wide", "json", "yaml"] as const;

export interface GetFlags extends ReadingFlags {
  readonly output: (typeof FORMATS)[number];
  readonly watch?: boolean;
  readonly allNamespaces?: boolean;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(name: ListName, flags: GetFlags): Promise<void> {
  const { runGet } = await import("./get-run.ts");
  await runGet(name, flags);
}

export function getCommand(start: (name: ListName, flags: GetFlags) => Promise<void> = run): Command {
  const command = new Command("get")
    .description(
      "list volumes, attachments, nodes, drivers or operations, each with its state and why it waits",
    )
    .addArgument(new Argument("<what>", "what to list").choices(LIST_NAMES))
    .addOption(new Option("-o, --output <format>", "how to print it").choices(FORMATS).default("table"))
    .option("-w, --watch", "stay, and print a line for every change")
    .option("-A, --all-namespaces", "volumes of every namespace, and those that no claim has");
  return addReadingFlags(command)
    .addHelpText(
      "after",
      `
It works on any cluster, with Mooring in it or not, and only reads.

Examples:
  mooring get volumes                        of the namespace of your kubeconfig
  mooring get volumes -A -o wide
  mooring get attachments -w                 a line for every change
  mooring get nodes                          how many volumes each has, and may have
  mooring get operations -o json             what is under way or stuck`,
    )
    .action((name: ListName, flags: GetFlags) => {
      if (flags.allNamespaces === true && flags.namespace !== undefined) {
        command.error("error: --all-namespaces and --namespace exclude each other: give one of them");
      }
      return start(name, flags);
    });
}

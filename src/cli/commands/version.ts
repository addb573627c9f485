import { Command, Option } from "commander";
import { printLine } from "../output/streams.ts";
import { versionInfo } from "./version-info.ts";

export function versionCommand(): Command {
  return new Command("version")
    .description("print the version of this program, and what it works with")
    .addOption(
      new Option("-o, --output <format>", "how to print it").choices(["text", "json"]).default("text"),
    )
    .addHelpText("after", "\nExamples:\n  mooring version\n  mooring version -o json")
    .action(({ output }: { output: string }) => {
      const info = versionInfo();
      const text = `mooring ${info.version} (Kubernetes API ${info.kubernetesApi}, Node.js ${info.node})`;
      printLine(process.stdout, output === "json" ? JSON.stringify(info, null, 2) : text);
    });
}

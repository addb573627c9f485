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
      printLine(process.stdout, output === "json" ? JSON.stringify(versionInfo(), null, 2) : versionText());
    });
}

/** For people, in a line. */
export function versionText(): string {
  const { version, kubernetesApi, node } = versionInfo();
  return `mooring ${version} (Kubernetes API ${kubernetesApi}, Node.js ${node})`;
}

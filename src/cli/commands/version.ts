import { Command, Option } from "commander";
import { productInfo } from "../../processes/product.ts";

export function versionCommand(): Command {
  return new Command("version")
    .description("print the version of this program")
    .addOption(
      new Option("-o, --output <format>", "how to print it").choices(["text", "json"]).default("text"),
    )
    .addHelpText("after", "\nExamples:\n  mooring version\n  mooring version -o json")
    .action(({ output }: { output: string }) => {
      const info = productInfo();
      const text = `mooring ${info.version} (Kubernetes API ${info.kubernetesApi}, Node.js ${info.node})`;
      process.stdout.write(`${output === "json" ? JSON.stringify(info, null, 2) : text}\n`);
    });
}

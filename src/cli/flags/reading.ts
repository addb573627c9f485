import { InvalidArgumentError, Option, type Command } from "commander";

/** How a command that only reads finds the cluster, and Mooring in it. */
export interface ReadingFlags {
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly controllerEndpoint?: string;
  readonly attacherEndpoint?: string;
}

export function addReadingFlags(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "how to reach the cluster; without it KUBECONFIG, ~/.kube/config, or ./.mooring of a running `mooring up`",
    )
    .option("-n, --namespace <name>", "the namespace meant; without it that of the kubeconfig's context")
    .addOption(endpointOption("controller", "mooring controller", 10_257))
    .addOption(endpointOption("attacher", "mooring attacher", 8_080));
}

function endpointOption(name: string, what: string, port: number): Option {
  return new Option(
    `--${name}-endpoint <url>`,
    `where \`${what}\` answers, such as http://127.0.0.1:${port}: it knows more than objects show`,
  ).argParser(parseEndpoint);
}

function parseEndpoint(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, "");
  throw new InvalidArgumentError("Give a URL such as http://127.0.0.1:10257.");
}

/** As a process takes them: every field there, whether given or not. */
export function readReadingFlags(flags: ReadingFlags): {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
  readonly controllerEndpoint: string | undefined;
  readonly attacherEndpoint: string | undefined;
} {
  const { kubeconfig, namespace, controllerEndpoint, attacherEndpoint } = flags;
  return { kubeconfig, namespace, controllerEndpoint, attacherEndpoint };
}

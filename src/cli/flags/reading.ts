import { durationOption } from "../durations.ts";
import { InvalidArgumentError, Option, type Command } from "commander";

/** How a command that only reads finds the cluster, and Mooring in it. */
export interface ReadingFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly requestTimeout?: number;
  readonly controllerEndpoint?: string;
  readonly attacherEndpoint?: string;
  readonly nodeEndpoint?: readonly string[];
}

export function addReadingFlags(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "how to reach the cluster; without it KUBECONFIG, ~/.kube/config, or ./.mooring of a running `mooring up`",
    )
    .option("--context <name>", "the context of the kubeconfig that is meant; without it its current one")
    .option("-n, --namespace <name>", "the namespace meant; without it that of the kubeconfig's context")
    .addOption(
      durationOption("request-timeout", "how long the API server may take for its first answer", {
        defaultMs: 10_000,
        minMs: 1,
        why: "an answer takes some time",
      }),
    )
    .addOption(endpointOption("controller", "mooring controller", 10_257))
    .addOption(endpointOption("attacher", "mooring attacher", 8_080))
    .addOption(
      new Option(
        "--node-endpoint <url>",
        "where `mooring node` answers, such as http://127.0.0.1:10246; may be repeated, once for each node",
      ).argParser((text, before: readonly string[] | undefined) => [...(before ?? []), parseEndpoint(text)]),
    );
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
  readonly context: string | undefined;
  readonly namespace: string | undefined;
  readonly answerMs: number | undefined;
  readonly pages: readonly { readonly process: "controller" | "attacher" | "node"; readonly url: string }[];
} {
  const { kubeconfig, context, namespace, controllerEndpoint, attacherEndpoint, nodeEndpoint = [] } = flags;
  const pages = [
    ...(controllerEndpoint === undefined
      ? []
      : [{ process: "controller", url: controllerEndpoint } as const]),
    ...(attacherEndpoint === undefined ? [] : [{ process: "attacher", url: attacherEndpoint } as const]),
    ...nodeEndpoint.map((url) => ({ process: "node", url }) as const),
  ];
  return { kubeconfig, context, namespace, answerMs: flags.requestTimeout, pages };
}

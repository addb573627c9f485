import { Command, InvalidArgumentError, Option } from "commander";
import { addReadingFlags, type ReadingFlags } from "../flags/reading.ts";

/** What is asked about. */
export interface WhySubject {
  readonly kind: "pod" | "pvc" | "pv" | "node";
  readonly name: string;
}

export interface WhyFlags extends ReadingFlags {
  readonly output: "text" | "json";
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(subject: WhySubject, flags: WhyFlags): Promise<void> {
  const { runWhy } = await import("./why-run.ts");
  await runWhy(subject, flags);
}

export function whyCommand(start: (subject: WhySubject, flags: WhyFlags) => Promise<void> = run): Command {
  const command = new Command("why")
    .description("say why a pod, claim, volume or node waits: the one blocker, the chain to it, what helps")
    .argument("<object>", "pod/NAME, pvc/NAME, pv/NAME or node/NAME", parseSubject)
    .addOption(
      new Option("-o, --output <format>", "how to print it").choices(["text", "json"]).default("text"),
    );
  return addReadingFlags(command)
    .addHelpText(
      "after",
      `
The first sentence names the cause. It works on any cluster, with Mooring in it or not, and only reads.

Examples:
  mooring why pod/web
  mooring why pod/web -n shop -o json
  mooring why pvc/data -n shop
  mooring why pv/pvc-7f2 --kubeconfig admin.conf
  mooring why node/worker-2 --controller-endpoint http://127.0.0.1:10257
  mooring why pod/web --node-endpoint http://127.0.0.1:10246`,
    )
    .action((subject: WhySubject, flags: WhyFlags) => start(subject, flags));
}

/** The names that kubectl takes for the four kinds. */
const KINDS: Readonly<Record<string, WhySubject["kind"]>> = {
  ...{ po: "pod", pod: "pod", pods: "pod" },
  ...{ pvc: "pvc", persistentvolumeclaim: "pvc", persistentvolumeclaims: "pvc" },
  ...{ pv: "pv", persistentvolume: "pv", persistentvolumes: "pv" },
  ...{ no: "node", node: "node", nodes: "node" },
};

function parseSubject(text: string): WhySubject {
  const [, kindText = "", name = ""] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  const kind = Object.hasOwn(KINDS, kindText) ? KINDS[kindText] : undefined;
  if (kind === undefined || name === "") {
    throw new InvalidArgumentError("Give pod/NAME, pvc/NAME, pv/NAME or node/NAME.");
  }
  return { kind, name };
}

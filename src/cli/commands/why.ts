import { Command, Option } from "commander";
import { subjectKindNamed, type SubjectKind } from "../../views/subjects.ts";
import { addReadingFlags, type ReadingFlags } from "../flags/reading.ts";

/** What is asked about. */
export interface WhySubject {
  readonly kind: SubjectKind;
  readonly name: string;
}

/** One object, or everything that is stuck. */
export type WhyQuestion = WhySubject | "everything";

const FORMATS = ["text", "wide", "json"] as const;

export interface WhyFlags extends ReadingFlags {
  readonly output: (typeof FORMATS)[number];
  readonly allNamespaces?: boolean;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(question: WhyQuestion, flags: WhyFlags): Promise<void> {
  const { runWhy } = await import("./why-run.ts");
  await runWhy(question, flags);
}

export function whyCommand(start: (question: WhyQuestion, flags: WhyFlags) => Promise<void> = run): Command {
  const command = new Command("why")
    .description(
      "say why an object waits (the one blocker, the chain to it, what helps), or all that is stuck",
    )
    .argument("[object]", "KIND/NAME, or KIND and then the name")
    .argument("[name]", "the name, where it does not stand behind a slash")
    .addOption(new Option("-o, --output <format>", "how to print it").choices(FORMATS).default("text"))
    .option("-A, --all-namespaces", "everything that is stuck in the cluster, by cause, most affected first");
  return addReadingFlags(command)
    .addHelpText(
      "after",
      `
The first sentence names the cause. It works on any cluster, with Mooring in it or not, and only reads.
Kinds: ${KINDS_TOLD}; short names as for kubectl.

Examples:
  mooring why pod/web
  mooring why pod web -n shop -o json
  mooring why pvc/data -n shop
  mooring why sts/db -n shop                 which ordinal is stuck, and why
  mooring why vs/nightly -n shop             a VolumeSnapshot
  mooring why va/csi-7f2...                  whose it is, and why it does not go
  mooring why sc/fast                        the class, and the claims that wait for it
  mooring why -A                             what is stuck in the cluster, by cause
  mooring why node/worker-2 --controller-endpoint http://127.0.0.1:10257
  mooring why pod/web --node-endpoint http://127.0.0.1:10246`,
    )
    .action((object: string | undefined, name: string | undefined, flags: WhyFlags) => {
      const question = questionOf({ object, name, flags });
      if ("problem" in question) return command.error(`error: ${question.problem}`);
      return start(question.asked, flags);
    });
}

const KINDS_TOLD = "pod, pvc, pv, node, va, statefulset, deployment, volumesnapshot, storageclass, csidriver";

type Parsed = { readonly asked: WhyQuestion } | { readonly problem: string };

interface Given {
  readonly object: string | undefined;
  readonly name: string | undefined;
  readonly flags: WhyFlags;
}

function questionOf({ object, name, flags }: Given): Parsed {
  if (flags.allNamespaces === true) {
    if (object !== undefined) {
      return {
        problem: `--all-namespaces asks about everything: leave out ${object}, or give its namespace with -n`,
      };
    }
    return flags.namespace === undefined
      ? { asked: "everything" }
      : { problem: "--all-namespaces and --namespace exclude each other: give one of them" };
  }
  if (object === undefined)
    return { problem: "nothing is asked about: give KIND/NAME, or -A for all that is stuck" };
  const [kindText = "", ...names] = name === undefined ? object.split("/") : [object, ...name.split("/")];
  const kind = subjectKindNamed(kindText);
  if (kind === undefined)
    return { problem: `"${kindText}" is no kind that can be explained: give one of ${KINDS_TOLD}` };
  const [only = "", ...more] = names;
  if (only === "" || more.length > 0) {
    return {
      problem: `"${[object, name ?? ""].join(" ").trim()}" names no one object: give ${kind}/NAME, and its namespace with -n`,
    };
  }
  return { asked: { kind, name: only } };
}

/** The links of the chain from what makes a pod to its data, in causal order; a snapshot's class and content come last. */
export const LINKS = [
  "workload",
  "pod",
  "claim",
  "volume",
  "attachment",
  "node",
  "driver",
  "mount",
  "snapshot",
  "class",
  "content",
] as const;
export type Link = (typeof LINKS)[number];

/** How a volume that is stopped there is called in a column. */
export type StoppedState =
  "unbound" | "unscheduled" | "attaching" | "held" | "mounting" | "growing" | "detaching" | "waiting";

/**
 * One reason in words. `{name}` is replaced by what the finding names. Everything that a person reads about a reason
 * is here, so that the command line and the dashboard cannot explain one volume in two ways.
 */
export interface Words {
  /** Where the chain is broken. */
  readonly link: Link;
  readonly state: StoppedState;
  /** The reason of docs/reference/waiting that Mooring's controller has for the same thing, where it has one. */
  readonly waiting?: string;
  /** What blocks; the second half of the first sentence. */
  readonly says: string;
  /** What happens by itself, and when. */
  readonly next: string;
  readonly help: Help;
  /** Of a reason that is concluded from what is absent, or from words of others; any other is as certain as the objects. */
  readonly confidence?: "likely" | "unknown";
}

/** A command that can do no harm, or why there is none. */
export type Help =
  { readonly command: string; readonly note?: string } | { readonly none: string; readonly look?: string };

/** How whoever reads the answer reaches the cluster: every command that is proposed carries it, so that it works as it is. */
export interface CommandContext {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/**
 * The command for that cluster. Namespaces are in the commands themselves: they are those of the objects, not of whoever asks.
 * `kubectl` takes its global flags before the verb, `mooring` after its subcommand.
 */
export function inContext(command: string, { kubeconfig, context }: CommandContext): string {
  const flags = [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig ${shellQuoted(kubeconfig)}`]),
    ...(context === undefined ? [] : [`--context ${shellQuoted(context)}`]),
  ].join(" ");
  if (flags === "") return command;
  return command
    .replaceAll(/(^|\| )kubectl /g, (_, before: string) => `${before}kubectl ${flags} `)
    .replace(/^(mooring \w+ \S+)/, (_, start: string) => `${start} ${flags}`);
}

/** For a POSIX shell: as it is where that is safe, else between single quotes. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

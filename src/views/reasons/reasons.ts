import { oneLine } from "../fields.ts";
import { ATTACHMENT } from "./attachment.ts";
import { CLAIM } from "./claim.ts";
import { MOUNT } from "./mount.ts";
import { NODE } from "./node.ts";
import { POD } from "./pod.ts";
import { SNAPSHOT } from "./snapshot.ts";
import { STORAGE_CLASS } from "./storage-class.ts";
import { VOLUME } from "./volume.ts";
import { inContext, type CommandContext, type Help, type Words } from "./words.ts";
import { WORKLOAD } from "./workload.ts";

/** Everything that can keep a volume from its pod, by name: the closed set, and what is said of each. */
export const REASONS = {
  ...POD,
  ...CLAIM,
  ...VOLUME,
  ...NODE,
  ...ATTACHMENT,
  ...MOUNT,
  ...WORKLOAD,
  ...SNAPSHOT,
  ...STORAGE_CLASS,
};

export type Reason = keyof typeof REASONS;

/** What was seen, where: the object, the field in it, and its value. */
export interface Evidence {
  readonly object: string;
  readonly field: string;
  readonly value: string;
}

/** One thing that blocks: the reason, the names that its sentences need, and how it is known. */
export interface Finding {
  readonly reason: Reason;
  readonly names: Readonly<Record<string, string>>;
  readonly evidence: readonly Evidence[];
  readonly sinceMs?: number | undefined;
  /** Follows the sentence of the reason: what else has a part in it. */
  readonly besides?: string | undefined;
  /** What happens by itself, where it is known more exactly than the words of the reason have it. */
  readonly next?: string | undefined;
  /** What helps, where this case needs other help than the reason in general. */
  readonly help?: Help | undefined;
  /** Further findings of the same check, told after this one. */
  readonly alike?: readonly Finding[];
}

export function wordsOf({ reason }: Finding): Words {
  return REASONS[reason];
}

/** What blocks, as half a sentence. */
export function says(finding: Finding): string {
  const blocks = filled(wordsOf(finding).says, finding.names);
  return finding.besides === undefined
    ? blocks
    : `${blocks.replace(/[.\s]+$/, "")}; ${oneLine(finding.besides)}`;
}

export function nextOf(finding: Finding): string {
  return finding.next ?? filled(wordsOf(finding).next, finding.names);
}

export function helpOf(finding: Finding, context: CommandContext = {}): Help {
  const help = finding.help ?? wordsOf(finding).help;
  const fill = (template: string) => filled(template, finding.names);
  const command = (template: string) =>
    inContext(filled(template, mapped(finding.names, shellSafe)), context);
  if ("command" in help) {
    return { command: command(help.command), ...(help.note && { note: fill(help.note) }) };
  }
  return { none: fill(help.none), ...(help.look && { look: command(help.look) }) };
}

/** Commands are copied into a shell: a name that no API server would have let through is left out of them. */
function shellSafe(name: string): string {
  return /^[\w./:^-]*$/.test(name) ? name : "NAME";
}

function mapped(
  names: Readonly<Record<string, string>>,
  change: (name: string) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [key, change(name)]));
}

/** A name that nobody knows is said to be so: an explanation with a gap is better than none. */
function filled(template: string, names: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{([a-zA-Z]+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(names, name) ? names[name] : undefined;
    return value === undefined || value === "" ? "<unknown>" : oneLine(value);
  });
}

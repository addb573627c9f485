import type { ChainLink } from "./chain.ts";
import type { Cluster } from "./cluster.ts";
import {
  helpOf,
  nextOf,
  says,
  wordsOf,
  type Evidence,
  type Finding,
  type Reason,
} from "./reasons/reasons.ts";
import type { Help, Link } from "./reasons/words.ts";

/** One answer to one question. `-o json` prints it as it is; times are milliseconds only inside the program. */
export interface Explanation {
  readonly subject: string;
  /** The first sentence: the one blocker, or that there is none. */
  readonly summary: string;
  readonly healthy: boolean;
  readonly blocker?: Blocker;
  /** What else was found; it follows from the blocker, or comes after it. */
  readonly also: readonly string[];
  readonly chain: readonly ChainLink[];
  /** Other volumes or pods that take part, a line each. */
  readonly others: readonly string[];
  /** What could not be read, and is therefore not known. */
  readonly missingRights: readonly string[];
  /** Who was asked and did not answer. */
  readonly notes: readonly string[];
}

export interface Blocker {
  readonly reason: Reason;
  /** The reason of docs/reference/waiting for the same thing. */
  readonly waiting?: string;
  readonly link: Link;
  readonly sinceMs?: number;
  readonly evidence: readonly Evidence[];
  readonly next: string;
  readonly help: Help;
}

export interface Judgement {
  readonly subject: string;
  /** The first sentence, made of what blocks. */
  readonly lead: (blocks: string) => string;
  readonly healthy: string;
  readonly findings: readonly Finding[];
  readonly chain: readonly ChainLink[];
  readonly others: readonly string[];
}

export function explanation(cluster: Cluster, judgement: Judgement): Explanation {
  const { subject, lead, healthy, findings, chain, others } = judgement;
  const [first, ...rest] = findings;
  const told = first && says(first);
  const sentences = rest.map(says).filter((text) => text !== told);
  return {
    subject,
    summary: sentence(first === undefined ? healthy : lead(says(first))),
    healthy: first === undefined,
    ...(first && { blocker: blockerOf(first) }),
    also: [...new Set(sentences)],
    chain,
    others,
    missingRights: cluster.objects.unread.map(({ right, why }) => `${right}: ${why}`),
    notes: cluster.objects.notes,
  };
}

/** One capital, one full stop: messages of others come with theirs. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/[.\s]+$/, "")}.`;
}

function blockerOf(finding: Finding): Blocker {
  const { link, waiting } = wordsOf(finding);
  return {
    reason: finding.reason,
    link,
    ...(waiting !== undefined && { waiting }),
    ...(finding.sinceMs !== undefined && { sinceMs: finding.sinceMs }),
    evidence: finding.evidence,
    next: nextOf(finding),
    help: helpOf(finding),
  };
}

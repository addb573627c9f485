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
import { LINKS, type Help, type Link } from "./reasons/words.ts";
import type { ObjectKind } from "./objects.ts";

/**
 * `certain`: the objects say it themselves. `likely`: it is concluded, from a message or from what is absent, or something
 * that could speak against it was not readable. `unknown`: the facts contradict each other, and no known cause explains it.
 */
export type Confidence = "certain" | "likely" | "unknown";

/** One answer to one question. `-o json` prints it as it is; times are milliseconds only inside the program. */
export interface Explanation {
  readonly subject: string;
  /** The first sentence: the one blocker, or that there is none. */
  readonly summary: string;
  readonly healthy: boolean;
  /** How sure the first sentence is. */
  readonly confidence: Confidence;
  /** Facts of neighbouring links that cannot both be so, each with both sides; empty where all agree. */
  readonly contradictions: readonly string[];
  readonly blocker?: Blocker;
  /** What else was found; it follows from the blocker, or comes after it. */
  readonly also: readonly string[];
  readonly chain: readonly ChainLink[];
  /** Other volumes or pods that take part, a line each. */
  readonly others: readonly string[];
  /** What is so, and no trouble: who made it, what depends on it. */
  readonly facts: readonly string[];
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
  readonly facts?: readonly string[];
  readonly contradictions?: readonly string[];
  /** The kinds that the answer rests on; every one that was asked for, unless it says so. */
  readonly reads?: readonly ObjectKind[];
}

export function explanation(cluster: Cluster, judgement: Judgement): Explanation {
  const {
    subject,
    lead,
    healthy,
    findings,
    chain,
    others,
    facts = [],
    contradictions = [],
    reads,
  } = judgement;
  const [first, ...rest] = findings;
  const told = first && says(first);
  const sentences = rest.map(says).filter((text) => text !== told);
  return {
    subject,
    summary: sentence(first === undefined ? healthy : lead(says(first))),
    healthy: first === undefined,
    confidence: confidenceOf(cluster, first),
    contradictions,
    ...(first && { blocker: blockerOf(first, cluster) }),
    also: [...new Set(sentences)],
    chain,
    others,
    facts,
    missingRights: cluster.objects.unread
      .filter(({ kind }) => reads === undefined || reads.includes(kind))
      .map(({ right, why }) => `${right}: ${why}`),
    notes: cluster.objects.notes,
  };
}

/** Where in the chain each kind speaks: a cause is not less certain because something behind it was not readable. */
const LINK_OF: Readonly<Partial<Record<ObjectKind, Link>>> = {
  pods: "pod",
  claims: "claim",
  volumes: "volume",
  attachments: "attachment",
  nodes: "node",
  csiNodes: "driver",
  csiDrivers: "driver",
  events: "mount",
};

/** Of a cause as certain as its words; less so where something before it, which could be the real cause, was not readable. */
function confidenceOf(cluster: Cluster, first: Finding | undefined): Confidence {
  const until = first === undefined ? LINKS.length - 1 : LINKS.indexOf(wordsOf(first).link);
  const hidden = cluster.objects.unread.some(({ kind, readNamespace }) => {
    const link = LINK_OF[kind];
    return link !== undefined && readNamespace === undefined && LINKS.indexOf(link) <= until;
  });
  const own = first === undefined ? "certain" : (wordsOf(first).confidence ?? "certain");
  return own === "certain" && hidden ? "likely" : own;
}

/** One capital, one full stop: messages of others come with theirs. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/[.\s]+$/, "")}.`;
}

function blockerOf(finding: Finding, { context }: Cluster): Blocker {
  const { link, waiting } = wordsOf(finding);
  return {
    reason: finding.reason,
    link,
    ...(waiting !== undefined && { waiting }),
    ...(finding.sinceMs !== undefined && { sinceMs: finding.sinceMs }),
    evidence: finding.evidence,
    next: nextOf(finding),
    help: helpOf(finding, context),
  };
}

import type { SpecResult } from "./run-specs.ts";

/** The groups whose Conformance specs are judged here. */
export const SIGS = [
  "api-machinery",
  "apps",
  "auth",
  "instrumentation",
  "node",
  "scheduling",
  "storage",
] as const;
export type Sig = (typeof SIGS)[number];

/** Why a spec is not run. */
export const REASONS = {
  container: "asks what a container did: its output, exit code, files, probes, hooks or network",
  kubelet: "asks a kubelet to act on a running pod",
  crd: "creates a CustomResourceDefinition, or wants it in discovery",
  webhook: "calls an admission webhook, which runs in a pod",
  aggregation: "registers an API server behind this one",
} as const;
export type Reason = keyof typeof REASONS;

/** Names without the group in front and ` [Conformance]` at the end. */
export type Passing = Readonly<Record<Sig, readonly string[]>>;
export type LeftOut = Readonly<Record<Sig, Readonly<Partial<Record<Reason, readonly string[]>>>>>;

export function fullName(sig: Sig, name: string): string {
  return `[sig-${sig}] ${name} [Conformance]`;
}

export function passingNames(passing: Passing): string[] {
  return SIGS.flatMap((sig) => passing[sig].map((name) => fullName(sig, name)));
}

export function leftOutNames(leftOut: LeftOut): string[] {
  return SIGS.flatMap((sig) =>
    Object.values(leftOut[sig]).flatMap((names) => names.map((name) => fullName(sig, name))),
  );
}

/** Every spec of these groups is in exactly one of our lists; anything else is a sentence. */
export function disagreements(listed: readonly string[], ours: readonly string[]): string[] {
  const theirs = listed.filter((name) => SIGS.some((sig) => name.startsWith(`[sig-${sig}] `)));
  const twice = ours.filter((name, index) => ours.indexOf(name) !== index);
  return [
    ...theirs.filter((name) => !ours.includes(name)).map((name) => `in no list: ${name}`),
    ...ours.filter((name) => !theirs.includes(name)).map((name) => `no such spec: ${name}`),
    ...twice.map((name) => `listed twice: ${name}`),
  ];
}

/** Those that want the cluster for themselves. */
export function isSerial(name: string): boolean {
  return name.includes("[Serial]") || isDisruptive(name);
}

export function isDisruptive(name: string): boolean {
  return name.includes("[Disruptive]");
}

/** As many lanes as asked for, dealt out in turn: neighbours are alike, and take about as long. */
export function dealOut(names: readonly string[], lanes: number): string[][] {
  return Array.from({ length: lanes }, (_, lane) =>
    names.filter((_name, index) => index % lanes === lane),
  ).filter((lane) => lane.length > 0);
}

/** What is wrong with a run: each spec that did not pass, and each that was asked for and has no result. */
export function complaints(asked: readonly string[], results: readonly SpecResult[]): string[] {
  const byName = new Map(results.map((result) => [result.name, result]));
  return asked.flatMap((name) => {
    const result = byName.get(name);
    if (result === undefined) return [`${name}: was not run`];
    return result.state === "passed" ? [] : [`${name}: ${result.state}, ${result.message}`];
  });
}

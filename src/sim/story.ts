import type { TraceLine } from "./trace.ts";

/** The life of one volume, as a sequence diagram has it. */
export interface Story {
  readonly seed: number;
  readonly volume: string;
  /** `for claim app1`, where one is known. */
  readonly claim?: string;
  /** From left to right. */
  readonly participants: readonly string[];
  readonly entries: readonly Entry[];
}

export interface Entry {
  readonly atMs: number;
  readonly from: string;
  /** Undefined for what one does alone. */
  readonly to?: string;
  readonly text: string;
  readonly kind: "message" | "fault" | "broken";
  /** How often in a row. */
  readonly times: number;
  readonly lastAtMs: number;
}

/** A fault belongs to the story when something with whom it met follows within this time. */
const FAULT_MS = 60_000;
const TEXT_CHARS_MAX = 150;
const STORAGE: ReadonlySet<string> = new Set(["san", "san-driver", "loop", "loop-driver", "infra"]);
const FAULT_TELLERS: ReadonlySet<string> = new Set(["plan", "operator", "lifecycle"]);

/** From the lines of a run with logs. */
export function storyOf(
  lines: readonly TraceLine[],
  { seed, volume }: { readonly seed: number; readonly volume: string },
): Story {
  const names = namesOf(lines, volume);
  const own = lines.filter((line) => isOf(line, names) && isWorthTelling(line));
  const met = own.flatMap(({ atMs, who, about }) =>
    [who, about?.to, about?.node].flatMap((name) =>
      name === undefined ? [] : [{ atMs, name: participantOf(name) }],
    ),
  );
  const concerns = (name: string, atMs: number) =>
    atMs > 0 &&
    met.some((meeting) => meeting.name === name && meeting.atMs >= atMs && meeting.atMs <= atMs + FAULT_MS);
  const told = lines.flatMap((line) => {
    if (line.who === "VIOLATION") return line.what.includes(volume) ? [toEntry(line, volume)] : [];
    if (own.includes(line)) return [toEntry(line, volume)];
    const target = faultTargetOf(line);
    return target !== undefined && concerns(target, line.atMs) ? [toFault(line, target)] : [];
  });
  const used = new Set(told.flatMap(({ from, to }) => [from, ...(to === undefined ? [] : [to])]));
  const nodes = [...used].filter((name) => name.startsWith("node-")).sort((a, b) => (a < b ? -1 : 1));
  const fixed = ["workload", "controller", "attacher", "storage"].filter((name) => used.has(name));
  const [claim] = names.claims;
  return {
    ...{ seed, volume, participants: [...fixed, ...nodes], entries: collapse(told) },
    ...(claim !== undefined && { claim }),
  };
}

interface Names {
  readonly volumes: ReadonlySet<string>;
  readonly claims: ReadonlySet<string>;
  readonly pods: ReadonlySet<string>;
}

/** Everything that is the volume under another name. */
function namesOf(lines: readonly TraceLine[], volume: string): Names {
  const volumes = new Set([volume]);
  const claims = new Set<string>();
  const pods = new Set<string>();
  for (const { about } of lines) {
    if (about?.volume !== volume) continue;
    if (about.persistentVolume !== undefined) volumes.add(about.persistentVolume);
    if (about.claim !== undefined) claims.add(about.claim);
  }
  for (const { about } of lines)
    if (about?.pod !== undefined && about.claim !== undefined && claims.has(about.claim)) pods.add(about.pod);
  return { volumes, claims, pods };
}

function isOf({ about }: TraceLine, { volumes, claims, pods }: Names): boolean {
  if (about === undefined) return false;
  if (about.volume !== undefined) return volumes.has(about.volume);
  if (about.claim !== undefined) return claims.has(about.claim);
  return about.pod !== undefined && pods.has(about.pod);
}

/** Logs repeat what the objects say, except for what went wrong; the storage system what its callers say. */
function isWorthTelling({ isDetail, isWarning, who, what }: TraceLine): boolean {
  if (isDetail === true) return isWarning === true;
  return (who !== "san" && who !== "loop") || what.endsWith("is deleted");
}

function participantOf(name: string): string {
  if (name.startsWith("node-")) return name.replace(/-driver$/, "").replace(/^(node-\d+).*$/, "$1");
  if (name.startsWith("controller")) return "controller";
  if (name === "attacher") return "attacher";
  if (STORAGE.has(name)) return "storage";
  return "workload";
}

/** Whom a line that is not about the volume hits; undefined for one that hits nobody. */
function faultTargetOf({ who, what, about, isDetail }: TraceLine): string | undefined {
  if (isDetail === true || what === "everything is healed") return undefined;
  if (FAULT_TELLERS.has(who)) return about?.to === undefined ? undefined : participantOf(about.to);
  return /^(starts|ends\b.*|is switched on)$/.test(what) ? participantOf(who) : undefined;
}

function toFault({ atMs, who, what }: TraceLine, target: string): Entry {
  const text = FAULT_TELLERS.has(who) || who === target ? what : `${who} ${what}`;
  return { atMs, from: target, text: shortened(text), kind: "fault", times: 1, lastAtMs: atMs };
}

function toEntry({ atMs, who, what, about }: TraceLine, volume: string): Entry {
  const kind = who === "VIOLATION" ? "broken" : "message";
  const from = kind === "broken" ? participantOf(about?.node ?? "workload") : participantOf(who);
  const to = about?.to === undefined ? undefined : participantOf(about.to);
  return {
    ...{ atMs, from, kind, times: 1, lastAtMs: atMs },
    text: shortened(kind === "broken" ? what : withoutVolume(what, volume)),
    ...(to !== undefined && to !== from && { to }),
  };
}

/** The whole story is about it. */
function withoutVolume(text: string, volume: string): string {
  return text
    .replace(/kubernetes\.io\/csi\/[^^ ]+\^/g, "")
    .replace(` volume=${volume} `, " ")
    .replace(` of ${volume} on `, " on ")
    .replace(`Volume ${volume}`, "Volume");
}

function shortened(text: string): string {
  const [line = ""] = text.replace(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f-]{17}/g, "…").split("\n", 1);
  return line.length > TEXT_CHARS_MAX ? `${line.slice(0, TEXT_CHARS_MAX - 1)}…` : line;
}

/** The same again and again is told once, with how often and how long. */
function collapse(entries: readonly Entry[]): readonly Entry[] {
  const told: Entry[] = [];
  for (const entry of entries) {
    const last = told.at(-1);
    const isSame = last?.from === entry.from && last.to === entry.to && last.text === entry.text;
    if (last !== undefined && isSame)
      told[told.length - 1] = { ...last, times: last.times + 1, lastAtMs: entry.atMs };
    else told.push(entry);
  }
  return told;
}

/** The text with how often it came. */
export function labelOf({ text, times, lastAtMs }: Entry): string {
  return times === 1 ? text : `${text} (${times} times, until ${(lastAtMs / 1_000).toFixed(1)} s)`;
}

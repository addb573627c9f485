import { withDeadline } from "../base/clock.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { isObject } from "../volumes/untrusted.ts";
import { field, objectsAt, textAt, timeAt } from "../views/fields.ts";
import type { MooringWait, NodePage } from "../views/objects.ts";
import { ProcessError } from "./errors.ts";

/** A page of one process of Mooring, and how to read it. */
export interface DebugPage {
  readonly process: MooringWait["process"];
  /** `http://127.0.0.1:10257`. */
  readonly url: string;
}

/** 10,000 waits are 5 MB: more than anybody reads, and what the pages answer at most. */
const PATHS: Readonly<Record<MooringWait["process"], string>> = {
  controller: "/debug/volumes?waiting=true&limit=10000",
  attacher: "/debug/attachments?waiting=true&limit=10000",
  node: "/debug/volumes",
};

/** What a page says: what volumes wait for, and of a node what it has mounted. */
export interface PageAnswer {
  readonly waits: readonly MooringWait[];
  readonly nodePages: readonly NodePage[];
}

export async function readPage(
  { process, url }: DebugPage,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<PageAnswer> {
  const answer = await readJson(`${url}${PATHS[process]}`, `mooring ${process}`, timeoutMs);
  const nowMs = createSystemClock().wall().getTime();
  return { waits: WAITS[process](answer, nowMs), nodePages: process === "node" ? [nodePage(answer)] : [] };
}

/** The mounts that a node knows of; one that says nothing of itself has not read its disk yet. */
export function nodePage(answer: unknown): NodePage {
  const mounts = objectsAt(answer, "volumes").flatMap((item) =>
    objectsAt(item, "pods").map((pod) => ({
      volume: textAt(item, "volume"),
      podUid: textAt(pod, "uid"),
      state: textAt(pod, "state"),
    })),
  );
  return { node: textAt(answer, "node"), synced: field(answer, "synced") === true, mounts };
}

/**
 * Whatever the answer looks like: an older or newer Mooring may say less. Its times are moved to the clock of whoever reads it at
 * `nowMs`: what matters is how long ago and in how long, and the clock of another machine may be minutes off.
 */
export function controllerWaits(answer: unknown, nowMs: number): readonly MooringWait[] {
  const of = (item: object, pod: string) =>
    waitOf(item, { process: "controller", pod }, aheadMs(answer, nowMs));
  const volumes = objectsAt(answer, "volumes").flatMap((item) => of(item, ""));
  return [...volumes, ...objectsAt(answer, "unresolved").flatMap((item) => of(item, textAt(item, "pod")))];
}

export function attacherWaits(answer: unknown, nowMs: number): readonly MooringWait[] {
  const ms = aheadMs(answer, nowMs);
  return objectsAt(answer, "attachments").flatMap((item) => waitOf(item, { process: "attacher" }, ms));
}

/** Of a volume by itself, of each pod that waits for it or leaves it, and of what could not be followed. */
export function nodeWaits(answer: unknown, nowMs: number): readonly MooringWait[] {
  const ms = aheadMs(answer, nowMs);
  const at = { process: "node", node: textAt(answer, "node") } as const;
  const volumes = objectsAt(answer, "volumes").flatMap((item) => {
    const [volume, pods] = [textAt(item, "volume"), objectsAt(item, "pods")];
    const isWanted = (pod: object) => field(pod, "wanted") !== false;
    const ofPods = pods.flatMap((pod) =>
      waitOf(
        pod,
        {
          ...at,
          ...{ volume, pod: textAt(pod, "pod"), podUid: textAt(pod, "uid") },
          leaving: !isWanted(pod),
        },
        ms,
      ),
    );
    return [...ofPods, ...waitOf(item, { ...at, leaving: !pods.some(isWanted) }, ms)];
  });
  const unresolved = objectsAt(answer, "unresolved").flatMap((item) =>
    waitOf({ waitingFor: { ...item, reason: "unresolved" } }, { ...at, ...podVolume(item) }, ms),
  );
  return [...volumes, ...unresolved];
}

function podVolume(item: object): { readonly pod: string; readonly volume: string } {
  return { pod: textAt(item, "pod"), volume: textAt(item, "volume") };
}

type ReadWaits = (answer: unknown, nowMs: number) => readonly MooringWait[];

const WAITS: Readonly<Record<MooringWait["process"], ReadWaits>> = {
  controller: controllerWaits,
  attacher: attacherWaits,
  node: nodeWaits,
};

/** By how much the clock of whoever reads a page is ahead of the one that wrote it; 0 of a page that does not say when it was made. */
function aheadMs(answer: unknown, nowMs: number): number {
  return nowMs - (timeAt(answer, "time") ?? nowMs);
}

function waitOf(
  item: object,
  known: Partial<MooringWait> & Pick<MooringWait, "process">,
  ms: number,
): readonly MooringWait[] {
  const wait = field(item, "waitingFor");
  if (!isObject(wait)) return [];
  return [
    {
      volume: textAt(item, "volume"),
      persistentVolume: textAt(item, "persistentVolume"),
      node: textAt(item, "node"),
      pod: "",
      leaving: false,
      ...known,
      reason: textAt(wait, "reason"),
      frozen: field(wait, "frozen") === true,
      message: textAt(wait, "message"),
      sinceMs: later(timeAt(wait, "since"), ms),
      untilMs: later(timeAt(wait, "until"), ms),
    },
  ];
}

function later(atMs: number | undefined, ms: number): number | undefined {
  return atMs === undefined ? undefined : atMs + ms;
}

async function readJson(url: string, what: string, timeoutMs: number): Promise<unknown> {
  const onDeadline = () => new Error(`no answer within ${timeoutMs} ms`);
  let answer: { readonly ok: boolean; readonly status: number };
  let text: string;
  try {
    [answer, text] = await withDeadline(
      createSystemClock(),
      { ms: timeoutMs, onDeadline },
      async (signal) => {
        const response = await fetch(url, { signal });
        return [response, await response.text()];
      },
    );
  } catch (error) {
    throw cannotAsk(url, what, reasonOf(error));
  }
  if (!answer.ok) throw cannotAsk(url, what, `it answers ${answer.status}`);
  try {
    return JSON.parse(text);
  } catch {
    throw cannotAsk(url, what, "its answer is not JSON");
  }
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}

function cannotAsk(url: string, what: string, why: string): ProcessError {
  return new ProcessError(
    "NotWorking",
    `cannot ask ${what} at ${url}: ${why}; check the address, or leave the flag out to explain from objects alone`,
  );
}

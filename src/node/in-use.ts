import { backoffMs } from "../base/backoff.ts";
import type { Clock, Timer } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { compareVersions } from "../kube/object.ts";

/**
 * `node.status.volumesInUse`: the promise to the attach/detach controller that what is on it is not detached. A
 * projection of what is wanted and held, written as soon as it changes, until the server agrees.
 *
 * A volume counts as reported while one and the same node object, the newest seen, lists it, and no list without it
 * was sent since. Looking for `volumesAttached` in that same object then closes the race with a detach: the
 * controller takes a volume off `volumesAttached` first and reads `volumesInUse` after that, so an object with both
 * lies before the first, and its reading will see the second.
 *
 * The list is written as a whole, and a request whose answer was lost may be carried out later: it would then take off what
 * was put on meanwhile. So each carries the version of the node it was made from, and a late one is refused once anything
 * else was written; until then what it takes off does not count as reported.
 */
export interface InUseList {
  isReported(volume: string): boolean;
  /** The device path by which the newest node lists it as attached. */
  attachedPath(volume: string): string | undefined;
  /** The newest node object seen, by watch or as an answer. */
  node(): Node | undefined;
  seeNode(node: Node | undefined): void;
  /** What should be on the list, as far as this node knows it now. */
  intended(): ReadonlySet<string>;
  /** Whether this volume belongs on the list may have changed: it is asked about again before the next writing. */
  touch(volume: string): void;
  /** The list should be looked at. */
  changed(): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface InUseDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether a volume belongs on the list, by what is known now. */
  readonly belonging: (volume: string) => Belonging;
  /** What stays on the list although nobody knows why, and whether something else than a volume is unknown. */
  readonly earlier: () => { readonly names: ReadonlySet<string>; readonly strays: boolean };
  /** False while the list must be left as it was found. */
  readonly ready: () => boolean;
  /** Something may be reported, or attached, that was not before, or the other way round. */
  readonly onChange: (volumes: ReadonlySet<string>) => void;
}

/** `unknown`: something is here that cannot be named, and may be whatever the list said before. */
export type Belonging = "in-use" | "not-in-use" | "unknown";

/** Volumes of one pod, and of pods that come together, go into one request. */
const COALESCE_MS = 20;
/** 1, 2, 4, ... up to 30 s between tries while the server refuses. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
/** A kube-apiserver gives up a request after 60 s; the rest is for what its clock and the network add. */
const LATE_MS = 70_000;

/** Between repairs of one and the same list that somebody else keeps changing; forgiven once it was left alone that long. */
const CONTEST = { initialMs: 1_000, maxMs: 30_000 } as const;
const FORGIVEN_MS = 600_000;

/** A list whose answer got lost, and what it takes off if it is carried out after all. */
interface LateList {
  /** Of the node it was made from: the server refuses it once the node has another. */
  readonly version: string | undefined;
  readonly takesOff: ReadonlySet<string>;
}

export function createInUseList(deps: InUseDeps, { nodeName }: { readonly nodeName: string }): InUseList {
  const { client, clock, log } = deps;
  let newest: Node | undefined;
  let inUse: ReadonlySet<string> = new Set();
  let attached: ReadonlyMap<string, string> = new Map();
  /** Left out of a list that was sent and has not been answered: the server may or may not have them. */
  const withdrawn = new Set<string>();
  /** Bound: what was lost within `LATE_MS`, while nobody wrote the node. */
  const late = new Map<LateList, Timer>();
  const intent = createIntent(deps, (volume) => inUse.has(volume));
  const contest = createContest(clock);
  let held: Timer | undefined;
  let dirty = false;
  let wake: () => void = () => undefined;

  function seeNode(node: Node | undefined): void {
    if (node && newest && isOlder(node, newest)) return;
    const before = { inUse, attached };
    newest = node;
    inUse = new Set(node?.status?.volumesInUse ?? []);
    attached = new Map(node?.status?.volumesAttached?.map(({ name, devicePath }) => [name, devicePath]));
    const touched = difference(before.inUse, inUse);
    for (const name of touched) intent.touch(name);
    for (const name of difference(new Set(before.attached.keys()), new Set(attached.keys())))
      touched.add(name);
    for (const list of late.keys())
      if (list.version !== node?.metadata.resourceVersion) for (const name of forget(list)) touched.add(name);
    if (touched.size > 0) deps.onChange(touched);
    if (differs()) changed();
  }

  function forget(list: LateList): ReadonlySet<string> {
    late.get(list)?.cancel();
    return late.delete(list) ? list.takesOff : new Set();
  }

  /** A later list that changes nothing leaves the node's version as it is, and the lost one still welcome. */
  function mayComeLate(list: LateList): void {
    if (list.takesOff.size === 0) return;
    const overtime = clock.after(LATE_MS, () => deps.onChange(forget(list)));
    late.set(list, overtime);
  }

  function changed(): void {
    dirty = true;
    wake();
  }

  function differs(): boolean {
    if (!deps.ready() || newest === undefined) return false;
    return withdrawn.size > 0 || intent.differs(inUse);
  }

  async function write(signal: AbortSignal): Promise<void> {
    if (!deps.ready() || newest === undefined) return;
    const intended = intent.names();
    const list = [...intended].sort();
    if (isContested(list)) return;
    const takesOff = new Set([...inUse].filter((name) => !intended.has(name)));
    for (const name of takesOff) withdrawn.add(name);
    const { resourceVersion } = newest.metadata;
    const value = {
      metadata: { resourceVersion },
      status: { volumesInUse: list.length === 0 ? null : list },
    };
    const patch = { type: "merge", value } as const;
    // Urgent: after a start every object of every pod is asked for at once, and new pods wait for this.
    const options = { subresource: "status", urgent: true, signal } as const;
    const answer = await client
      .patch(nodes, { name: nodeName }, patch, options)
      .catch((error: unknown): never => {
        if (isKubeError(error) && error.outcomeUnknown) mayComeLate({ version: resourceVersion, takesOff });
        throw error;
      });
    contest.wrote(list);
    const resolved = [...withdrawn];
    withdrawn.clear();
    log.info("volumes in use reported", { node: nodeName, volumes: list.length });
    seeNode(answer);
    if (resolved.length > 0) deps.onChange(new Set(resolved));
  }

  /** Whether another writer changes this very list again and again: it is written once more when its time has come. */
  function isContested(list: readonly string[]): boolean {
    const holdMs = contest.holdMs(list);
    held?.cancel();
    held = holdMs > 0 ? clock.after(holdMs, changed) : undefined;
    return holdMs > 0;
  }

  /** Somebody else wrote the node since: from its present state the list is made again at once. */
  async function look(signal: AbortSignal): Promise<boolean> {
    try {
      seeNode(await client.get(nodes, { name: nodeName }, { signal }));
      dirty = true;
      return true;
    } catch {
      return false;
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    try {
      await writeUntil(signal);
    } finally {
      for (const list of late.keys()) forget(list);
      held?.cancel();
    }
  }

  async function writeUntil(signal: AbortSignal): Promise<void> {
    let delayMs = RETRY_MS;
    const onAbort = () => wake();
    signal.addEventListener("abort", onAbort, { once: true });
    while (!signal.aborted) {
      if (!dirty) await new Promise<void>((resolve) => (wake = resolve));
      try {
        await clock.sleep(COALESCE_MS, signal);
        dirty = false;
        if (differs()) await write(signal);
        delayMs = RETRY_MS;
      } catch (error) {
        if (isOver(signal)) return;
        if (isKubeError(error, "Conflict") && (await look(signal))) continue;
        if (isKubeError(error, "NotFound")) seeNode(undefined);
        log.warn("cannot report the volumes in use", { node: nodeName, error, retryInMs: delayMs });
        dirty = true;
        await clock.sleep(delayMs, signal).catch(() => undefined);
        delayMs = Math.min(delayMs * 2, RETRY_MS_MAX);
      }
    }
  }

  return {
    isReported: (volume) =>
      inUse.has(volume) &&
      !withdrawn.has(volume) &&
      ![...late.keys()].some(({ takesOff }) => takesOff.has(volume)),
    attachedPath: (volume) => attached.get(volume),
    node: () => newest,
    seeNode,
    intended: () => intent.names(),
    touch: (volume) => intent.touch(volume),
    changed,
    run,
  };
}

/** How long to hold a list that was written already: not the first time, then 1, 2, 4, ... s. */
function createContest(clock: Clock) {
  let last: string | undefined;
  let times = 0;
  let wroteAtMs = -Infinity;
  return {
    holdMs(list: readonly string[]): number {
      if (list.join() !== last || clock.now() - wroteAtMs > FORGIVEN_MS) times = 0;
      return times === 0 ? 0 : wroteAtMs + backoffMs(times, CONTEST) - clock.now();
    },
    wrote(list: readonly string[]): void {
      times = list.join() === last ? times + 1 : 0;
      last = list.join();
      wroteAtMs = clock.now();
    },
  };
}

/**
 * What belongs on the list, kept from one look to the next: with 500 volumes on the node, a step of one costs a look at
 * one. Only what was touched is asked about again.
 */
function createIntent(
  { belonging, earlier }: Pick<InUseDeps, "belonging" | "earlier">,
  isListed: (volume: string) => boolean,
) {
  const names = new Set<string>();
  const unknown = new Set<string>();
  /** Where the node's list says something else. */
  const off = new Set<string>();
  const touched = new Set<string>();

  function put(set: Set<string>, name: string, isIn: boolean): void {
    if (isIn) set.add(name);
    else set.delete(name);
  }

  function settle(): void {
    for (const name of touched) {
      const answer = belonging(name);
      put(names, name, answer === "in-use");
      put(unknown, name, answer === "unknown");
      put(off, name, names.has(name) !== isListed(name));
    }
    touched.clear();
  }

  function kept(): ReadonlySet<string> | undefined {
    const before = earlier();
    return unknown.size > 0 || before.strays ? before.names : undefined;
  }

  function all(): ReadonlySet<string> {
    settle();
    const more = kept();
    return more ? new Set([...names, ...more]) : names;
  }

  return {
    touch: (name: string) => void touched.add(name),
    names: all,
    differs(listed: ReadonlySet<string>): boolean {
      settle();
      return kept() ? difference(all(), listed).size > 0 : off.size > 0;
    },
  };
}

/** Asked again after an await, which the compiler takes for the same answer. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}

function isOlder(node: Node, than: Node): boolean {
  const order = compareVersions(node.metadata.resourceVersion ?? "", than.metadata.resourceVersion ?? "");
  return order !== undefined && order < 0;
}

/** What only one of the two has. */
function difference(one: ReadonlySet<string>, other: ReadonlySet<string>): Set<string> {
  const only = new Set([...one].filter((name) => !other.has(name)));
  for (const name of other) if (!one.has(name)) only.add(name);
  return only;
}

import type { Clock } from "../../base/clock.ts";
import { resourceName } from "../../kube/object.ts";
import { storedKind } from "../kinds.ts";
import { createBell, type Bell } from "../bell.ts";
import { parseFilter, type Filter } from "../filter.ts";
import { parseWatchOptions, type WatchOptions } from "../options.ts";
import type { ResourceRequest, Verb, VerbDeps } from "../request.ts";
import { reachVersion } from "../snapshot.ts";
import type { StoredObject, StoreEvent, StoreWatch } from "../store/store.ts";
import { addedLine, bookmarkLine, eventLine, expiredLine } from "../watch-events.ts";
import { takePage } from "./list.ts";

/** Often enough that a client which resumes from a bookmark is well inside the five minutes of history. */
const BOOKMARK_MS = 60_000;
/** Watches that name no timeout end after 30 to 60 minutes, spread so that they do not come back together. */
const TIMEOUT_MS_MIN = 30 * 60_000;
/**
 * Lines are joined into chunks of about this size: one write to the socket for a burst of events. A watcher that is
 * behind holds one, twice: with 64 kB the memory of 3,000 of them peaked at 1,885 MiB, with 8 kB at 794.
 */
const CHUNK_CHARS = 8 * 1024;

/** Every write from a given point on, as it happens, until the timeout, the client or the server ends it. */
export const watch: Verb = async (deps, request) => {
  const options = parseWatchOptions(request.query);
  const filter = parseFilter(request.kind, request.query);
  const plan = await planStart(deps, options, request.signal);
  const timeoutMs =
    options.timeoutSeconds === undefined
      ? TIMEOUT_MS_MIN + deps.random.int(TIMEOUT_MS_MIN)
      : options.timeoutSeconds * 1_000;
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: stream(deps, request, { ...plan, filter, timeoutMs, bookmarks: options.allowWatchBookmarks }),
  };
};

interface Start {
  /** The state to send first, as if all of it had just been added; otherwise events after this revision. */
  readonly from: "state" | number;
  /** Say where the state ends. */
  readonly closesState: boolean;
}

interface Plan extends Start {
  readonly filter: Filter;
  readonly timeoutMs: number;
  readonly bookmarks: boolean;
}

async function planStart(deps: VerbDeps, options: WatchOptions, signal: AbortSignal): Promise<Start> {
  const { resourceVersion = 0, sendInitialEvents, allowWatchBookmarks } = options;
  if (sendInitialEvents === true) {
    await reachVersion(deps, resourceVersion, signal);
    return { from: "state", closesState: allowWatchBookmarks };
  }
  if (resourceVersion > 0) return { from: resourceVersion, closesState: false };
  return { from: sendInitialEvents === false ? deps.store.revision : "state", closesState: false };
}

/** Nothing is opened before the first chunk is asked for, and everything is closed when the reader leaves. */
async function* stream(deps: VerbDeps, request: ResourceRequest, plan: Plan): AsyncGenerator<string> {
  const { kind, namespace, signal } = request;
  const bell = createBell();
  const represent = request.representer.events();
  const alarm = createAlarm(deps.clock, plan.timeoutMs, bell.ring);
  signal.addEventListener("abort", bell.ring);
  try {
    const after = plan.from === "state" ? deps.store.revision : plan.from;
    if (plan.from === "state") {
      const whole = { revision: after, from: undefined, limit: undefined };
      const { items } = takePage(deps.store, kind, namespace, plan.filter, whole);
      yield* inChunks(items, represent);
      if (plan.closesState) yield bookmarkLine(kind, after, represent, { endsInitialEvents: true });
    }
    yield* live(deps, request, { plan, after, alarm, bell, represent });
  } finally {
    alarm.cancel();
    signal.removeEventListener("abort", bell.ring);
  }
}

async function* live(
  { store }: VerbDeps,
  { kind, namespace, signal }: ResourceRequest,
  {
    plan,
    after,
    alarm,
    bell,
    represent,
  }: { plan: Plan; after: number; alarm: Alarm; bell: Bell; represent: (text: string) => string },
): AsyncGenerator<string> {
  const events = store.watch(
    { resource: resourceName(storedKind(kind)), namespace, afterRevision: after },
    bell.ring,
  );
  try {
    while (!signal.aborted) {
      const chunk = takeChunk(events, (event) => eventLine(kind, plan.filter, event, represent));
      if (chunk !== "") yield chunk;
      if (chunk !== "" && !alarm.isOver()) continue;
      if (events.state === "overflowed") return;
      if (events.state === "expired") {
        yield expiredLine(after, store.compactedRevision);
        return;
      }
      // All that is committed has been sent, so its revision is how far this client has seen. A start in
      // the future is farther than that.
      const hasSeen = chunk === "" && plan.bookmarks && store.revision >= after;
      const isOver = alarm.isOver();
      if (hasSeen && (alarm.takeBookmark() || isOver)) yield bookmarkLine(kind, store.revision, represent);
      else if (!isOver) await bell.wait();
      if (isOver) return;
    }
  } finally {
    events.close();
  }
}

function* inChunks(objects: readonly StoredObject[], represent: (text: string) => string): Iterable<string> {
  let chunk = "";
  for (const object of objects) {
    chunk += addedLine(object, represent);
    if (chunk.length < CHUNK_CHARS) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}

/** Takes events until there are none or the chunk is full; empty once there are none. */
function takeChunk(events: StoreWatch, render: (event: StoreEvent) => string | undefined): string {
  let chunk = "";
  while (chunk.length < CHUNK_CHARS) {
    const event = events.take();
    if (event === undefined) break;
    chunk += render(event) ?? "";
  }
  return chunk;
}

interface Alarm {
  /** True once for each bookmark that has come due. */
  takeBookmark(): boolean;
  isOver(): boolean;
  cancel(): void;
}

function createAlarm(clock: Clock, timeoutMs: number, ring: () => void): Alarm {
  let isBookmarkDue = false;
  let isOver = false;
  const end = clock.after(timeoutMs, () => {
    isOver = true;
    ring();
  });
  let next = clock.after(BOOKMARK_MS, bookmark);
  function bookmark(): void {
    isBookmarkDue = true;
    next = clock.after(BOOKMARK_MS, bookmark);
    ring();
  }
  return {
    takeBookmark() {
      const wasDue = isBookmarkDue;
      isBookmarkDue = false;
      return wasDue;
    },
    isOver: () => isOver,
    cancel() {
      end.cancel();
      next.cancel();
    },
  };
}

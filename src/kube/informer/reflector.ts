import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Client } from "../client/client.ts";
import { createPages } from "../client/pages.ts";
import { errorFromStatus, isKubeError, KubeError } from "../errors.ts";
import { resourceName, type KubeObject, type Resource } from "../object.ts";
import {
  planAfterSync,
  planAfterWatch,
  refusesStreamingList,
  ResumePosition,
  type NextStep,
  type WatchResult,
} from "./reflector-plan.ts";
import { createSilenceGuard } from "./silence.ts";
import { decodeWatch, endsInitialEvents, type WatchEvent } from "./watch.ts";

/**
 * Keeps one kind of one cluster in step with us: takes the whole state, watches from there, resumes after
 * every kind of trouble (`reflector-plan.ts` decides how), until aborted. It holds no objects itself.
 */
export interface Reflector {
  /** Never rejects; resolves only when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Everything up to here was told to the sink; undefined before the first complete state. */
  version(): string | undefined;
  /** For how long the present watch has been open; 0 while none is. */
  watchedMs(): number;
}

/** Two states of which only the difference is known: what came and went in between was told to nobody. */
export interface HistoryGap {
  readonly fromVersion: string;
  readonly toVersion: string;
}

/** Where what the reflector hears goes. None of these may throw. */
export interface ReflectorSink<T extends KubeObject> {
  /**
   * A complete state begins; offers and retractions follow, then commit. Without commit nothing changes. Every state but the
   * first comes with a gap, whatever led to it: only a watch that was resumed brings all that happened.
   */
  beginReplace(): {
    offer(object: T): void;
    retract(object: T): void;
    commit(gap: HistoryGap | undefined): void;
  };
  /** One change; called in the order the server sent them. Answers whether it told anything new. */
  apply(event: WatchEvent<T>): boolean;
  /** The server said something, if only a bookmark. */
  heard(): void;
  /** Before every try but the first. `error` is what ended the one before, if an error did. */
  restarting(step: NextStep, error: unknown): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** A server sends a bookmark about every 60 s on an idle watch; one and a half of that is silence. */
export const SILENCE_MS = 90_000;

/** While the initial state is coming there is no reason for pauses, except a server that is loading its own. */
const INITIAL_SILENCE_MS = 30_000;

/** A watch that lived this long was a good one, even if nothing happened in the cluster. */
const HEALTHY_MS = 10_000;

/** Then a server that keeps failing a streaming list gets paged lists, which ask less of it at a time. */
const STREAMING_TRIES = 3;

const PAGE_LIMIT = 500;
/** Each page that expires before the last one is read makes the pages larger, so that the list can win. */
const PAGE_LIMIT_MAX = 10_000;
const PAGE_DEADLINE_MS = 60_000;

export function createReflector<T extends KubeObject>(
  deps: { client: Pick<Client, "list" | "watch">; clock: Clock; random: Random },
  { resource, ...selection }: ReflectorOptions<T>,
  sink: ReflectorSink<T>,
): Reflector {
  const { client, clock, random } = deps;
  let position: ResumePosition | undefined;
  let streamingRefused = false;
  let openedAtMs: number | undefined;

  async function run(signal: AbortSignal): Promise<void> {
    let next: NextStep = { kind: "sync", delayMs: 0, why: "started" };
    let failures = 0;
    while (!signal.aborted) {
      if (!(await pause(next.delayMs, signal))) return;
      const pass = next.kind === "sync" ? await sync(failures, signal) : await watch(signal);
      if (isAborted(signal)) return;
      failures = pass.healthy ? 0 : failures + 1;
      next = planAfter(pass, failures);
      sink.restarting(next, pass.result.kind === "failed" ? pass.result.error : undefined);
    }
  }

  async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
    if (ms === 0) return true;
    return clock.sleep(ms, signal).then(
      () => true,
      () => false,
    );
  }

  function planAfter({ result, inStep }: Pass, failures: number): NextStep {
    if (inStep) return planAfterWatch({ result, failures }, random);
    const error = result.kind === "failed" ? result.error : undefined;
    if (!streamingRefused && refusesStreamingList(error)) {
      streamingRefused = true;
      return { kind: "sync", delayMs: 0, why: "refused" };
    }
    return planAfterSync(error, failures, random);
  }

  /** Takes the whole state, in the way this server can, and goes on watching from it. */
  async function sync(failures: number, signal: AbortSignal): Promise<Pass> {
    if (!streamingRefused && failures < STREAMING_TRIES) return watch(signal, { initial: true });
    try {
      await listAll(signal);
    } catch (error) {
      return { result: { kind: "failed", error }, healthy: false, inStep: false };
    }
    return watch(signal);
  }

  async function listAll(signal: AbortSignal): Promise<void> {
    for (let limit = PAGE_LIMIT; ; limit = Math.min(limit * 4, PAGE_LIMIT_MAX)) {
      try {
        await listPages(limit, signal);
        return;
      } catch (error) {
        if (!isKubeError(error, "Expired") || limit === PAGE_LIMIT_MAX) throw error;
      }
    }
  }

  async function listPages(limit: number, signal: AbortSignal): Promise<void> {
    const replacement = sink.beginReplace();
    const follow = createPages(resource);
    let token: string | undefined;
    do {
      // No resourceVersion: the state as of now. "0" would allow a server to answer with an older one
      // than we have already acted on.
      const page = await client.list(resource, {
        ...selection,
        limit,
        continue: token,
        signal,
        deadlineMs: PAGE_DEADLINE_MS,
      });
      sink.heard();
      for (const object of page.items) replacement.offer(object);
      token = follow(page.metadata.continue);
      if (token === undefined) complete(replacement, page.metadata.resourceVersion);
    } while (token !== undefined);
  }

  function complete(replacement: ReturnType<typeof sink.beginReplace>, listed: string | undefined): void {
    const toVersion = versionOf(resource, listed);
    // Of the last few events a neighbour may be missing, as when a watch is resumed.
    const fromVersion = position?.version;
    position = new ResumePosition(toVersion);
    replacement.commit(fromVersion === undefined ? undefined : { fromVersion, toVersion });
  }

  /** One watch, from its request to its end. */
  async function watch(signal: AbortSignal, { initial = false } = {}): Promise<Pass> {
    const watching = createWatching(initial);
    const guard = createSilenceGuard(clock, signal, () =>
      watching.inStep ? SILENCE_MS : INITIAL_SILENCE_MS,
    );
    try {
      const stream = await client.watch(resource, {
        ...selection,
        ...(initial ? { sendInitialEvents: true } : { resourceVersion: position?.version }),
        // Spread over five minutes, so that a fleet started together does not reconnect together.
        timeoutSeconds: 300 + random.int(300),
        signal: guard.signal,
      });
      if (!initial) openedAtMs = clock.now();
      for await (const batch of decodeWatch<T>(stream.body)) {
        guard.heard();
        sink.heard();
        for (const event of batch) watching.take(event);
      }
      return watching.end({ kind: "ended" });
    } catch (error) {
      return watching.end(guard.silent ? { kind: "silent" } : { kind: "failed", error });
    } finally {
      openedAtMs = undefined;
      guard.stop();
    }
  }

  /** What the events of one watch do; with `initial` they make up a new state until its bookmark. */
  function createWatching(initial: boolean) {
    let replacement = initial ? sink.beginReplace() : undefined;
    let inStepSinceMs = clock.now();
    let news = false;
    return {
      get inStep() {
        return replacement === undefined;
      },
      end(result: WatchResult): Pass {
        const inStep = replacement === undefined;
        const lasted = result.kind !== "silent" && clock.now() - inStepSinceMs >= HEALTHY_MS;
        return { result, healthy: inStep && (news || lasted), inStep };
      },
      take(event: WatchEvent<T>): void {
        if (event.type === "ERROR") throw errorOf(resource, event.object);
        if (replacement === undefined) {
          news = follow(event) || news;
        } else if (endsInitialEvents(event)) {
          complete(replacement, event.object.metadata.resourceVersion);
          replacement = undefined;
          inStepSinceMs = clock.now();
          openedAtMs = inStepSinceMs;
        } else if (event.type === "DELETED") {
          replacement.retract(event.object);
        } else if (event.type !== "BOOKMARK") {
          replacement.offer(event.object);
        }
      },
    };
  }

  /** Answers whether the event brought us forward: repeats after a resume do not. */
  function follow(event: WatchEvent<T>): boolean {
    const version = event.object.metadata.resourceVersion;
    if (event.type === "BOOKMARK") return version !== undefined && (position?.bookmark(version) ?? false);
    const news = sink.apply(event);
    if (version !== undefined) position?.event(version);
    return news;
  }

  return {
    run,
    version: () => position?.newest,
    watchedMs: () => (openedAtMs === undefined ? 0 : clock.now() - openedAtMs),
  };
}

interface Pass {
  readonly result: WatchResult;
  /** Whether it did what a watch is for; a complete state alone does not count, or a server that expires every
   * watch would be listed without a pause. */
  readonly healthy: boolean;
  /** Whether we have a state and a position at its end: false when a first state broke off. */
  readonly inStep: boolean;
}

/** A state without a position cannot be watched from. */
function versionOf(resource: Resource, version: string | undefined): string {
  if (version !== undefined && version !== "") return version;
  throw new KubeError(
    "BadResponse",
    `list ${resourceName(resource)}: the answer has no metadata.resourceVersion`,
  );
}

function errorOf(resource: Resource, status: unknown): KubeError {
  const code = (status as { code?: unknown } | null)?.code;
  return errorFromStatus(`watch ${resourceName(resource)}`, status, {
    status: typeof code === "number" ? code : 500,
  });
}

/** The compiler believes that a signal checked once stays as it was. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

import { withEither } from "../base/signals.ts";
import type { Clock } from "../base/clock.ts";
import { pods, type Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { compareVersions, type ObjectKey } from "../kube/object.ts";
import { decodeWatch, type WatchEvent } from "../kube/informer/watch.ts";
import type { NodeName } from "../volumes/names.ts";
import { claimKeysOf } from "../volumes/resolve.ts";
import { isObject } from "../volumes/untrusted.ts";

/**
 * What happened to the pods of a node between two versions of the cluster, as the API server itself remembers it. A watch
 * from the older version sends it all again; a server that has forgotten says so, and then nothing is known. This is the
 * only proof that no pod used a volume while nobody of ours was watching: neither objects nor clocks tell of a pod that
 * came and went.
 */
export interface PodHistory {
  /** Pods that came to the node in between name disks or claims: any of them may have led to any volume at that time. */
  readonly newcomers: boolean;
  /** Claims of pods that were on the node and changed or went. */
  readonly claims: ReadonlySet<ObjectKey>;
  /** Whether anything at all happened to a pod with volumes. */
  readonly anyVolumes: boolean;
}

/** The server sends a bookmark no later than at the end, so this is how long a proof takes where nothing happens. */
const WATCH_SECONDS = 5;
/** Of what the network spoils. */
const TRIES = 3;
const PAUSE_MS = 2_000;
/** A server that holds the stream open without a word has proven nothing. */
const SILENCE_MS = 15_000;

export interface HistoryRange {
  readonly node: NodeName;
  readonly fromVersion: string;
  readonly toVersion: string;
}

/** Undefined where the server cannot tell, or does not answer. */
export async function readPodHistory(
  { client, clock }: { readonly client: Pick<Client, "watch">; readonly clock: Clock },
  range: HistoryRange,
  signal: AbortSignal,
): Promise<PodHistory | undefined> {
  const order = compareVersions(range.fromVersion, range.toVersion);
  if (order === undefined) return undefined;
  if (order >= 0) return { newcomers: false, claims: new Set(), anyVolumes: false };
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await clock.sleep(PAUSE_MS, signal);
    const end = new AbortController();
    const silence = clock.after(SILENCE_MS, () => end.abort(new Error("the watch said nothing")));
    try {
      return await withEither([signal, end.signal], (either) => watchRange(client, range, either));
    } catch (error) {
      if (signal.aborted) throw error;
    } finally {
      silence.cancel();
    }
  }
  return undefined;
}

/** Undefined: the history ended before the version that was asked for, or the server no longer has its beginning. */
async function watchRange(
  client: Pick<Client, "watch">,
  { node, fromVersion, toVersion }: HistoryRange,
  signal: AbortSignal,
): Promise<PodHistory | undefined> {
  const stream = await client.watch(pods, {
    // On a selection a pod that is bound to the node appears as added, as one that is created there does.
    fieldSelector: `spec.nodeName=${node}`,
    resourceVersion: fromVersion,
    timeoutSeconds: WATCH_SECONDS,
    signal,
  });
  let newcomers = false;
  let anyVolumes = false;
  const claims = new Set<ObjectKey>();
  for await (const batch of decodeWatch<Pod>(stream.body)) {
    for (const event of batch) {
      if (event.type === "ERROR") return undefined;
      // Newer than our own cache: from there on our own watch is the witness.
      if (isBeyond(event, toVersion)) return { newcomers, claims, anyVolumes };
      if (event.type !== "BOOKMARK") {
        for (const claim of claimKeysOf(event.object)) claims.add(claim);
        newcomers ||= event.type === "ADDED" && mayUseDisks(event.object);
        anyVolumes ||= (event.object.spec?.volumes?.length ?? 0) > 0;
      }
      if (hasReached(event, toVersion)) return { newcomers, claims, anyVolumes };
    }
  }
  return undefined;
}

function isBeyond({ object }: WatchEvent<Pod>, version: string): boolean {
  return (compareVersions(object.metadata.resourceVersion ?? "", version) ?? -1) > 0;
}

function hasReached({ object }: WatchEvent<Pod>, version: string): boolean {
  return (compareVersions(object.metadata.resourceVersion ?? "", version) ?? -1) >= 0;
}

/** Sources of which nearly every pod has one, and which lead to no disk that is attached. */
const NO_DISK: ReadonlySet<string> = new Set([
  "name",
  "projected",
  "configMap",
  "secret",
  "emptyDir",
  "downwardAPI",
  "hostPath",
  "nfs",
  "csi",
  "image",
]);

/** By a claim, or by a source that is written into the pod: whatever is not known to have none, may have one. */
function mayUseDisks({ spec }: Pod): boolean {
  const volumes: unknown = spec?.volumes ?? [];
  if (!Array.isArray(volumes)) return true;
  return volumes.some((volume: unknown) => {
    return !isObject(volume) || Object.keys(volume).some((source) => !NO_DISK.has(source));
  });
}

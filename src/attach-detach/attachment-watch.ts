import { abortReason, type Clock } from "../base/clock.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Informer } from "../kube/informer/informer.ts";
import { compareVersions, type ObjectKey } from "../kube/object.ts";

/**
 * Waits for a VolumeAttachment to become something, by its watch events: no poll, no first half second. Also knows which
 * cached ones are gone already, because a DELETE of ours was answered so before the watch said it.
 */
export interface AttachmentWatch {
  /** As cached, unless it is known to be gone. */
  current(name: string): VolumeAttachment | undefined;
  /** Whether this very object is, or was a moment ago, what the watch shows. */
  isShown(attachment: VolumeAttachment): boolean;
  /** The server said that this very object no longer exists. */
  markGone(attachment: VolumeAttachment): void;
  /**
   * Whether everything up to this version of an object was told, so that one the cache does not have is gone. One that came and
   * went while the watch was cut off is told by no event.
   */
  isTold(version: string | undefined): boolean;
  /** To be called for each watch event. */
  notify(name: string): void;
  /** To be called when the whole state was taken anew: what came and went in between has no event of its own. */
  notifyAll(): void;
  /**
   * Asks `look` now and after each event until it answers something else than undefined. Rejects with what `look`
   * throws, `onDeadline()` after `deadlineMs`, or the signal's reason.
   */
  until<T>(name: string, look: () => T | undefined, options: UntilOptions): Promise<T>;
}

export interface UntilOptions {
  readonly deadlineMs: number;
  readonly onDeadline: () => Error;
  readonly signal: AbortSignal;
}

export function createAttachmentWatch(
  attachments: Pick<Informer<VolumeAttachment>, "get" | "version">,
  clock: Clock,
): AttachmentWatch {
  /** As many as operations wait. */
  const waiters = new Map<string, Set<() => void>>();
  /** Uids by name; as many as deletions the watch has not told yet. */
  const gone = new Map<string, string>();

  function current(name: string): VolumeAttachment | undefined {
    const cached = attachments.get(name as ObjectKey);
    return cached && gone.get(name) === cached.metadata.uid ? undefined : cached;
  }

  function listen(name: string, waiter: () => void): () => void {
    const all = waiters.get(name) ?? new Set();
    waiters.set(name, all.add(waiter));
    return () => {
      all.delete(waiter);
      if (all.size === 0 && waiters.get(name) === all) waiters.delete(name);
    };
  }

  return {
    current,
    isShown: ({ metadata: { name = "", uid } }) => attachments.get(name as ObjectKey)?.metadata.uid === uid,
    markGone({ metadata: { name = "", uid = "" } }) {
      if (attachments.get(name as ObjectKey)?.metadata.uid === uid) gone.set(name, uid);
    },
    isTold(version) {
      const told = attachments.version();
      if (version === undefined || told === undefined) return false;
      const order = compareVersions(told, version);
      return order !== undefined && order >= 0;
    },
    notify(name) {
      if (attachments.get(name as ObjectKey)?.metadata.uid !== gone.get(name)) gone.delete(name);
      for (const waiter of [...(waiters.get(name) ?? [])]) waiter();
    },
    notifyAll() {
      for (const name of [...waiters.keys()]) for (const waiter of [...(waiters.get(name) ?? [])]) waiter();
    },
    until<T>(
      name: string,
      look: () => T | undefined,
      { deadlineMs, onDeadline, signal }: UntilOptions,
    ): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        const end = (settle: () => void) => {
          timer.cancel();
          stopListening();
          signal.removeEventListener("abort", onAbort);
          settle();
        };
        const ask = () => {
          try {
            const answer = look();
            if (answer !== undefined) end(() => resolve(answer));
          } catch (error) {
            end(() => reject(error instanceof Error ? error : new Error(String(error))));
          }
        };
        const onAbort = () => end(() => reject(abortReason(signal)));
        const timer = clock.after(deadlineMs, () => end(() => reject(onDeadline())));
        const stopListening = listen(name, ask);
        signal.addEventListener("abort", onAbort, { once: true });
        if (signal.aborted) onAbort();
        else ask();
      });
    },
  };
}

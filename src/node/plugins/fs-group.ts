import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { referenceTo, type EventRecorder } from "../../kube/events/events.ts";
import type { Host } from "../host.ts";

export interface FsGroupDeps {
  readonly host: Host;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, "record">;
  readonly log: Logger;
}

export interface FsGroup {
  readonly path: string;
  readonly gid: number;
  readonly policy: string | undefined;
  readonly pod: Pod;
  readonly signal: AbortSignal;
}

/** A walk of this long is told to the pod's owner, and its progress after that: a million files take minutes. */
const SLOW_MS = 30_000;
const PROGRESS_MS = 60_000;

/** Gives a writable volume to the pod's group, and says so where that takes long. */
export async function applyFsGroup(
  { host, clock, events, log }: FsGroupDeps,
  { path, gid, policy, pod, signal }: FsGroup,
): Promise<void> {
  let files = 0;
  const shown = path.slice(Math.max(0, path.indexOf(pod.metadata.uid ?? "\0")));
  const tell = (message: string) =>
    events.record({
      ref: referenceTo(pods, pod),
      type: "Warning",
      reason: "VolumePermissionChangeInProgress",
      message,
    });
  const progress = () => {
    tell(`Setting volume ownership for ${shown}, processed ${files} files.`);
    timer = clock.after(PROGRESS_MS, progress);
  };
  let timer = clock.after(SLOW_MS, () => {
    tell(
      `Setting volume ownership for ${shown} is taking longer than expected, consider using OnRootMismatch - ` +
        "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
    );
    timer = clock.after(PROGRESS_MS, progress);
  });
  try {
    const onRootMismatch = policy === "OnRootMismatch";
    const onProgress = (count: number) => void (files = count);
    const done = await host.files.applyGroup({
      path,
      gid,
      readOnly: false,
      onRootMismatch,
      onProgress,
      signal,
    });
    if (done.failed > 0)
      log.warn("group not set everywhere", { path, gid, failed: done.failed, errors: done.errors });
  } finally {
    timer.cancel();
  }
}

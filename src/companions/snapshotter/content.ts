import { timestampMs } from "@bufbuild/protobuf/wkt";
import { classOf, isCsiError } from "../../csi/errors.ts";
import type { Snapshot } from "../../csi/gen/csi_pb.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import { formatTime } from "../../kube/time.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Attempts } from "../attempts.ts";
import type { CachedDeps } from "../deps.ts";
import { CALL_TIMEOUT_MS, type StorageDriver } from "../driver.ts";
import { DONE } from "../keyed.ts";
import { volumeSnapshotContents, volumeSnapshots, type VolumeSnapshotContent } from "../kinds.ts";
import { fetchSecret, secretRefOf, type SecretRef, type SecretValues } from "../secrets.ts";
import type { Teller } from "../teller.ts";
import type { Told } from "../waiting.ts";
import { found, patchSeen, STALE_RETRY_MS } from "../writes.ts";
import {
  BEING_CREATED,
  DELETION_SECRET_NAME,
  DELETION_SECRET_NAMESPACE,
  RESERVED_PREFIX,
  SNAPSHOTTER_SECRET,
} from "./names.ts";
import { letGo, planContent, settled, type ContentAction, type ContentPlan } from "./plan-content.ts";

export interface ContentDeps extends CachedDeps {
  readonly driver: StorageDriver;
  readonly attempts: Attempts;
  readonly teller: Teller;
  /** Contents, by uid, for which the driver certainly has cut nothing: marked by us, and every answer was a clear no. */
  readonly none: Set<string>;
}

/** One look at one content. Every step is one write or one call with the write of its answer. */
export async function reconcileContent(
  deps: ContentDeps,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<Outcome> {
  const { caches, clock, attempts, teller } = deps;
  const content = caches.latest.contents.get(key);
  if (!content) {
    attempts.forget(key);
    teller.forget(key);
    return DONE;
  }
  const className = content.spec.volumeSnapshotClassName;
  const snapshotClass = className ? caches.snapshotClasses.get(toKey({ name: className })) : undefined;
  const view = { content, driver: deps.driver.name, snapshotClass };
  let plan = planContent(view);
  if (plan.action?.kind === "confirm")
    plan = planContent({ ...view, snapshot: await snapshotOf(deps, content, signal) });
  const { action } = plan;
  if (action === undefined || action.kind === "confirm") {
    teller.say(volumeSnapshotContents, content, plan);
    return DONE;
  }
  const waitMs = attempts.waitMs(key, clock.now());
  if (action.kind === "discard") return discard(deps, content, signal);
  if (action.kind === "change") return change(deps, content, action.change, signal);
  if (waitMs > 0) return { kind: "after", ms: waitMs };
  if (action.kind === "cut" && (await isOld(deps, content, signal)))
    return { kind: "after", ms: STALE_RETRY_MS };
  return call(deps, content, action, signal);
}

/**
 * Whether the server has another version than the one looked at. A watch that is silent for minutes goes on showing the mark of
 * a cut that was taken back; the status write after such a cut is refused, and whoever deletes the content then asks the driver
 * nothing. So the driver cuts only what the server confirms: one GET for each cut, and for each look that finds the cache behind.
 */
async function isOld(
  { client, caches }: ContentDeps,
  { metadata }: VolumeSnapshotContent,
  signal: AbortSignal,
): Promise<boolean> {
  const { name = "", uid, resourceVersion } = metadata;
  const live = await found(client.get(volumeSnapshotContents, { name }, { signal }));
  if (live?.metadata.uid === uid && live?.metadata.resourceVersion === resourceVersion) return false;
  if (live !== undefined) caches.latest.contents.written(live);
  return true;
}

/** Whether the snapshot that a content is of is there, as the API server says it: caches may lag behind each other. */
async function snapshotOf(
  { client }: ContentDeps,
  { spec }: VolumeSnapshotContent,
  signal: AbortSignal,
): Promise<"there" | "going" | "gone"> {
  const { name = "", namespace, uid } = spec.volumeSnapshotRef;
  // Made by hand, for a snapshot that may come yet.
  if (!uid) return "there";
  const snapshot = await found(client.get(volumeSnapshots, { name, namespace }, { signal }));
  if (snapshot?.metadata.uid !== uid) return "gone";
  return snapshot.metadata.deletionTimestamp === undefined ? "there" : "going";
}

async function discard(
  { client, log }: ContentDeps,
  { metadata }: VolumeSnapshotContent,
  signal: AbortSignal,
): Promise<Outcome> {
  const { name = "", uid = "", resourceVersion = "" } = metadata;
  await client.delete(volumeSnapshotContents, { name }, { preconditions: { uid, resourceVersion }, signal });
  log.info("content without a cut removed, its snapshot is gone", { content: name });
  return DONE;
}

async function change(
  { client, caches, none }: ContentDeps,
  content: VolumeSnapshotContent,
  patch: object,
  signal: AbortSignal,
): Promise<Outcome> {
  const marked = content.metadata.annotations?.[BEING_CREATED] !== undefined;
  const written = await patchSeen(client, volumeSnapshotContents, content, patch, { signal });
  caches.latest.contents.written(written);
  if (!marked && written.metadata.annotations?.[BEING_CREATED] !== undefined)
    none.add(content.metadata.uid ?? "");
  return { kind: "after", ms: 0 };
}

type Call = Exclude<ContentAction, { kind: "change" | "confirm" | "discard" }>;

async function call(
  deps: ContentDeps,
  content: VolumeSnapshotContent,
  action: Call,
  signal: AbortSignal,
): Promise<Outcome> {
  const { attempts, none } = deps;
  const uid = content.metadata.uid ?? "";
  const wasNone = action.kind === "cut" && none.delete(uid);
  let secret: SecretValues | undefined;
  try {
    secret = await fetchSecret(deps.client, secretFor(content, action), signal);
    if (action.kind === "delete-snapshot") await deleteSnapshot(deps, action.snapshotHandle, secret, signal);
    const next = action.kind === "delete-snapshot" ? letGo(content) : undefined;
    if (next) {
      attempts.forget(keyOf(content));
      return await applied(deps, content, next, signal);
    }
    const snapshot =
      action.kind === "cut"
        ? await cut(deps, content, action, secret, signal)
        : await lookUp(deps, action as Extract<Call, { kind: "look-up" }>, secret, signal);
    return await recordSnapshot(deps, content, snapshot, signal);
  } catch (error) {
    if (signal.aborted || isKubeError(error)) throw error;
    const text = error instanceof Error ? error.message : String(error);
    return failed(deps, content, { action, wasNone, error, message: secret?.scrub(text) ?? text }, signal);
  }
}

function applied(
  deps: ContentDeps,
  content: VolumeSnapshotContent,
  { action }: ContentPlan,
  signal: AbortSignal,
): Promise<Outcome> {
  return action?.kind === "change" ? change(deps, content, action.change, signal) : Promise.resolve(DONE);
}

/** What is told about a snapshot, whoever cut it. */
interface Facts {
  readonly handle: string;
  readonly ready: boolean;
  readonly sizeBytes: bigint;
  readonly createdMs: number | undefined;
}

async function cut(
  { driver }: ContentDeps,
  { spec }: VolumeSnapshotContent,
  { sourceVolumeId, snapshotClass }: Extract<Call, { kind: "cut" }>,
  secret: SecretValues,
  signal: AbortSignal,
): Promise<Facts> {
  const parameters = Object.entries(snapshotClass?.parameters ?? {}).filter(
    ([key]) => !key.startsWith(RESERVED_PREFIX),
  );
  const { snapshot } = await driver.controller.createSnapshot(
    {
      sourceVolumeId,
      name: `snapshot-${spec.volumeSnapshotRef.uid}`,
      parameters: Object.fromEntries(parameters),
      secrets: secret.values,
    },
    { timeoutMs: CALL_TIMEOUT_MS, signal },
  );
  if (!snapshot?.snapshotId) throw new Error("CreateSnapshot: the answer names no snapshot");
  return toFacts(snapshot);
}

/** A driver that lists no snapshots is taken at the word of whoever wrote the content. */
async function lookUp(
  { driver }: ContentDeps,
  { snapshotHandle }: Extract<Call, { kind: "look-up" }>,
  secret: SecretValues,
  signal: AbortSignal,
): Promise<Facts> {
  const unknown = { handle: snapshotHandle, ready: true, sizeBytes: 0n, createdMs: undefined };
  if (!(await driver.can(signal)).listsSnapshots) return unknown;
  const { entries } = await driver.controller.listSnapshots(
    { snapshotId: snapshotHandle, secrets: secret.values },
    { timeoutMs: CALL_TIMEOUT_MS, signal },
  );
  const snapshot = entries.find((entry) => entry.snapshot?.snapshotId === snapshotHandle)?.snapshot;
  if (!snapshot) throw new Error(`ListSnapshots: the driver has no snapshot "${snapshotHandle}"`);
  return toFacts(snapshot);
}

async function deleteSnapshot(
  { driver }: ContentDeps,
  snapshotId: string,
  secret: SecretValues,
  signal: AbortSignal,
): Promise<void> {
  await driver.controller.deleteSnapshot(
    { snapshotId, secrets: secret.values },
    { timeoutMs: CALL_TIMEOUT_MS, signal },
  );
}

function toFacts({ snapshotId, readyToUse, sizeBytes, creationTime }: Snapshot): Facts {
  const createdMs = creationTime && timestampMs(creationTime);
  return { handle: snapshotId, ready: readyToUse, sizeBytes, createdMs };
}

const NANOS_PER_MS = 1_000_000;

async function recordSnapshot(
  deps: ContentDeps,
  content: VolumeSnapshotContent,
  { handle, ready, sizeBytes, createdMs }: Facts,
  signal: AbortSignal,
): Promise<Outcome> {
  const { client, caches, clock, attempts, log } = deps;
  const key = keyOf(content);
  const status = {
    snapshotHandle: handle,
    readyToUse: ready,
    error: null,
    ...(sizeBytes > 0n && { restoreSize: Number(sizeBytes) }),
    ...(createdMs !== undefined && { creationTime: createdMs * NANOS_PER_MS }),
  };
  const options = { subresource: "status", signal } as const;
  caches.latest.contents.written(
    await patchSeen(client, volumeSnapshotContents, content, { status }, options),
  );
  log.info("snapshot recorded", { content: key, handle, ready });
  if (!ready) return { kind: "after", ms: attempts.failed(key, clock.now()) };
  attempts.forget(key);
  return { kind: "after", ms: 0 };
}

async function failed(
  deps: ContentDeps,
  content: VolumeSnapshotContent,
  {
    action,
    wasNone,
    error,
    message,
  }: { readonly action: Call; readonly wasNone: boolean; readonly error: unknown; readonly message: string },
  signal: AbortSignal,
): Promise<Outcome> {
  const { clock, attempts, teller, log } = deps;
  const key = keyOf(content);
  const waitMs = attempts.failed(key, clock.now());
  log.warn("snapshot failed", { content: key, step: action.kind, error: message, retryInMs: waitMs });
  const tell: Told =
    action.kind === "delete-snapshot"
      ? { type: "Warning", reason: "SnapshotDeleteError", message: `Failed to delete snapshot: ${message}` }
      : {
          type: "Warning",
          reason: "SnapshotCreationFailed",
          message: `Failed to create snapshot: ${message}`,
        };
  teller.say(volumeSnapshotContents, content, { tell, waitingFor: { reason: "backoff", message } });
  const noted = await noteError(deps, content, message, signal);
  // Nothing was cut, now or before: whoever deletes the content need not ask again. A clear no to a question about what
  // was asked before says nothing, except that there is nothing of that name.
  const certain = wasNone ? classOf(error) !== "uncertain" : isFinalNo(error);
  if (action.kind === "cut" && certain) await applied(deps, noted, settled(), signal);
  return { kind: "after", ms: waitMs };
}

function isFinalNo(error: unknown): boolean {
  return isCsiError(error, "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "UNIMPLEMENTED");
}

async function noteError(
  { client, caches, clock }: ContentDeps,
  content: VolumeSnapshotContent,
  message: string,
  signal: AbortSignal,
): Promise<VolumeSnapshotContent> {
  if (content.status?.error?.message === message) return content;
  const error = { message, time: formatTime(clock.wall()) };
  const status = { error, readyToUse: false };
  const options = { subresource: "status", signal } as const;
  const written = await patchSeen(client, volumeSnapshotContents, content, { status }, options);
  caches.latest.contents.written(written);
  return written;
}

function secretFor({ metadata, spec }: VolumeSnapshotContent, action: Call): SecretRef | undefined {
  if (action.kind === "delete-snapshot") {
    const { [DELETION_SECRET_NAME]: name, [DELETION_SECRET_NAMESPACE]: namespace } =
      metadata.annotations ?? {};
    return name && namespace ? { name, namespace } : undefined;
  }
  if (action.kind === "look-up") return undefined;
  return snapshotterSecretOf(action.snapshotClass?.parameters ?? {}, {
    content: metadata.name ?? "",
    snapshot: { name: spec.volumeSnapshotRef.name ?? "", namespace: spec.volumeSnapshotRef.namespace ?? "" },
  });
}

export function snapshotterSecretOf(
  parameters: Readonly<Record<string, string>>,
  of: { readonly content: string; readonly snapshot: { readonly name: string; readonly namespace: string } },
): SecretRef | undefined {
  return secretRefOf(parameters, SNAPSHOTTER_SECRET, {
    "volumesnapshotcontent.name": of.content,
    "volumesnapshot.name": of.snapshot.name,
    "volumesnapshot.namespace": of.snapshot.namespace,
  });
}

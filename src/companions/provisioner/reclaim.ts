import { unreachable } from "../../base/assert.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import type { Client } from "../../kube/client/client.ts";
import { createPages } from "../../kube/client/pages.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { keyOf, type ObjectKey } from "../../kube/object.ts";
import type { Attempts } from "../attempts.ts";
import { BY_VOLUME } from "../caches.ts";
import type { CachedDeps } from "../deps.ts";
import { CALL_TIMEOUT_MS, type StorageDriver } from "../driver.ts";
import { DONE } from "../keyed.ts";
import { DELETION_SECRET_NAME, DELETION_SECRET_NAMESPACE, PROVISIONER_FINALIZER } from "../names.ts";
import { fetchSecret, type SecretRef } from "../secrets.ts";
import type { Teller } from "../teller.ts";
import { found, patchSeen } from "../writes.ts";
import { planReclaim, type ReclaimAction } from "./plan-reclaim.ts";

export interface ReclaimDeps extends CachedDeps {
  readonly driver: StorageDriver;
  readonly attempts: Attempts;
  readonly teller: Teller;
}

/** One look at a volume that may have to go; every step is one write or one call, and the next look takes the next. */
export async function reclaim(deps: ReclaimDeps, key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
  const { caches, clock, driver, attempts, teller } = deps;
  const volume = caches.latest.volumes.get(key);
  if (!volume) {
    attempts.forget(key);
    teller.forget(key);
    return DONE;
  }
  const attachments = caches.attachments.byIndex(BY_VOLUME, key).length;
  const { action, waitingFor } = planReclaim({ volume, driver: driver.name, attachments });
  if (!action) {
    teller.say(persistentVolumes, volume, { waitingFor });
    return DONE;
  }
  const waitMs = attempts.waitMs(key, clock.now());
  if (waitMs > 0 && action.kind === "delete-volume") return { kind: "after", ms: waitMs };
  return act(deps, volume, action, signal);
}

async function act(
  deps: ReclaimDeps,
  volume: PersistentVolume,
  action: ReclaimAction,
  signal: AbortSignal,
): Promise<Outcome> {
  const { client, log } = deps;
  const { name = "", uid = "", resourceVersion = "", finalizers = [] } = volume.metadata;
  const keep = (list: readonly string[]) =>
    patchSeen(client, persistentVolumes, volume, { metadata: { finalizers: list } }, { signal });
  switch (action.kind) {
    case "hold":
      deps.caches.latest.volumes.written(await keep([...finalizers, PROVISIONER_FINALIZER]));
      return { kind: "after", ms: 0 };
    case "condemn":
      if (await isAttached(client, name, signal)) return { kind: "after", ms: ATTACHED_RETRY_MS };
      await client.delete(persistentVolumes, { name }, { preconditions: { uid, resourceVersion }, signal });
      return DONE;
    case "delete-volume":
      if (await isAttached(client, name, signal)) return { kind: "after", ms: ATTACHED_RETRY_MS };
      return deleteVolume(deps, volume, signal);
    case "release":
      await keep(finalizers.filter((one) => one !== PROVISIONER_FINALIZER));
      log.info("volume let go", { volume: name });
      return DONE;
    default:
      return unreachable(action);
  }
}

const ATTACHED_RETRY_MS = 1_000;

/**
 * Asked from the API server itself: a cache that lags would let the data of a mounted volume go. A cluster has no index by
 * volume, so this reads every attachment; a deletion is rare and for good.
 */
async function isAttached(
  client: Pick<Client, "list">,
  volume: string,
  signal: AbortSignal,
): Promise<boolean> {
  const follow = createPages(volumeAttachments);
  let next: string | undefined;
  do {
    const page = await client.list(volumeAttachments, { limit: 500, continue: next, signal });
    if (page.items.some(({ spec }) => spec.source.persistentVolumeName === volume)) return true;
    next = follow(page.metadata.continue);
  } while (next);
  return false;
}

async function deleteVolume(
  deps: ReclaimDeps,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<Outcome> {
  const { client, clock, driver, attempts, teller, log } = deps;
  const key = keyOf(volume);
  let scrub = (text: string) => text;
  try {
    const secret = await fetchSecret(client, deletionSecretOf(volume), signal);
    ({ scrub } = secret);
    const volumeId = volume.spec?.csi?.volumeHandle ?? "";
    await driver.controller.deleteVolume(
      { volumeId, secrets: secret.values },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const message = scrub(error instanceof Error ? error.message : String(error));
    const waitMs = attempts.failed(key, clock.now());
    log.warn("volume not deleted", { volume: key, error: message, retryInMs: waitMs });
    teller.say(persistentVolumes, volume, {
      tell: { type: "Warning", reason: "VolumeFailedDelete", message },
      waitingFor: { reason: "backoff", message },
    });
    await noteFailure(deps, volume, message, signal);
    return { kind: "after", ms: waitMs };
  }
  attempts.forget(key);
  log.info("volume deleted", { volume: key });
  const live = await found(client.get(persistentVolumes, { name: key }, { signal }));
  if (!live || live.metadata.uid !== volume.metadata.uid) return DONE;
  return act(deps, live, { kind: "release" }, signal);
}

/** Once for each message: the time of the last change of the status is worth something to whoever reads it. */
async function noteFailure(
  { client, caches }: ReclaimDeps,
  volume: PersistentVolume,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  if (volume.status?.phase === "Failed" && volume.status.message === message) return;
  const change = { status: { phase: "Failed", message } };
  const written = await patchSeen(client, persistentVolumes, volume, change, {
    subresource: "status",
    signal,
  });
  caches.latest.volumes.written(written);
}

function deletionSecretOf({ metadata }: PersistentVolume): SecretRef | undefined {
  const { [DELETION_SECRET_NAME]: name, [DELETION_SECRET_NAMESPACE]: namespace } = metadata.annotations ?? {};
  return name && namespace ? { name, namespace } : undefined;
}

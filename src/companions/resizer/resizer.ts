import { isCsiError } from "../../csi/errors.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { isKubeError } from "../../kube/errors.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import { formatTime } from "../../kube/time.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { Attempts } from "../attempts.ts";
import { BY_VOLUME } from "../caches.ts";
import { toCapabilities } from "../capability.ts";
import { classNameOf } from "../claims.ts";
import type { CachedDeps, Companion } from "../deps.ts";
import { CALL_TIMEOUT_MS, type StorageDriver } from "../driver.ts";
import { createKeyed, DONE } from "../keyed.ts";
import { fetchSecret, type SecretRef, type SecretValues } from "../secrets.ts";
import { toQuantity, bytesOf } from "../sizes.ts";
import { createTeller } from "../teller.ts";
import { patchSeen } from "../writes.ts";
import { beginStatus, failedStatus, finishedStatus, pendingStatus, planResize, saysFailure } from "./plan.ts";

export interface ResizerDeps extends CachedDeps {
  readonly driver: StorageDriver;
}

const WORKERS = 4;
/** Told to nodes: a volume that several nodes have need not be grown by each of them. */
const NODE_NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required";

/** Grows volumes whose claims ask for more. What is on them is grown by their node. */
export function createResizer(deps: ResizerDeps): Companion {
  const { caches, client, clock, driver, log } = deps;
  const { latest } = caches;
  const teller = createTeller(deps, "resizer");
  const attempts = new Attempts();
  const queue = createKeyed(deps, { name: "resizer", workers: WORKERS, reconcile });
  const now = () => formatTime(clock.wall());

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const claim = latest.claims.get(key);
    if (!claim) {
      attempts.forget(key);
      teller.forget(key);
      return DONE;
    }
    const volume = latest.volumes.get(toKey({ name: claim.spec?.volumeName ?? "" }));
    const storageClass = caches.classes.get(toKey({ name: classNameOf(claim) ?? "" }));
    const { expand, ...words } = planResize({ claim, volume, storageClass, driver: driver.name });
    if (!expand || !volume) {
      teller.say(persistentVolumeClaims, claim, words);
      return DONE;
    }
    const waitMs = attempts.waitMs(key, clock.now());
    if (waitMs > 0) return { kind: "after", ms: waitMs };
    const begun = expand.begin ? await begin(claim, volume, expand.bytes, signal) : claim;
    return grow(begun, volume, expand.bytes, signal);
  }

  async function begin(
    claim: PersistentVolumeClaim,
    { metadata }: PersistentVolume,
    bytes: bigint,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    const begun = await writeStatus(claim, beginStatus(claim, bytes, now()), signal);
    const message = `External resizer is resizing volume ${metadata.name}`;
    teller.say(persistentVolumeClaims, claim, { tell: { type: "Normal", reason: "Resizing", message } });
    return begun;
  }

  async function writeStatus(
    claim: PersistentVolumeClaim,
    status: object,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    const options = { subresource: "status", signal } as const;
    const written = await patchSeen(client, persistentVolumeClaims, claim, { status }, options);
    latest.claims.written(written);
    return written;
  }

  async function grow(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    bytes: bigint,
    signal: AbortSignal,
  ): Promise<Outcome> {
    let secret: SecretValues | undefined;
    try {
      secret = await fetchSecret(client, expandSecretOf(volume), signal);
      const { grownBytes, nodeRequired } = await callDriver(volume, bytes, secret, signal);
      await record(claim, volume, { grownBytes, nodeRequired }, signal);
      attempts.forget(keyOf(claim));
      return DONE;
    } catch (error) {
      if (signal.aborted || isKubeError(error)) throw error;
      const text = error instanceof Error ? error.message : String(error);
      return failed(claim, volume, { error, text: secret?.scrub(text) ?? text }, signal);
    }
  }

  /** A driver that grows nothing on its side leaves all of it to the node. */
  async function callDriver(
    { spec = {} }: PersistentVolume,
    bytes: bigint,
    secret: SecretValues,
    signal: AbortSignal,
  ): Promise<{ grownBytes: bigint; nodeRequired: boolean }> {
    const abilities = await driver.can(signal);
    if (!abilities.expands) return { grownBytes: bytes, nodeRequired: true };
    const use = {
      accessModes: (spec.accessModes ?? []).slice(0, 1),
      block: spec.volumeMode === "Block",
      fsType: spec.csi?.fsType ?? "",
      mountFlags: spec.mountOptions ?? [],
    };
    const [volumeCapability] = toCapabilities(use, abilities);
    const answer = await driver.controller.controllerExpandVolume(
      {
        volumeId: spec.csi?.volumeHandle ?? "",
        capacityRange: { requiredBytes: bytes },
        secrets: secret.values,
        ...(volumeCapability && { volumeCapability }),
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    );
    const grownBytes = answer.capacityBytes > bytes ? answer.capacityBytes : bytes;
    return { grownBytes, nodeRequired: answer.nodeExpansionRequired };
  }

  /** The volume first: a node looks at its size when the claim says that it is the node's turn. */
  async function record(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    { grownBytes, nodeRequired }: { grownBytes: bigint; nodeRequired: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    if (bytesOf(volume.spec?.capacity?.["storage"]) < grownBytes) {
      const change = { spec: { capacity: { storage: toQuantity(grownBytes) } } };
      latest.volumes.written(await patchSeen(client, persistentVolumes, volume, change, { signal }));
    }
    log.info("volume grown", {
      claim: keyOf(claim),
      volume: volume.metadata.name,
      bytes: String(grownBytes),
    });
    if (nodeRequired) {
      await writeStatus(claim, pendingStatus(claim, now()), signal);
      const message = "Require file system resize of volume on node";
      teller.say(persistentVolumeClaims, claim, {
        tell: { type: "Normal", reason: "FileSystemResizeRequired", message },
        waitingFor: { reason: "node-resize", message },
      });
      return;
    }
    const marked = await markNodeNotRequired(claim, signal);
    await writeStatus(marked, finishedStatus(marked, grownBytes), signal);
    const message = "Resize volume succeeded";
    teller.say(persistentVolumeClaims, claim, {
      tell: { type: "Normal", reason: "VolumeResizeSuccessful", message },
    });
  }

  async function markNodeNotRequired(
    claim: PersistentVolumeClaim,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    if (claim.metadata.annotations?.[NODE_NOT_REQUIRED] === "true") return claim;
    const change = { metadata: { annotations: { [NODE_NOT_REQUIRED]: "true" } } };
    const marked = await patchSeen(client, persistentVolumeClaims, claim, change, { signal });
    latest.claims.written(marked);
    return marked;
  }

  async function failed(
    claim: PersistentVolumeClaim,
    { metadata }: PersistentVolume,
    { error, text }: { readonly error: unknown; readonly text: string },
    signal: AbortSignal,
  ): Promise<Outcome> {
    const message = `resize volume "${metadata.name}" by resizer "${driver.name}" failed: ${text}`;
    const waitMs = attempts.failed(keyOf(claim), clock.now());
    log.warn("volume not grown", { claim: keyOf(claim), error: text, retryInMs: waitMs });
    teller.say(persistentVolumeClaims, claim, {
      tell: { type: "Warning", reason: "VolumeResizeFailed", message },
      waitingFor: { reason: "backoff", message },
    });
    const infeasible = isCsiError(error, "INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND");
    if (isCsiError(error) && !saysFailure(claim, text, infeasible)) {
      await writeStatus(claim, failedStatus(claim, { message: text, infeasible, now: now() }), signal);
    }
    return { kind: "after", ms: waitMs };
  }

  return {
    async run(signal) {
      await caches.whenSynced(signal);
      const leave = [
        caches.claims.addHandler((delta) => {
          const wished = ({ spec }: PersistentVolumeClaim) => spec?.resources?.requests?.["storage"];
          if (delta.kind === "updated" && wished(delta.old) !== wished(delta.object))
            attempts.forget(delta.key);
          if (delta.object.spec?.volumeName) queue.add(delta.key);
        }),
        caches.volumes.addHandler(({ key }) => {
          for (const claim of caches.claims.byIndex(BY_VOLUME, key)) queue.add(keyOf(claim));
        }),
        caches.classes.addHandler(
          () => {
            for (const [key, { reason }] of teller.waits()) if (reason.startsWith("class-")) queue.add(key);
          },
          { changesOnly: true },
        ),
      ];
      try {
        await queue.run(signal);
      } finally {
        leave.forEach((end) => end());
      }
    },
  };
}

function expandSecretOf({ spec }: PersistentVolume): SecretRef | undefined {
  const { name, namespace } = spec?.csi?.controllerExpandSecretRef ?? {};
  return name && namespace ? { name, namespace } : undefined;
}

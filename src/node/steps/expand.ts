import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { isKubeError } from "../../kube/errors.ts";
import { referenceTo } from "../../kube/events/events.ts";
import { specName, type PersistentSpec } from "../../volumes/spec.ts";
import { text } from "../../volumes/untrusted.ts";
import { holdOf } from "../actual.ts";
import { tellPod, type Context } from "../context.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import type { Held, PodMount, VolumeState, Want } from "../world.ts";
import {
  bytesOf,
  expandedStatus,
  failedStatus,
  isRetargeted,
  planExpansion,
  recordedBytesOf,
  type ExpansionPlan,
} from "./expansion-plan.ts";
import { begin } from "./operation.ts";

/**
 * Growing a volume on the node, once whoever provisions it has grown the volume itself. The claim says whose turn it is;
 * it is followed for the pod's sake, so a turn that comes later brings the volume back by itself and nothing is read twice.
 */

interface Expansion {
  readonly want: Want;
  readonly held: Held;
  /** The pod's mount path, or its link to the device. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Part of a mount: a volume that grew while nobody used it is grown before the pod sees it. */
export async function expandDuringMount(
  context: Context,
  volume: VolumeState,
  expansion: Expansion,
): Promise<void> {
  const { want, held, signal } = expansion;
  const spec = growing(volume, want);
  if (!spec) return;
  const claim = await claimOf(context, spec, signal);
  const recorded = recordedBytesOf(claim);
  held.sizeBytes ||= recorded;
  // A claim without a recorded size says nothing about growing.
  if (recorded === 0 || recorded >= capacityOf(spec)) return;
  if (spec.readOnly) tellReadOnly(context, want, claim);
  else await expand(context, volume, { ...expansion, claim });
}

/** While it is in use. */
export function startExpand(
  context: Context,
  volume: VolumeState,
  { want, mount }: { readonly want: Want; readonly mount: PodMount },
): void {
  const pods = [want.podUid];
  begin(context, volume, { operation: "volume_fs_resize", exclusive: true, pods }, async (signal) => {
    const spec = growing(volume, want);
    if (!spec) return;
    const held = holdOf(volume);
    try {
      const claim = await claimOf(context, spec, signal);
      await expand(context, volume, { want, held, path: mount.path, signal, claim });
    } catch (error) {
      const message = `NodeExpandVolume failed for volume "${specName(spec)}" : ${toVolumeError(error).message}`;
      tellPod(context, want.pod, { type: "Warning", reason: "VolumeResizeFailed", message });
      throw error;
    }
  });
}

function growing({ plugin }: VolumeState, { spec, replaced }: Want): PersistentSpec | undefined {
  // Whose claim was replaced has none that speaks of this volume.
  if (replaced !== undefined || spec.kind === "inline" || spec.migrated === "inline") return undefined;
  return plugin.expand && plugin.traits(spec).expandable ? spec : undefined;
}

function capacityOf({ volume }: PersistentSpec): number {
  return bytesOf(volume.spec?.capacity?.["storage"]);
}

/** As followed for the pod. One that is out of date is found out by the first write, which is refused. */
async function claimOf(
  { caches }: Context,
  { volume }: PersistentSpec,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const { claimRef } = volume.spec ?? {};
  const ref = { namespace: text(claimRef?.namespace), name: text(claimRef?.name) };
  const claim = await caches.objects
    .read(persistentVolumeClaims, ref, signal)
    .catch((error: unknown): never => {
      throw claimFailure("reading", ref, error);
    });
  const bound = text(claimRef?.uid);
  if (bound === "" || bound === claim.metadata.uid) return claim;
  throw claimFailure("reading", ref, new Error(`it is another than the volume was bound to (uid ${bound})`));
}

type Claimed = Expansion & { readonly claim: PersistentVolumeClaim };

async function expand(context: Context, volume: VolumeState, expansion: Claimed): Promise<void> {
  const { want, held, claim } = expansion;
  const wantedBytes = want.spec.kind === "persistent" ? capacityOf(want.spec) : 0;
  const plan = planExpansion(claim, { wantedBytes });
  if (plan.kind === "not-yet") return;
  // Done here before, and the claim as it is followed has not caught up.
  if (plan.kind === "finished" || held.sizeBytes >= plan.sizeBytes) {
    held.sizeBytes = Math.max(held.sizeBytes, plan.sizeBytes);
    return;
  }
  const current = plan.markInProgress ? await markInProgress(context, claim) : claim;
  await callPlugin(context, volume, { ...expansion, claim: current, plan });
}

type Proceed = Extract<ExpansionPlan, { kind: "proceed" }>;

async function callPlugin(
  context: Context,
  volume: VolumeState,
  step: Claimed & { readonly plan: Proceed },
): Promise<void> {
  const { want, held, path, signal, plan, claim } = step;
  const { plugin, name } = volume;
  const block = want.mode === "Block";
  try {
    await plugin.expand?.({
      volume: name,
      spec: want.spec,
      // A driver knows the device, not our link to it.
      volumePath: block ? ((await context.host.files.realPath(path)) ?? path) : path,
      stagingPath: block ? (plugin.block?.stagingPath(want.spec) ?? "") : held.deviceMountPath,
      devicePath: held.devicePath,
      newSizeBytes: plan.sizeBytes,
      oldSizeBytes: held.sizeBytes,
      signal,
    });
  } catch (thrown) {
    const error = toVolumeError(thrown);
    if (error.kind !== "not-supported" || !(plan.legacy || plan.alreadyUpdated)) {
      await expansionFailed(context, { held, plan, claim, error });
      return;
    }
    held.sizeBytes = plan.sizeBytes;
    return;
  }
  await expanded(context, step);
}

async function expanded(context: Context, { want, held, plan, claim }: Claimed & { readonly plan: Proceed }) {
  const message = `MountVolume.NodeExpandVolume succeeded for volume "${specName(want.spec)}" ${context.nodeName}`;
  if (!plan.alreadyUpdated) await patchClaim(context, claim, (now) => expandedStatus(now, plan.sizeBytes));
  held.expansionFailed = false;
  // Only now: a claim that could not be written has to be written by the next attempt, which the driver answers at once.
  held.sizeBytes = plan.sizeBytes;
  tellBoth(context, want, claim, { type: "Normal", reason: "FileSystemResizeSuccessful", message });
}

/** Only what certainly failed is written down; what may be going on is tried again and nothing is said about it. */
async function expansionFailed(
  context: Context,
  {
    held,
    plan,
    claim,
    error,
  }: { held: Held; plan: Proceed; claim: PersistentVolumeClaim; error: VolumeError },
): Promise<void> {
  if (error.outcome === "final" && !plan.legacy) {
    // Whoever asks for another size after a failure may only get it once this one is given up.
    const givenUp = held.expansionFailed && isRetargeted(claim, plan.sizeBytes);
    held.expansionFailed = true;
    const infeasible = error.kind === "infeasible" || givenUp;
    const failure = { message: error.message, infeasible, at: context.clock.wall() };
    await patchClaim(context, claim, (now) => failedStatus(now, failure));
  }
  if (error.kind !== "in-use") throw error;
  held.expansionRefused = true;
}

function markInProgress(context: Context, claim: PersistentVolumeClaim): Promise<PersistentVolumeClaim> {
  const status = { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } };
  // Whose turn it is was read from this very version: of another it is worked out again.
  return patchClaim(context, claim, () => status, { triesMax: 1 });
}

/** Tries of one write; each follows a change by somebody else. */
const TRIES_MAX = 5;

/**
 * Conditions are a list, which a patch replaces as a whole: made from a claim of before it would take off what others put
 * on meanwhile. So each names the version it was made from, and one that comes too late is made again from the claim as
 * it is. A claim of the same name that is another is not touched.
 */
async function patchClaim(
  { client }: Context,
  claim: PersistentVolumeClaim,
  statusOf: (claim: PersistentVolumeClaim) => object,
  { triesMax = TRIES_MAX }: { readonly triesMax?: number } = {},
): Promise<PersistentVolumeClaim> {
  const ref = { namespace: claim.metadata.namespace ?? "", name: claim.metadata.name ?? "" };
  let current = claim;
  for (let tries = 1; ; tries++) {
    const { resourceVersion, uid } = current.metadata;
    if (uid !== claim.metadata.uid)
      throw claimFailure("writing the status of", ref, new Error("it was replaced"));
    const value = { metadata: { resourceVersion }, status: statusOf(current) };
    try {
      return await client.patch(
        persistentVolumeClaims,
        ref,
        { type: "merge", value },
        { subresource: "status" },
      );
    } catch (error) {
      if (!isKubeError(error, "Conflict") || tries >= triesMax)
        throw claimFailure("writing the status of", ref, error);
    }
    current = await client.get(persistentVolumeClaims, ref).catch((error: unknown): never => {
      throw claimFailure("reading", ref, error);
    });
  }
}

function claimFailure(
  doing: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  error: unknown,
): VolumeError {
  return new VolumeError(
    "transient",
    `${doing} claim ${namespace}/${name}: ${toVolumeError(error).message}`,
    {
      cause: error,
      blockedBy: [{ kind: "claim", namespace, name }],
    },
  );
}

function tellReadOnly(context: Context, want: Want, claim: PersistentVolumeClaim): void {
  const message = `MountVolume.NodeExpandVolume failed for volume "${specName(want.spec)}" requested read-only file system`;
  tellBoth(context, want, claim, { type: "Warning", reason: "FileSystemResizeFailed", message });
}

function tellBoth(
  context: Context,
  { pod }: Want,
  claim: PersistentVolumeClaim,
  event: { type: "Normal" | "Warning"; reason: string; message: string },
): void {
  tellPod(context, pod, event);
  context.events.record({ ref: referenceTo(persistentVolumeClaims, claim), ...event });
}

import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { referenceTo } from "../kube/events/events.ts";
import { specName, type PersistentSpec } from "../volumes/spec.ts";
import { text } from "../volumes/untrusted.ts";
import { holdOf } from "./actual.ts";
import { tellPod, type Context } from "./context.ts";
import { toVolumeError, VolumeError, withStep } from "./errors.ts";
import { expandedStatus, failedStatus, planExpansion, type ExpansionPlan } from "./expansion-plan.ts";
import { begin } from "./operation.ts";
import { bytesOf } from "./populate.ts";
import type { Held, PodMount, VolumeState, Want } from "./world.ts";

/** Growing a volume on the node, once whoever provisions it has grown the volume itself. */

interface Expansion {
  readonly want: Want;
  readonly held: Held;
  readonly volumePath: string;
  readonly signal: AbortSignal;
}

/** Part of a mount: a volume that grew while nobody used it is grown before the pod sees it. */
export async function expandDuringMount(
  context: Context,
  volume: VolumeState,
  { want, held, signal }: { want: Want; held: Held; signal: AbortSignal },
): Promise<void> {
  const spec = growing(volume, want);
  if (!spec) return;
  const claim = await claimOf(context, spec, signal);
  const capacity = bytesOf(spec.volume.spec?.capacity?.["storage"]);
  const recorded = bytesOf(claim.status?.capacity?.["storage"]);
  held.sizeBytes ||= recorded;
  // A claim without a recorded size says nothing about growing.
  if (recorded === 0 || recorded >= capacity) return;
  if (spec.readOnly) {
    tellReadOnly(context, want, claim);
    return;
  }
  const volumePath = want.mode === "Block" ? held.devicePath : volume.plugin.mountPath(spec, want.podUid);
  await expand(context, volume, { want, held, volumePath, signal }, claim);
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
      if (spec.readOnly) {
        tellReadOnly(context, want, claim);
        return;
      }
      await expand(context, volume, { want, held, volumePath: mount.path, signal }, claim);
    } catch (error) {
      const message = `NodeExpandVolume failed for volume "${specName(spec)}" : ${toVolumeError(error).message}`;
      tellPod(context, want.pod, { type: "Warning", reason: "VolumeResizeFailed", message });
      throw error;
    }
  });
}

function growing({ plugin }: VolumeState, { spec }: Want): PersistentSpec | undefined {
  if (spec.kind === "inline" || spec.migrated === "inline") return undefined;
  return plugin.expand && plugin.traits(spec).expandable ? spec : undefined;
}

async function claimOf(
  { client }: Context,
  { volume }: PersistentSpec,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const { namespace, name } = {
    namespace: text(volume.spec?.claimRef?.namespace),
    name: text(volume.spec?.claimRef?.name),
  };
  try {
    // Read live: it is about to be patched, and a claim is grown a few times in its life.
    return await client.get(persistentVolumeClaims, { namespace, name }, { signal });
  } catch (error) {
    throw withStep(
      `reading claim ${namespace}/${name}: `,
      new VolumeError("transient", toVolumeError(error).message, {
        cause: error,
        blockedBy: [{ kind: "claim", namespace, name }],
      }),
    );
  }
}

async function expand(
  context: Context,
  volume: VolumeState,
  expansion: Expansion,
  claim: PersistentVolumeClaim,
): Promise<void> {
  const { want, held } = expansion;
  const plan = planExpansion(claim, { wantedBytes: want.sizeBytes || bytesOf(capacityOf(want)) });
  if (plan.kind === "finished") {
    held.sizeBytes = plan.sizeBytes;
    return;
  }
  // Nothing to do until the claim changes, which brings the pod back; without this mark it would be tried for ever.
  if (plan.kind === "not-yet") {
    held.sizeBytes = Math.max(held.sizeBytes, want.sizeBytes);
    return;
  }
  let current = claim;
  if (plan.markInProgress)
    current = await patchClaim(
      context,
      claim,
      { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
      { checked: true },
    );
  await callPlugin(context, volume, { ...expansion, plan, claim: current });
}

function capacityOf({ spec }: Want): unknown {
  return spec.kind === "persistent" ? spec.volume.spec?.capacity?.["storage"] : undefined;
}

type Proceed = Extract<ExpansionPlan, { kind: "proceed" }>;

async function callPlugin(
  context: Context,
  volume: VolumeState,
  step: Expansion & { readonly plan: Proceed; readonly claim: PersistentVolumeClaim },
): Promise<void> {
  const { want, held, volumePath, signal, plan, claim } = step;
  const { plugin, name } = volume;
  try {
    await plugin.expand?.({
      volume: name,
      spec: want.spec,
      volumePath,
      stagingPath:
        want.mode === "Block" ? (plugin.block?.stagingPath(want.spec) ?? "") : held.deviceMountPath,
      devicePath: held.devicePath,
      newSizeBytes: plan.sizeBytes,
      oldSizeBytes: held.sizeBytes,
      signal,
    });
  } catch (thrown) {
    const error = toVolumeError(thrown);
    if (error.kind === "not-supported" && (plan.legacy || plan.alreadyUpdated)) {
      held.sizeBytes = plan.sizeBytes;
      return;
    }
    await expansionFailed(context, { held, plan, claim, error });
    return;
  }
  held.sizeBytes = plan.sizeBytes;
  const message = `MountVolume.NodeExpandVolume succeeded for volume "${specName(want.spec)}" ${context.nodeName}`;
  tellBoth(context, want, claim, { type: "Normal", reason: "FileSystemResizeSuccessful", message });
  if (!plan.alreadyUpdated) await patchClaim(context, claim, expandedStatus(claim, plan.sizeBytes));
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
  if (error.outcome === "final" && !plan.legacy)
    await patchClaim(
      context,
      claim,
      failedStatus(claim, {
        message: error.message,
        infeasible: error.kind === "infeasible",
        at: context.clock.wall(),
      }),
    );
  if (error.kind !== "in-use") throw error;
  held.expansionRefused = true;
}

async function patchClaim(
  { client }: Context,
  { metadata }: PersistentVolumeClaim,
  status: object,
  { checked = false }: { readonly checked?: boolean } = {},
): Promise<PersistentVolumeClaim> {
  const ref = { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
  const version = checked ? { metadata: { resourceVersion: metadata.resourceVersion } } : {};
  return client.patch(
    persistentVolumeClaims,
    ref,
    { type: "merge", value: { ...version, status } },
    { subresource: "status" },
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

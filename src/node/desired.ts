import type { Volume } from "kubernetes-types/core/v1.js";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import { keyOf } from "../kube/object.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import { text } from "../volumes/untrusted.ts";
import { mark, type Context } from "./context.ts";
import { uniqueName } from "./plugin-table.ts";
import { claimUseOf, podRef, volumeUsesOf, wishOf, type VolumeUse, type Wish } from "./populate.ts";
import { blockerKeyOf, objectsOf, type ObjectUse } from "./references.ts";
import { contradictionOf, hasNameless, keepPinned, nameMounts, pinOf } from "./replaced.ts";
import type { NodePlugin } from "./plugin.ts";
import { labelVerdict, mountedLabel } from "./steps/selinux.ts";
import type { PodRecord, Reference, VolumeState, Want } from "./world.ts";

/**
 * What should be on this node: the volumes that a container of a live pod uses. A volume once found stays wanted
 * although its claim can no longer be followed: unsure means keep.
 */

/** A pod without uid comes from no API server; its name then has to do. */
export function uidOf(pod: Pod): string {
  return pod.metadata.uid ?? keyOf(pod);
}

/** Whether the pod waits for a volume: it uses more than are, or may be, there for it. */
export function lacksVolumes({ world }: Pick<Context, "world">, pod: Pod): boolean {
  const uid = uidOf(pod);
  let here = 0;
  for (const { held } of world.volumesOf(uid)) if (held?.mounts.has(uid)) here++;
  return volumeUsesOf(pod).size > here;
}

/** Takes in a pod as it is now, and follows its volumes anew. */
export function followPod(context: Context, pod: Pod): void {
  const uid = uidOf(pod);
  const { world, podStates } = context;
  const known = world.pods.get(uid);
  if (podStates.runtimeRemoved(uid)) {
    releasePod(context, uid);
    return;
  }
  // A pod that is going starts no container any more, so what it did not get yet it will not need.
  if (!known && context.readyToUnmount() && podStates.containersTerminating(uid)) return;
  const record: PodRecord = known ?? { uid, pod, references: new Map(), follows: new Map() };
  world.pods.set(uid, record);
  record.pod = pod;
  followVolumes(context, record);
  noteLoading(
    context,
    uid,
    [...record.references.values()].some((one) => one.kind === "unresolved" && one.loading),
  );
  for (const volume of world.volumesOf(uid)) mark(context, volume);
  context.podChanged(uid);
}

/** Its containers are gone: nothing is wanted for it any more. */
export function releasePod(context: Context, uid: string): void {
  const record = context.world.pods.get(uid);
  if (!record) return;
  context.world.pods.delete(uid);
  context.selinux.measure.forget(uid);
  noteLoading(context, uid, false);
  for (const volume of [...context.world.volumesOf(uid)]) unwant(context, volume, uid);
  for (const key of [...record.follows.keys()]) unfollow(context, record, key);
  context.podChanged(uid);
}

/** What waits until every pod's objects have come is looked at when the last has. */
function noteLoading(context: Context, uid: string, loading: boolean): void {
  const { world } = context;
  if (loading) world.loading.add(uid);
  else if (world.loading.delete(uid) && world.loading.size === 0)
    for (const volume of world.volumes.values()) if (volume.waits.has("")) mark(context, volume);
}

function followVolumes(context: Context, record: PodRecord): void {
  const uses = volumeUsesOf(record.pod);
  const urgent = lacksVolumes(context, record.pod);
  const needed = new Set<string>();
  const need = (use: ObjectUse) => {
    const key = blockerKeyOf(use.resource, use.ref);
    needed.add(key);
    // Followed at once, so that what it says can be read in the next line.
    if (record.follows.has(key)) return;
    record.follows.set(key, context.caches.objects.follow(use.resource, use.ref, { urgent }));
    const followers = context.world.followers.get(key);
    if (followers) followers.add(record.uid);
    else context.world.followers.set(key, new Set([record.uid]));
  };
  const untold = untoldOf(context, record, uses);
  for (const volume of record.pod.spec?.volumes ?? []) {
    const use = uses.get(volume.name);
    const following = { volume, need, untold: untold.has(volume.name) };
    if (use) record.references.set(volume.name, refer(context, record, { ...following, use }));
  }
  settleWants(context, record);
  for (const key of [...record.follows.keys()]) if (!needed.has(key)) unfollow(context, record, key);
}

function unfollow({ world }: Context, record: PodRecord, key: string): void {
  record.follows.get(key)?.();
  record.follows.delete(key);
  const followers = world.followers.get(key);
  followers?.delete(record.uid);
  if (followers?.size === 0) world.followers.delete(key);
}

/** Which volumes of the pod may be one of those found mounted for it that nobody can tell apart. */
function untoldOf(
  context: Context,
  { uid, pod }: PodRecord,
  uses: ReadonlyMap<string, VolumeUse>,
): ReadonlySet<string> {
  if (!hasNameless(context.world, uid)) return new Set();
  const claimed = (pod.spec?.volumes ?? []).flatMap((volume) => {
    const use = claimUseOf(pod, volume) && uses.get(volume.name);
    return use
      ? [[volume.name, leadOf(context, wishOf(pod, volume, use, cachesOf(context)), uid)] as const]
      : [];
  });
  return nameMounts(context.world, uid, new Map(claimed));
}

function leadOf({ plugins }: Context, wish: Wish, podUid: string): string | undefined {
  const match = wish.kind === "wanted" ? plugins.bySpec(wish.spec) : undefined;
  return wish.kind === "wanted" && match?.kind === "found"
    ? uniqueName(match.plugin, wish.spec, podUid)
    : undefined;
}

interface Following {
  readonly volume: Volume;
  /** It may be mounted already, as something else than it leads to now. */
  readonly untold: boolean;
  readonly use: VolumeUse;
  readonly need: (use: ObjectUse) => void;
}

function refer(context: Context, record: PodRecord, following: Following): Reference {
  const { volume, use, need } = following;
  const before = record.references.get(volume.name);
  followObjects(context, record, following);
  const wish = wishOf(record.pod, volume, use, cachesOf(context));
  const pinned = pinOf(context.world, record.uid, volume.name);
  const leadsTo = leadOf(context, wish, record.uid);
  const contradiction = pinned && contradictionOf(pinned, record.uid, { wish, leadsTo });
  if (pinned && contradiction) {
    const kept = keepPinned(context, record, { source: volume, pinned, contradiction });
    followSource(context, record, { spec: pinned.wants.get(record.uid)?.spec, need });
    return kept;
  }
  const held = following.untold && wish.kind === "wanted" ? UNTOLD : wish;
  const wanted = held.kind === "wanted" ? want(context, record, { volume, wish: held }) : held;
  if ("name" in wanted) {
    followSource(context, record, { spec: wish.kind === "wanted" ? wish.spec : undefined, need });
    return { kind: "volume", volume: wanted };
  }
  if (before?.kind === "volume" && before.volume.wants.has(record.uid)) return before;
  const loading = wanted.kind === "loading";
  const { message, heals } = loading ? LOADING : wanted;
  const same = before?.kind === "unresolved" && before.message === message;
  return {
    kind: "unresolved",
    message,
    heals,
    loading,
    sinceMs: same ? before.sinceMs : context.clock.now(),
  };
}

/** What a set-up of it reads. */
function followSource(
  { nodeName }: Context,
  { pod }: PodRecord,
  { spec, need }: { readonly spec: VolumeSpec | undefined; readonly need: Following["need"] },
): void {
  if (!spec) return;
  for (const object of objectsOf(spec, { podNamespace: podRef(pod).namespace, nodeName })) need(object);
}

const UNTOLD = {
  kind: "refused",
  message:
    "volumes were found mounted for the pod that its claims do not lead to, and nobody can tell which of its volumes they are; delete the pod to start anew",
  heals: true,
} as const;

const LOADING = { message: "its objects were asked for and have not come yet", heals: true } as const;

/** Claim first, then the volume it names. */
function followObjects({ caches }: Context, { pod }: PodRecord, { volume, need }: Following): void {
  const claim = claimUseOf(pod, volume);
  if (!claim) return;
  const { namespace, name } = claim;
  need({ resource: persistentVolumeClaims, ref: { namespace, name } });
  const seen = caches.objects.see(persistentVolumeClaims, { namespace, name });
  const bound = seen.kind === "present" ? text(seen.object.spec?.volumeName) : "";
  if (bound) need({ resource: persistentVolumes, ref: { name: bound } });
}

function cachesOf({ caches }: Context) {
  return {
    claim: (key: string) => {
      const slash = key.indexOf("/");
      return caches.objects.see(persistentVolumeClaims, {
        namespace: key.slice(0, slash),
        name: key.slice(slash + 1),
      });
    },
    volume: (name: string) => caches.objects.see(persistentVolumes, { name }),
  };
}

function want(
  context: Context,
  record: PodRecord,
  { volume: source, wish }: { readonly volume: Volume; readonly wish: Extract<Wish, { kind: "wanted" }> },
): VolumeState | Exclude<Wish, { kind: "wanted" }> {
  const { world, plugins, clock } = context;
  const { spec, mode, sizeBytes, recordedBytes } = wish;
  const match = plugins.bySpec(spec);
  const problem = (why: string) =>
    ({
      kind: "refused",
      message: `failed to get Plugin from volumeSpec for volume "${specName(spec)}" err=${why}`,
      heals: false,
    }) as const;
  if (match.kind === "none") return problem(match.message);
  const name = uniqueName(match.plugin, spec, record.uid);
  if (name === undefined) return problem("a field that names the volume is missing");
  const labelled = labelOf(context, record, { source, wish, plugin: match.plugin });
  if (labelled.kind === "refused") return labelled;
  const volume = world.volume(name, match.plugin);
  const known = volume.wants.get(record.uid);
  const outerNames = [...new Set([...(known?.outerNames ?? []), source.name])];
  const fresh: Want = {
    podUid: record.uid,
    pod: record.pod,
    spec,
    mode,
    outerNames,
    sinceMs: clock.now(),
    sizeBytes,
    selinuxLabel: labelled.label,
  };
  if (known) {
    Object.assign(known, { pod: record.pod, spec, outerNames, sizeBytes });
    delete known.replaced;
  }
  if (known && !volume.held?.mounts.has(record.uid)) known.selinuxLabel = labelled.label;
  if (!known) {
    noteLabel(context, { want: fresh, volume });
    volume.wants.set(record.uid, fresh);
    world.link(record.uid, volume);
    context.inUse.changed();
  }
  // Known from then on, so that a volume whose claim says its size late can still grow.
  if (volume.held) volume.held.sizeBytes ||= recordedBytes;
  mark(context, volume);
  return volume;
}

/** Anew at every look until the pod has the volume: what the CSIDriver says may come late. */
function labelOf(
  { selinux }: Context,
  { uid, pod }: PodRecord,
  { source, wish, plugin }: { source: Volume; wish: Extract<Wish, { kind: "wanted" }>; plugin: NodePlugin },
) {
  const { host, everyVolume, measure } = selinux;
  const { spec, mode } = wish;
  const traits = plugin.traits(spec);
  const verdict = labelVerdict(host, { pod, spec, mode, outerName: source.name, traits, everyVolume });
  const about = { plugin: plugin.metricName(spec), spec };
  if (verdict.problem)
    measure.note(uid, source.name, { kind: verdict.problem, refused: verdict.kind === "refused" }, about);
  return verdict.kind === "refused"
    ? ({ kind: "refused", message: verdict.message, heals: false } as const)
    : verdict;
}

function noteLabel({ selinux }: Context, { want, volume }: { want: Want; volume: VolumeState }): void {
  if (!selinux.host.enabled) return;
  const { podUid, selinuxLabel, spec } = want;
  const mounted = volume.held && mountedLabel(volume.held);
  const differs =
    (mounted !== undefined && mounted !== selinuxLabel) ||
    [...volume.wants.values()].some((other) => other.selinuxLabel !== selinuxLabel);
  const about = { plugin: volume.plugin.metricName(spec), spec };
  const outcome = differs
    ? ({ kind: "volume-mismatch", refused: true } as const)
    : ({ kind: "admitted" } as const);
  selinux.measure.note(podUid, want.outerNames[0] ?? "", outcome, about);
}

/** What the pod's volumes no longer lead to is not wanted any more. */
function settleWants(context: Context, { uid, references }: PodRecord): void {
  const led = new Map<VolumeState, string[]>();
  for (const [outer, reference] of references)
    if (reference.kind === "volume") led.set(reference.volume, [...(led.get(reference.volume) ?? []), outer]);
  for (const volume of [...context.world.volumesOf(uid)]) {
    const wanted = volume.wants.get(uid);
    const outerNames = led.get(volume);
    const mount = volume.held?.mounts.get(uid);
    if (mount && outerNames) mount.outerNames = outerNames;
    if (wanted && outerNames) wanted.outerNames = outerNames;
    else if (wanted) unwant(context, volume, uid);
  }
}

function unwant(context: Context, volume: VolumeState, uid: string): void {
  volume.wants.delete(uid);
  volume.blockers.delete(uid);
  mark(context, volume);
  if (context.world.tidy(volume, uid)) context.operations.forget(volume.name);
  context.inUse.changed();
}

import type { Volume } from "kubernetes-types/core/v1.js";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import { text } from "../volumes/untrusted.ts";
import { tellPod, type Context } from "./context.ts";
import type { Wish } from "./populate.ts";
import type { PodMount, PodRecord, Reference, VolumeIdentity, VolumeState, Want, World } from "./world.ts";

/**
 * What a live pod has mounted stays until the pod goes, whatever becomes of its claim and PersistentVolume: containers
 * write to what is mounted, not to what the API says now. So each of a pod's volumes is pinned, from the moment its mount
 * begins, to the volume it led to then; after a restart by what the journal and the disk say. Objects that lead elsewhere
 * since contradict it, which the pod is told, and nothing is unmounted or mounted because of them.
 */

/** The volume that is, or may be, mounted as this volume of the pod; undefined before its mount began. */
export function pinOf(world: World, podUid: string, outerName: string): VolumeState | undefined {
  for (const volume of world.volumesOf(podUid))
    if (pinnedNames(volume, podUid).includes(outerName)) return volume;
  return undefined;
}

function pinnedNames({ held, wants, running }: VolumeState, podUid: string): readonly string[] {
  const mount = held?.mounts.get(podUid);
  if (mount && mount.outerNames.length > 0) return mount.outerNames;
  const begun = mount !== undefined || running.some((step) => step.podUid === podUid);
  return begun ? (wants.get(podUid)?.outerNames ?? []) : [];
}

/** By uid: an object of the same name is another object. "" where nobody says. */
export function identityOf(spec: VolumeSpec): VolumeIdentity {
  if (spec.kind === "inline") return { volumeUid: "", claimUid: "" };
  const { metadata, spec: declared } = spec.volume;
  return { volumeUid: text(metadata.uid), claimUid: text(declared?.claimRef?.uid) };
}

/** How what the objects say now contradicts what is mounted; undefined where it does not, or cannot be said. */
export function contradictionOf(
  pinned: VolumeState,
  podUid: string,
  now: { readonly wish: Wish; readonly leadsTo: string | undefined },
): string | undefined {
  const { wish, leadsTo } = now;
  if (wish.kind === "loading" || (wish.kind === "refused" && wish.unread)) return undefined;
  if (wish.kind === "refused") return `its objects no longer lead to it: ${wish.message}`;
  if (leadsTo === undefined || wish.spec.kind === "inline") return undefined;
  const name = text(wish.spec.volume.metadata.name);
  if (leadsTo !== pinned.name) return `its claim leads to ${leadsTo} (PersistentVolume ${name}) now`;
  const then =
    pinned.held?.mounts.get(podUid)?.identity ?? identityOf(pinned.wants.get(podUid)?.spec ?? wish.spec);
  const found = identityOf(wish.spec);
  if (differs(then.volumeUid, found.volumeUid))
    return `its PersistentVolume ${name} is another object of the same name (uid ${found.volumeUid}, was ${then.volumeUid})`;
  if (differs(then.claimUid, found.claimUid))
    return `its claim is another object of the same name (uid ${found.claimUid}, was ${then.claimUid})`;
  return undefined;
}

/** What nobody says does not differ. */
function differs(then: string, now: string): boolean {
  return then !== "" && now !== "" && then !== now;
}

/**
 * Keeps the pod's want of what it has, as it has it; tells the pod once, and again when the contradiction is another.
 * Undefined where the disk alone says what is mounted: that is too little to set it up once more, so it is left as it is.
 */
export function keepPinned(
  context: Context,
  record: PodRecord,
  kept: { readonly source: Volume; readonly pinned: VolumeState; readonly contradiction: string },
): Reference {
  const { source, pinned, contradiction } = kept;
  const { uid, pod } = record;
  const known = pinned.wants.get(uid);
  const replaced = `volume "${source.name}" of the pod stays ${pinned.name} until the pod ends, but ${contradiction}`;
  const before = known?.replaced ?? saidBefore(record.references.get(source.name));
  if (before !== replaced)
    tellPod(context, pod, { type: "Warning", reason: "VolumeReplaced", message: replaced });
  const want = known ?? wantOf(context, record, pinned);
  if (!want)
    return {
      kind: "unresolved",
      message: replaced,
      heals: true,
      loading: false,
      sinceMs: context.clock.now(),
    };
  want.pod = pod;
  if (!want.outerNames.includes(source.name)) want.outerNames = [...want.outerNames, source.name];
  if (!known) {
    pinned.wants.set(uid, want);
    context.world.link(uid, pinned);
    context.inUse.changed();
  }
  want.replaced = replaced;
  return { kind: "volume", volume: pinned };
}

function saidBefore(reference: Reference | undefined): string | undefined {
  return reference?.kind === "unresolved" ? reference.message : undefined;
}

/** After a restart: as it was mounted, by the journal, which has the whole PersistentVolume. */
function wantOf({ clock }: Context, { uid, pod }: PodRecord, { held }: VolumeState): Want | undefined {
  const mount = held?.mounts.get(uid);
  if (!held || !mount || mount.identity.volumeUid === "") return undefined;
  return {
    ...{ podUid: uid, pod, spec: mount.spec, mode: held.mode, outerNames: mount.outerNames },
    ...{ sinceMs: clock.now(), sizeBytes: 0, selinuxLabel: held.selinuxLabel },
  };
}

/**
 * Mounts that were found without a word on which of the pod's volumes they are: those that a volume leads to are it. A
 * pod's volumes never change, so what is left over is what one of them led to before: the only one that leads elsewhere,
 * or of the same PersistentVolume's name. Answers which volumes of the pod may be one of those that nobody can tell.
 */
export function nameMounts(
  world: World,
  podUid: string,
  leads: ReadonlyMap<string, string | undefined>,
): ReadonlySet<string> {
  const nameless = namelessOf(world, podUid);
  const left = nameless.filter(({ volume, mount }) => !nameBy(mount, leads, (to) => to === volume.name));
  const open = [...leads.keys()].filter((outer) => pinOf(world, podUid, outer) === undefined);
  const [only, another] = left;
  if (only && !another && open.length === 1) only.mount.outerNames = open;
  return new Set(left.length === 0 || (left.length === 1 && open.length === 1) ? [] : open);
}

function nameBy(
  mount: PodMount,
  leads: ReadonlyMap<string, string | undefined>,
  isIt: (leadsTo: string | undefined) => boolean,
): boolean {
  mount.outerNames = [...leads].filter(([, to]) => isIt(to)).map(([outer]) => outer);
  return mount.outerNames.length > 0;
}

function namelessOf(world: World, podUid: string) {
  return [...world.volumesOf(podUid)].flatMap((volume) => {
    const mount = volume.held?.unknown ? undefined : volume.held?.mounts.get(podUid);
    return mount?.spec.kind === "persistent" && mount.outerNames.length === 0 ? [{ volume, mount }] : [];
  });
}

export function hasNameless(world: World, podUid: string): boolean {
  return namelessOf(world, podUid).length > 0;
}

/** Whether the pod does not have any more what it was pinned to: its volumes are followed to where they lead now. */
export function isFreed({ wants, held }: VolumeState, podUid: string): boolean {
  return wants.get(podUid)?.replaced !== undefined && !held?.mounts.has(podUid);
}

/** A block volume lies where its PersistentVolume's name says: another of that name has to be gone first. */
export function namesakeOf(world: World, volume: VolumeState, { mode, spec }: Want): VolumeState | undefined {
  // Looks at all volumes of the node, before a step of a block volume only.
  if (mode !== "Block") return undefined;
  return [...world.volumes.values()].find(
    (other) =>
      other !== volume &&
      other.plugin === volume.plugin &&
      other.held?.mode === "Block" &&
      (other.held.device !== "not-mounted" || other.held.mounts.size > 0 || other.running.length > 0) &&
      specName(other.held.spec) === specName(spec),
  );
}

/** Volumes that `namesakeOf` keeps waiting for this one. */
export function waitingForPlace(world: World, { name }: VolumeState): readonly VolumeState[] {
  return [...world.volumes.values()].filter(({ waits }) =>
    [...waits.values()].some(({ reason, object }) => reason === "volume-replaced" && object.name === name),
  );
}

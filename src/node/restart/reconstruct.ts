import { dirname, join } from "node:path";
import { backoffMs } from "../../base/backoff.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { newHeld } from "../actual.ts";
import type { Context } from "../context.ts";
import type { JournaledCall, JournalRecord } from "./journal.ts";
import { addLate } from "../late-calls.ts";
import { inParallel } from "./parallel.ts";
import { cleanStaging, removeDraft } from "./residue.ts";
import { isStaticPod } from "./static-pods.ts";
import { findUnexplained } from "./strays.ts";
import { twice } from "./twice.ts";
import { unescapeName } from "../paths.ts";
import type { FoundVolume, NodePlugin, StagedVolume } from "../plugin.ts";
import { uniqueName } from "../plugin-table.ts";
import { identityOf } from "../replaced.ts";
import type { Held, PodMount, VolumeIdentity, VolumeMode, VolumeState, World } from "../world.ts";
import { toVolumeName } from "../../volumes/names.ts";

/**
 * What is on this node after a start: records of the journal, directories of pods, staged volumes that plugins find.
 * Whatever any of them names may be there, so it is held as uncertain; the ordinary plan then mounts it again or takes
 * it down. Nothing here needs the API server.
 */
export interface Reconstruction {
  /** What nobody here can account for: left alone, and so is what `volumesInUse` said. */
  readonly strays: readonly string[];
}

/**
 * `onProblem` is told what keeps it from going on, and undefined once it does. Without the list of pods or of mounts nobody
 * knows what is here, so nothing is mounted or taken down until they were read; the process stays, and says so.
 */
export async function reconstruct(
  context: Context,
  onProblem: (problem: string | undefined) => void,
): Promise<Reconstruction> {
  const { world, log, measure } = context;
  const [{ records, unread }, { entries, unlisted }, staged] = await untilRead(context, onProblem, () =>
    Promise.all([context.journal.read(), findVolumes(context), findStaged(context)]),
  );
  await cleanStaging(context, new Set(staged.map(([, { path }]) => dirname(path)))).catch((error: unknown) =>
    log.warn("leftovers of staged volumes not removed", { error }),
  );
  for (const record of records) addRecord(context, record);
  const strays: string[] = [...unread, ...unlisted];
  await inParallel(entries, async (entry) => {
    if (isExplained(world, entry)) measure.reconstructed(false);
    else if (!(await addEntry(context, entry))) strays.push(entry.found.path);
  });
  for (const [plugin, volume] of staged) addStaged(world, plugin, volume);
  const unexplained = await untilRead(context, onProblem, () => findUnexplained(context));
  for (const path of unexplained) log.warn("found a mount that nothing accounts for", { path });
  strays.push(...unexplained);
  log.info("reconstructed", { volumes: world.volumes.size, strays: strays.length });
  return { strays };
}

const BACKOFF = { initialMs: 1_000, maxMs: 30_000 } as const;

async function untilRead<T>(
  { clock, log, stopping }: Context,
  onProblem: (problem: string | undefined) => void,
  read: () => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      const found = await read();
      onProblem(undefined);
      return found;
    } catch (error) {
      stopping.throwIfAborted();
      const retryInMs = backoffMs(failures, BACKOFF);
      const why = error instanceof Error ? error.message : String(error);
      onProblem(`what is on this node cannot be read: ${why}; nothing is mounted or taken down until it can`);
      log.error("what is on this node cannot be read; nothing is mounted or taken down", {
        error,
        retryInMs,
      });
      await clock.sleep(retryInMs, stopping);
    }
  }
}

type Staged = readonly [plugin: NodePlugin, volume: StagedVolume];

async function findStaged({ plugins }: Context): Promise<readonly Staged[]> {
  const found = plugins.all().map(async (plugin): Promise<Staged[]> => {
    const staged = (await plugin.findStaged?.()) ?? [];
    return staged.map((volume) => [plugin, volume]);
  });
  return (await Promise.all(found)).flat();
}

/** The journal names it, with its whole spec: what its directory says would add nothing, and takes four trips to the disk. */
export function isExplained(world: World, { pluginName, found }: FoundEntry): boolean {
  for (const { plugin, held } of world.volumesOf(found.podUid)) {
    const mount = held?.mounts.get(found.podUid);
    if (plugin.name === pluginName && held?.mode === found.mode && mount?.specName === found.specName)
      return true;
  }
  return false;
}

/** False where no plugin here serves it. */
export async function addEntry(context: Context, { pluginName, found }: FoundEntry): Promise<boolean> {
  const { plugins, measure, log } = context;
  const plugin = plugins.byName(pluginName);
  if (plugin && (found.mode !== "Block" || plugin.block)) {
    await addFound(context, plugin, found);
    return true;
  }
  measure.reconstructed(true);
  log.warn("found a volume that no plugin here serves", { path: found.path, plugin: pluginName });
  return false;
}

function addRecord(context: Context, record: JournalRecord): void {
  const { world, plugins, log } = context;
  const plugin = plugins.byName(record.plugin);
  if (!plugin) {
    log.error("journal names a volume that no plugin here serves", { volume: record.volume });
    return;
  }
  const volume = world.volume(record.volume, plugin);
  const held = hold(volume, { spec: record.spec, mode: record.mode });
  held.selinuxLabel = record.selinuxLabel ?? "";
  if (record.device) setDevice(plugin, held, record.deviceMountPath);
  for (const { uid, volumes, identity, spec = record.spec } of record.pods)
    addMount(world, volume, { podUid: uid, spec, outerNames: volumes, identity });
  for (const call of record.calls ?? []) addCall(context, volume, call);
}

/** A clock that was set meanwhile makes it longer than it can be, or leaves nothing of it: never more than all of it. */
function addCall(context: Context, volume: VolumeState, { operation, podUid, until }: JournaledCall): void {
  const { clock, callWindowMs, ownDriver } = context;
  if (ownDriver !== undefined && volume.name.startsWith(`kubernetes.io/csi/${ownDriver}^`)) return;
  const left = Date.parse(until) - clock.wall().getTime();
  const leftMs = Number.isNaN(left) ? callWindowMs : Math.min(left, callWindowMs);
  addLate(context, volume, { operation, podUid, untilMs: clock.now() + leftMs });
}

/** One directory of a pod, as something that may be there. */
export async function addFound(context: Context, plugin: NodePlugin, found: FoundVolume): Promise<void> {
  const { world, measure, log } = context;
  const { podUid, mode } = found;
  const known = await plugin.reconstruct(found).catch((error: unknown) => {
    log.warn("found a volume that cannot be made sense of", { path: found.path, error });
    return undefined;
  });
  if (known === undefined) await removeDraft(context, { found, pluginName: plugin.name });
  measure.reconstructed(known === undefined);
  const name = known && uniqueName(plugin, known.spec, podUid);
  if (!known || name === undefined) {
    addUnknown(context, plugin, found);
    return;
  }
  const volume = world.volume(name, plugin);
  const held = hold(volume, { spec: known.spec, mode });
  const staged = plugin.traits(known.spec).deviceMountable || mode === "Block";
  if (staged && held.device !== "mounted") setDevice(plugin, held, "");
  held.selinuxLabel ||= known.selinuxLabel ?? "";
  addMount(world, volume, { podUid, spec: known.spec });
}

/** Kept and retried like any other, unless a pod that is still here adopts it under its own name. */
function addUnknown(
  { world }: Context,
  plugin: NodePlugin,
  { podUid, specName: name, mode }: FoundVolume,
): void {
  const known = [...world.volumesOf(podUid)].some(({ held }) => held?.mounts.get(podUid)?.specName === name);
  // The journal knows better what it is.
  if (known) return;
  const spec: VolumeSpec = { kind: "inline", volume: { name } };
  const volume = world.volume(toVolumeName(plugin.name, `${podUid}-${name}`), plugin);
  const found = { spec, mode, attachable: "uncertain", devicePath: "", reconstructed: true } as const;
  volume.held ??= newHeld({ ...found, unknown: true });
  // A device of a pod is a part of something shared, which has to be let go too.
  if (mode === "Block") setDevice(plugin, volume.held, "");
  addMount(world, volume, { podUid, spec });
}

function addStaged(world: World, plugin: NodePlugin, found: StagedVolume): void {
  const { volume: name, spec, mode, path, selinuxLabel = "" } = found;
  const held = hold(world.volume(name, plugin), { spec, mode });
  setDevice(plugin, held, path);
  held.selinuxLabel ||= selinuxLabel;
}

/** What was found first, the journal's record, has the whole spec and stays. */
function hold(volume: VolumeState, { spec, mode }: { spec: VolumeSpec; mode: VolumeMode }): Held {
  volume.held ??= newHeld({ spec, mode, attachable: "uncertain", devicePath: "", reconstructed: true });
  return volume.held;
}

function setDevice(plugin: NodePlugin, held: Held, path: string): void {
  held.device = "uncertain";
  const computed =
    held.mode === "Block" ? plugin.block?.globalMapPath(held.spec) : plugin.device?.mountPath(held.spec);
  held.deviceMountPath ||= path || (computed ?? "");
}

function addMount(
  world: World,
  volume: VolumeState,
  {
    podUid,
    spec,
    outerNames = [],
    identity = identityOf(spec),
  }: Pick<PodMount, "podUid" | "spec"> & {
    readonly outerNames?: readonly string[] | undefined;
    readonly identity?: VolumeIdentity | undefined;
  },
): void {
  const { held } = volume;
  if (!held || held.mounts.has(podUid)) return;
  const path = held.mode === "Block" || held.unknown ? "" : volume.plugin.mountPath(spec, podUid);
  held.mounts.set(podUid, {
    podUid,
    spec,
    outerNames,
    identity,
    specName: specName(spec),
    state: "uncertain",
    reconstructed: true,
    remountRequired: false,
    selinuxRelabel: false,
    path,
  });
  world.link(podUid, volume);
}

export interface FoundEntry {
  readonly pluginName: string;
  readonly found: FoundVolume;
}

/** Every `pods/<uid>/volumes/<plugin~>/<name>` and `volumeDevices/<plugin~>/<name>`. */
async function findVolumes({ host, paths, log, clock }: Context) {
  const entries: FoundEntry[] = [];
  /** Pods whose directory cannot be read now: nobody knows what is there, so it is left alone. */
  const unlisted: string[] = [];
  const pods = (await host.files.list(paths.pods)) ?? [];
  await inParallel(pods, async ({ name: podUid, kind }) => {
    if (kind !== "directory" || isStaticPod(podUid)) return;
    try {
      entries.push(...(await twice(clock, () => volumesOfPod({ host, paths }, podUid))));
    } catch (error) {
      const path = paths.podDirectory(podUid);
      log.error("directory of a pod not read; what was in use stays", { path, error });
      unlisted.push(path);
    }
  });
  return { entries, unlisted };
}

export async function volumesOfPod(
  { host, paths }: Pick<Context, "host" | "paths">,
  podUid: string,
): Promise<readonly FoundEntry[]> {
  const entries: FoundEntry[] = [];
  for (const [mode, directory] of [
    ["Filesystem", paths.podVolumes(podUid)],
    ["Block", paths.podDevices(podUid)],
  ] as const) {
    for (const plugin of (await host.files.list(directory)) ?? []) {
      const path = join(directory, plugin.name);
      for (const volume of (await host.files.list(path)) ?? [])
        entries.push({
          pluginName: unescapeName(plugin.name),
          found: { podUid, specName: unescapeName(volume.name), mode, path: join(path, volume.name) },
        });
    }
  }
  return entries;
}

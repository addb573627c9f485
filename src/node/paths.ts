import { createHash } from "node:crypto";
import { join } from "node:path";

/** Where everything lies below the root directory: the kubelet's own layout, so that either can take over from the other. */
export interface Paths {
  readonly root: string;
  readonly pods: string;
  readonly plugins: string;
  readonly pluginsRegistry: string;
  /** The agent's own records: the journal of intents. Not part of the kubelet's layout. */
  readonly journal: string;
  podDirectory(podUid: string): string;
  podVolumes(podUid: string): string;
  podVolume(podUid: string, plugin: string, specName: string): string;
  podDevices(podUid: string): string;
  podDevice(podUid: string, plugin: string, specName: string): string;
  /** Where a plugin keeps marks of a pod's volume: `ready` of an emptyDir. */
  podPlugin(podUid: string, plugin: string, volume: string): string;
  podSubPaths(podUid: string, specName?: string): string;
  /** `plugins/kubernetes.io/csi`: plugin names are not escaped here. */
  plugin(plugin: string): string;
}

export function createPaths(root: string): Paths {
  const pods = join(root, "pods");
  const plugins = join(root, "plugins");
  const podDirectory = (podUid: string) => join(pods, segment(podUid));
  const below = (podUid: string, folder: string) => join(podDirectory(podUid), folder);
  return {
    root,
    pods,
    plugins,
    pluginsRegistry: join(root, "plugins_registry"),
    journal: join(root, "mooring"),
    podDirectory,
    podVolumes: (podUid) => below(podUid, "volumes"),
    podVolume: (podUid, plugin, specName) =>
      join(below(podUid, "volumes"), escapeName(plugin), segment(specName)),
    podDevices: (podUid) => below(podUid, "volumeDevices"),
    podDevice: (podUid, plugin, specName) =>
      join(below(podUid, "volumeDevices"), escapeName(plugin), segment(specName)),
    podPlugin: (podUid, plugin, volume) =>
      join(below(podUid, "plugins"), escapeName(plugin), segment(volume)),
    podSubPaths: (podUid, specName) =>
      specName === undefined
        ? below(podUid, "volume-subpaths")
        : join(below(podUid, "volume-subpaths"), segment(specName)),
    plugin: (plugin) => join(plugins, plugin),
  };
}

/** `kubernetes.io/csi` as a directory name: `kubernetes.io~csi`. */
export function escapeName(qualified: string): string {
  return segment(qualified.replaceAll("/", "~"));
}

export function unescapeName(directory: string): string {
  return directory.replaceAll("~", "/");
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** One step of a path. Names come from API objects, and one like `..` would lead out of the directory. */
function segment(name: string): string {
  if (name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0"))
    throw new RangeError(`"${name}" cannot be a directory name below the root directory`);
  return name;
}

import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import { EMPTY_DIR, setUpEmptyDir, tearDownEmptyDir, type EmptyDirDeps } from "./empty-dir-volume.ts";
import { hostStep } from "./failures.ts";
import { inlineSource, PLAIN_TRAITS } from "./sources.ts";
import { diskUsageStats } from "./stats.ts";

export interface EmptyDirPlugin extends NodePlugin {
  /** Grows or shrinks one in memory while its pod runs. */
  resize(request: ResizeEmptyDir): Promise<void>;
}

export interface ResizeEmptyDir {
  readonly podUid: string;
  readonly name: string;
  readonly medium: string | undefined;
  readonly sizeBytes: number;
}

/** A directory that lives as long as its pod: on the node's disk, in memory, or in huge pages. */
export function createEmptyDirPlugin(deps: EmptyDirDeps): EmptyDirPlugin {
  const { host, paths } = deps;
  const directoryOf = (podUid: string, name: string) => paths.podVolume(podUid, EMPTY_DIR, name);

  async function setUp({ spec, pod, podUid, fsGroup, signal }: SetUpRequest) {
    const source = inlineSource(spec, "emptyDir") ?? {};
    const name = specName(spec);
    const directory = directoryOf(podUid, name);
    await setUpEmptyDir(deps, { directory, markName: name, podUid, source, pod, fsGroup, signal });
    return { readOnly: false, managed: true, selinuxRelabel: true };
  }

  async function resize({ podUid, name, medium, sizeBytes }: ResizeEmptyDir): Promise<void> {
    if (medium !== "Memory")
      throw new VolumeError("final", "only memory-backed emptyDir volumes support direct resize");
    if (sizeBytes <= 0) throw new VolumeError("final", "addition or removal of size limit is not supported");
    const directory = directoryOf(podUid, name);
    if ((await host.mounts.table()).at(directory)?.type !== "tmpfs")
      throw new VolumeError("transient", `volume ${name} is not yet mounted; deferring resize`);
    await hostStep(`emptyDir ${directory}`, () => host.mounts.remount(directory, [`size=${sizeBytes}`]));
  }

  return {
    name: EMPTY_DIR,
    canSupport: (spec) => inlineSource(spec, "emptyDir") !== undefined,
    volumeName: (spec) => specName(spec) || undefined,
    traits: () => PLAIN_TRAITS,
    metricName: () => EMPTY_DIR,
    mountPath: (spec, podUid) => directoryOf(podUid, specName(spec)),
    setUp,
    tearDown: ({ podUid, specName: name }) =>
      tearDownEmptyDir(deps, { directory: directoryOf(podUid, name), markName: name, podUid }),
    stats: (request) => diskUsageStats(host, request),
    reconstruct: async ({ specName: name }) => ({ spec: { kind: "inline", volume: { name, emptyDir: {} } } }),
    resize,
  };
}

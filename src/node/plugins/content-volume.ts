import { join } from "node:path";
import type { Volume } from "kubernetes-types/core/v1.js";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { specName, type InlineSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodeObjects } from "../objects.ts";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import { topName } from "./atomic-plan.ts";
import { writeAtomically } from "./atomic-writer.ts";
import { setUpEmptyDir, tearDownEmptyDir, type EmptyDirDeps } from "./empty-dir-volume.ts";
import { hostFailure } from "./failures.ts";
import { nestedMountPoints } from "./nested-mounts.ts";
import { validatePayload, type Payload } from "./payload.ts";
import { PLAIN_TRAITS } from "./sources.ts";
import { diskUsageStats } from "./stats.ts";

export interface ContentDeps extends EmptyDirDeps {
  readonly objects: NodeObjects;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ContentKind {
  readonly plugin: string;
  /** Secrets never reach a disk. */
  readonly medium: "" | "Memory";
  readonly canSupport: (spec: InlineSpec) => boolean;
  readonly volumeName: (spec: InlineSpec) => string | undefined;
  /** Everything the volume should hold now; rejects before anything on disk was touched. */
  readonly collect: (request: SetUpRequest & { readonly spec: InlineSpec }) => Promise<Payload>;
  /** As much of the volume as its directory tells. */
  readonly reconstructed: (name: string) => Volume;
  readonly onTornDown?: (podUid: string) => void;
}

/**
 * A volume whose files come from the API: configMap, secret, downwardAPI, projected. Set-up is repeated to refresh it,
 * and a refresh that fails leaves what the pod sees: only a volume that was new in this very set-up is taken down again.
 */
export function createContentPlugin(deps: ContentDeps, kind: ContentKind): NodePlugin {
  const { paths, host } = deps;
  const volumeOf = (podUid: string, name: string) => ({
    directory: paths.podVolume(podUid, kind.plugin, name),
    markName: `wrapped_${name}`,
    podUid,
  });

  async function setUp(request: SetUpRequest) {
    const { spec, pod, podUid, fsGroup, signal } = request;
    if (spec.kind !== "inline") throw new VolumeError("final", `${kind.plugin} serves no PersistentVolumes`);
    const payload = validatePayload(await kind.collect({ ...request, spec }));
    const volume = volumeOf(podUid, specName(spec));
    const source = { medium: kind.medium };
    const { isNew } = await setUpEmptyDir(deps, { ...volume, source, pod, fsGroup, signal });
    try {
      await makeNested(request, volume.directory, payload);
      await writeAtomically(deps, { directory: volume.directory, payload, fsGroup, signal });
    } catch (error) {
      const failure = hostFailure(`files of ${specName(spec)}`, error);
      if (isNew) await takeDown(volume, failure);
      throw failure;
    }
    return { readOnly: true, managed: true, selinuxRelabel: true };
  }

  async function makeNested({ pod, spec }: SetUpRequest, directory: string, payload: Payload): Promise<void> {
    const taken = new Set([...payload.keys()].map(topName));
    for (const nested of nestedMountPoints(pod, specName(spec)))
      // A file or directory of the payload is mount point enough.
      if (!taken.has(topName(nested))) await host.files.makeDirectories(join(directory, nested), 0o755);
  }

  /** What cannot be taken down is there, and has to be known to be. */
  async function takeDown(volume: ReturnType<typeof volumeOf>, failure: VolumeError): Promise<void> {
    try {
      await tearDownEmptyDir(deps, volume);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new VolumeError("uncertain", `${failure.message}; and it could not be taken down: ${text}`, {
        cause: failure,
        blockedBy: failure.blockedBy,
      });
    }
  }

  return {
    name: kind.plugin,
    canSupport: (spec) => spec.kind === "inline" && kind.canSupport(spec),
    volumeName: (spec) => (spec.kind === "inline" ? kind.volumeName(spec) : undefined),
    traits: () => ({ ...PLAIN_TRAITS, requiresRemount: true }),
    metricName: () => kind.plugin,
    mountPath: (spec, podUid) => volumeOf(podUid, specName(spec)).directory,
    setUp,
    async tearDown({ podUid, specName: name }) {
      await tearDownEmptyDir(deps, volumeOf(podUid, name));
      kind.onTornDown?.(podUid);
    },
    stats: (request) => diskUsageStats(host, request),
    reconstruct: async ({ specName: name }) => ({
      spec: { kind: "inline", volume: kind.reconstructed(name) },
    }),
  };
}

import type { PodSpec, Volume } from "kubernetes-types/core/v1.js";
import { silentLogger } from "../../base/log.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { ConfigMap } from "../../kube/api/config-map.ts";
import type { Node } from "../../kube/api/node.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Secret } from "../../kube/api/secret.ts";
import { KubeError } from "../../kube/errors.ts";
import type { RecordedEvent } from "../../kube/events/events.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { createMemoryHost } from "../memory/host.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { toVolumeName } from "../../volumes/names.ts";
import { specName, type InlineSpec, type PersistentSpec, type VolumeSpec } from "../../volumes/spec.ts";
import type { NodeObjects, TokenWanted } from "../objects.ts";
import { createPaths } from "../paths.ts";
import type { NodePlugin, SetUpRequest, TearDownRequest } from "../plugin.ts";

export const ROOT = "/var/lib/kubelet";
export const POD_UID = "u1";
export const signal = new AbortController().signal;

/** A simulated machine and API, for one plugin. */
export function createStage() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const machine = createMemoryHost({ clock });
  const host = createFaultyNodeHost(machine, { clock });
  const configMaps = new Map<string, Partial<ConfigMap>>();
  /** By `namespace/name`. */
  const secrets = new Map<string, Partial<Secret>>();
  const tokens: TokenWanted[] = [];
  const events: RecordedEvent[] = [];
  const world = { node: undefined as Node | undefined };

  const found = async <T>(
    objects: ReadonlyMap<string, Partial<T>>,
    kind: string,
    name: string,
    key = name,
  ): Promise<T> => {
    const object = objects.get(key);
    if (object === undefined) throw new KubeError("NotFound", `${kind} "${name}" not found`);
    return object as T;
  };
  const objects: NodeObjects = {
    secret: (namespace, name) => found<Secret>(secrets, "secrets", name, `${namespace}/${name}`),
    configMap: (_namespace, name) => found<ConfigMap>(configMaps, "configmaps", name),
    attachment: () => Promise.reject(new Error("not used here")),
    csiDriver: () => undefined,
    node: () => world.node,
    async token(wanted) {
      tokens.push(wanted);
      return { token: `token-${tokens.length}`, expirationTimestamp: "2027-01-01T00:00:00Z" };
    },
  };
  const deps = {
    host,
    paths: createPaths(ROOT),
    objects,
    clock,
    random: createSeededRandom(2),
    log: silentLogger,
    events: { record: (event: RecordedEvent) => void events.push(event) },
    forgetTokens: (podUid: string) => void forgotten.push(podUid),
  };
  const forgotten: string[] = [];
  return { scheduler, clock, machine, host, configMaps, secrets, tokens, events, world, deps, forgotten };
}

export function pod(spec: Partial<PodSpec> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return {
    metadata: { name: "p1", namespace: "ns", uid: POD_UID, ...metadata },
    spec: { containers: [{ name: "c" }], serviceAccountName: "sa", ...spec },
  };
}

/** `image` is newer than the types. */
export function inline(volume: Partial<Volume> & { readonly image?: object }): InlineSpec {
  return { kind: "inline", volume: { name: "v", ...volume } };
}

export function persistent(
  spec: NonNullable<PersistentVolume["spec"]>,
  { readOnly = false, name = "pv1" } = {},
): PersistentSpec {
  return { kind: "persistent", volume: { metadata: { name }, spec }, readOnly, migrated: "none" };
}

export function setUpOf(spec: VolumeSpec, more: Partial<SetUpRequest> = {}): SetUpRequest {
  return {
    volume: toVolumeName("kubernetes.io/any", "v"),
    spec,
    pod: more.pod ?? pod(),
    podUid: POD_UID,
    devicePath: "",
    deviceMountPath: "",
    mayBeThere: false,
    isRemount: false,
    signal,
    ...more,
  };
}

export function tearDownOf(spec: VolumeSpec, podUid = POD_UID): TearDownRequest {
  return { volume: toVolumeName("kubernetes.io/any", "v"), podUid, specName: specName(spec), spec, signal };
}

/** Whether some plugin claims the spec, and what it would call it. */
export function claimed(plugin: NodePlugin, spec: VolumeSpec): string | undefined {
  return plugin.canSupport(spec) ? plugin.volumeName(spec) : undefined;
}

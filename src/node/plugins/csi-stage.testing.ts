import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { createLogger } from "../../base/log.ts";
import { CsiError, type CsiCode } from "../../csi/errors.ts";
import {
  Node,
  NodeServiceCapability_RPC_Type as Rpc,
  VolumeUsage_Unit as Unit,
  type NodeGetVolumeHealthResponseSchema,
  type NodePublishVolumeRequestSchema,
  type NodeStageVolumeRequestSchema,
} from "../../csi/gen/csi_pb.ts";
import { createMemoryChannel, type MemoryChannel } from "../../csi/memory-channel.ts";
import { serve } from "../../csi/methods.ts";
import type { CSIDriver } from "../../kube/api/csi-driver.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { KubeError } from "../../kube/errors.ts";
import { mountVolume, unmountVolume } from "../memory/driver-acts.ts";
import type { MemoryHost } from "../memory/host.ts";
import { csiVolumeName, toVolumeName, volumeAttachmentName, CSI_PLUGIN } from "../../volumes/names.ts";
import { specName, type PersistentSpec, type VolumeSpec } from "../../volumes/spec.ts";
import type { NodeObjects } from "../objects.ts";
import type { SetUpRequest } from "../plugin.ts";
import { createCsiPlugin } from "./csi.ts";
import { createCsiDrivers } from "./csi-drivers.ts";
import { createStage, inline as inlineVolume, persistent, pod } from "./plugins.testing.ts";

/** Driver `d`, node `n1`, volume `h1` of `pv1`, pod `p1` with uid `u1`: the cast of the specification's scenarios. */

export const ATTACHMENT = volumeAttachmentName({ driver: "d", volumeHandle: "h1" }, "n1");

type Call = "stage" | "unstage" | "publish" | "unpublish" | "expand" | "stats" | "health" | "capabilities";

export interface GivenCsi {
  readonly capabilities?: readonly Rpc[];
  /** Undefined: there is no CSIDriver object. */
  readonly driver?: CSIDriver["spec"] | undefined;
  readonly attachment?: Partial<VolumeAttachment> | undefined;
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly registered?: boolean;
}

/** A plugin with a driver in memory behind it, on a machine in memory. */
export function givenCsi({
  capabilities = [Rpc.STAGE_UNSTAGE_VOLUME],
  driver,
  attachment = { status: { attached: true } },
  secrets = {},
  registered = true,
}: GivenCsi = {}) {
  const stage = createStage();
  const { scheduler, clock, machine, host, tokens } = stage;
  const logs: string[] = [];
  const log = createLogger((level, message, fields) =>
    logs.push(`${level} ${message} ${JSON.stringify(fields)}`),
  );
  for (const [path, data] of Object.entries(secrets))
    stage.secrets.set(path, { data: Object.fromEntries(Object.entries(data).map(encoded)) });
  const objects = { attachment: attachment as Partial<VolumeAttachment> | undefined };
  const backend = createBackend(machine, capabilities);
  const channels: MemoryChannel[] = [];
  const drivers = createCsiDrivers({
    clock,
    connect: () => {
      const channel = createMemoryChannel({ clock, log }, backend.served);
      channels.push(channel);
      return channel;
    },
  });
  if (registered) drivers.put(drivers.open({ name: "d", endpoint: "/csi.sock", version: "1.0.0" }));
  const found: NodeObjects = {
    ...stage.deps.objects,
    async attachment(name) {
      if (objects.attachment === undefined || name !== ATTACHMENT)
        throw new KubeError("NotFound", `volumeattachments.storage.k8s.io "${name}" not found`);
      return { metadata: { name }, ...objects.attachment } as VolumeAttachment;
    },
    csiDriver: () => driver && { metadata: { name: "d" }, spec: driver },
  };
  const context = { ...stage.deps, objects: found, drivers, log, nodeName: "n1" };
  const refreshed: string[] = [];
  const refreshAllocatable = async (name: string) => void refreshed.push(name);
  const plugin = createCsiPlugin(context, { refreshAllocatable });
  return {
    ...steps(plugin),
    plugin,
    context,
    host,
    machine,
    backend,
    drivers,
    channels,
    logs,
    tokens,
    objects,
    refreshed,
    scheduler,
  };
}

function encoded([key, value]: [string, string]): [string, string] {
  return [key, Buffer.from(value).toString("base64")];
}

/** The driver: keeps the books of what it was asked, mounts for real on the machine, fails on request. */
function createBackend(machine: MemoryHost, capabilities: readonly Rpc[]) {
  const calls: string[] = [];
  const stages: MessageShape<typeof NodeStageVolumeRequestSchema>[] = [];
  const publishes: MessageShape<typeof NodePublishVolumeRequestSchema>[] = [];
  const failures: { readonly call: Call; readonly error: CsiError }[] = [];
  const backend = {
    ...{ calls, stages, publishes },
    health: {} as MessageInitShape<typeof NodeGetVolumeHealthResponseSchema>,
    condition: undefined as { abnormal: boolean; message: string } | undefined,
    capabilities: [...capabilities],
    leavesMounted: false,
  };

  function note(call: Call, text: string): void {
    calls.push(text === "" ? call : `${call} ${text}`);
    const at = failures.findIndex((failure) => failure.call === call);
    const [failure] = at < 0 ? [] : failures.splice(at, 1);
    if (failure) throw failure.error;
  }

  async function unmountAt(path: string): Promise<void> {
    if (!backend.leavesMounted) await unmountVolume(machine, path);
  }

  const served = serve(Node, {
    nodeGetCapabilities: async () => {
      note("capabilities", "");
      return {
        capabilities: backend.capabilities.map((type) => ({
          type: { case: "rpc" as const, value: { type } },
        })),
      };
    },
    nodeStageVolume: async (request) => {
      stages.push(request);
      note("stage", request.volumeId);
      if (request.volumeCapability?.accessType.case === "mount")
        await mountVolume(machine, request.stagingTargetPath, "tmpfs");
      return {};
    },
    nodeUnstageVolume: async ({ volumeId, stagingTargetPath }) => {
      note("unstage", `${volumeId} ${stagingTargetPath}`);
      await unmountAt(stagingTargetPath);
      return {};
    },
    nodePublishVolume: async (request) => {
      publishes.push(request);
      note("publish", request.volumeId);
      if (request.volumeCapability?.accessType.case === "block")
        await machine.files.makeFile(request.targetPath, 0o600);
      else await mountVolume(machine, request.targetPath, "tmpfs");
      return {};
    },
    nodeUnpublishVolume: async ({ volumeId, targetPath }) => {
      note("unpublish", `${volumeId} ${targetPath}`);
      await unmountAt(targetPath);
      return {};
    },
    nodeExpandVolume: async (request) => {
      note(
        "expand",
        `${request.volumeId} ${request.volumePath} ${request.stagingTargetPath} ${request.capacityRange?.requiredBytes}`,
      );
      return {};
    },
    nodeGetVolumeStats: async ({ volumeId, volumePath }) => {
      note("stats", `${volumeId} ${volumePath}`);
      return {
        usage: [
          { unit: Unit.BYTES, available: 60n, total: 100n, used: 40n },
          { unit: Unit.INODES, available: 6n, total: 10n, used: 4n },
          { unit: Unit.UNKNOWN, total: 9n },
        ],
        ...(backend.condition && { volumeCondition: backend.condition }),
      };
    },
    nodeGetVolumeHealth: async ({ volumeId, volumePublishPath, stagingTargetPath }) => {
      note("health", `${volumeId} ${volumePublishPath} ${stagingTargetPath}`);
      return backend.health;
    },
  });
  return Object.assign(backend, {
    served,
    fail: (call: Call, code: CsiCode, text = "no") =>
      void failures.push({ call, error: new CsiError(code, text) }),
    /** Without the questions what it can do, which are cached. */
    work: () => calls.filter((call) => call !== "capabilities"),
  });
}

export const POD: Pod = pod();

type PvSpec = NonNullable<PersistentSpec["volume"]["spec"]>;

/** `pv1`, handle `h1`, ReadWriteOnce, ext4. */
export function pv(spec: Partial<PvSpec> = {}, more: { name?: string; readOnly?: boolean } = {}): VolumeSpec {
  const usual = { volumeMode: "Filesystem", accessModes: ["ReadWriteOnce"] };
  return persistent({ ...usual, ...spec, ...csi(spec.csi ?? {}) }, more);
}

/** A source with what matters, on top of driver and handle. */
export function csi(source: Partial<NonNullable<PvSpec["csi"]>>): Partial<PvSpec> {
  return { csi: { driver: "d", volumeHandle: "h1", fsType: "ext4", ...source } };
}

export function inline(source: object = {}): VolumeSpec {
  return inlineVolume({ csi: { driver: "d", ...source } });
}

type Whole = Required<ReturnType<typeof createCsiPlugin>>;
/** This plugin has every step there is. */
type DeepRequired = Whole & {
  readonly block: Required<Whole["block"]>;
  readonly attach: Required<Whole["attach"]>;
};

/** The plugin's steps with everything that does not matter filled in. */
function steps(created: ReturnType<typeof createCsiPlugin>) {
  const plugin = created as DeepRequired;
  const { signal } = new AbortController();
  const nameOf = (spec: VolumeSpec, podUid: string) =>
    spec.kind === "inline"
      ? toVolumeName(CSI_PLUGIN, `${podUid}-${specName(spec)}`)
      : csiVolumeName({ driver: "d", volumeHandle: spec.volume.spec?.csi?.volumeHandle ?? "" });
  const common = (spec: VolumeSpec, podUid: string) => ({
    volume: nameOf(spec, podUid),
    spec,
    pod: pod({}, { uid: podUid }),
    podUid,
    devicePath: "",
    mayBeThere: false,
    signal,
  });
  return {
    stage: (spec: VolumeSpec, more: { mayBeThere?: boolean; fsGroup?: number; selinuxLabel?: string } = {}) =>
      plugin.device.mount({
        ...common(spec, "u1"),
        deviceMountPath: plugin.device.mountPath(spec),
        ...more,
      }),
    unstage: (spec: VolumeSpec) =>
      plugin.device.unmount({ ...common(spec, "u1"), deviceMountPath: plugin.device.mountPath(spec) }),
    publish: (spec: VolumeSpec, { podUid = "u1", ...more }: Partial<SetUpRequest> = {}) =>
      plugin.setUp({
        ...common(spec, podUid),
        deviceMountPath: spec.kind === "inline" ? "" : plugin.device.mountPath(spec),
        isRemount: false,
        ...more,
      }),
    unpublish: (spec: VolumeSpec, { podUid = "u1", known = true } = {}) =>
      plugin.tearDown({ ...common(spec, podUid), specName: specName(spec), spec: known ? spec : undefined }),
    setUpDevice: (spec: VolumeSpec, more: { mayBeThere?: boolean } = {}) =>
      plugin.block.setUpDevice({ ...common(spec, "u1"), ...more }),
    mapPodDevice: (spec: VolumeSpec, podUid = "u1") => plugin.block.mapPodDevice(common(spec, podUid)),
    unmapPodDevice: (spec: VolumeSpec, podUid = "u1") =>
      plugin.block.unmapPodDevice({ ...common(spec, podUid), specName: specName(spec) }),
    tearDownDevice: (spec: VolumeSpec) =>
      plugin.block.tearDownDevice({
        ...common(spec, "u1"),
        specName: specName(spec),
        globalMapPath: plugin.block.globalMapPath(spec),
      }),
    waitForAttach: (spec: VolumeSpec) =>
      plugin.attach.waitForAttach({ ...common(spec, "u1"), timeoutMs: 600_000 }),
    expand: (spec: VolumeSpec, newSizeBytes = 2_048, volumePath = "/mnt") =>
      plugin.expand({
        ...common(spec, "u1"),
        volumePath,
        stagingPath: "/stage",
        newSizeBytes,
        oldSizeBytes: 1_024,
      }),
    stats: (spec: VolumeSpec) => plugin.stats({ ...common(spec, "u1"), volumePath: "/mnt" }),
  };
}

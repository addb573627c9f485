import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  VolumeCapability_AccessMode_Mode as Mode,
  type NodeExpandVolumeRequestSchema,
  type NodePublishVolumeRequestSchema,
  type NodeStageVolumeRequestSchema,
  type VolumeCapabilitySchema,
} from "../../csi/gen/csi_pb.ts";
import { TOKENS_KEY } from "../../csi/redact.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { text } from "../../volumes/untrusted.ts";
import type { ServiceAccountToken } from "../objects.ts";
import type { CsiVolume, PersistentCsiVolume } from "./csi-source.ts";
import type { DriverRules } from "./csi-rules.ts";

/**
 * The arguments of every call, field by field, from what others have looked up. Nothing here reads or writes anything,
 * and every map is a new one: pod info or tokens in a cached spec would reach the next NodeStage (FIX 20).
 */

type StageRequest = MessageInitShape<typeof NodeStageVolumeRequestSchema>;
type PublishRequest = MessageInitShape<typeof NodePublishVolumeRequestSchema>;
type ExpandMessage = MessageInitShape<typeof NodeExpandVolumeRequestSchema>;
type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;
type Texts = Readonly<Record<string, string>>;

/** What the driver can do, as far as arguments depend on it. */
export interface CallTraits {
  readonly singleNodeMultiWriter: boolean;
  readonly mountGroup: boolean;
}

/** How the volume is to be used, beside what its spec says. */
interface Usage {
  readonly traits: CallTraits;
  readonly selinuxLabel?: string | undefined;
  readonly fsGroup?: number | undefined;
}

export interface StageFacts extends Usage {
  readonly volume: PersistentCsiVolume;
  readonly stagingPath: string;
  readonly publishContext: Texts;
  readonly secrets: Texts;
}

export function stageRequest({
  volume,
  stagingPath,
  publishContext,
  secrets,
  ...usage
}: StageFacts): StageRequest {
  return {
    volumeId: volume.handle,
    stagingTargetPath: stagingPath,
    publishContext: { ...publishContext },
    volumeContext: { ...volume.attributes },
    secrets: { ...secrets },
    volumeCapability: capabilityOf(volume, usage),
  };
}

export interface PublishFacts extends Usage {
  readonly volume: CsiVolume;
  readonly handle: string;
  /** "" where nothing was staged. */
  readonly stagingPath: string;
  readonly targetPath: string;
  readonly publishContext: Texts;
  readonly secrets: Texts;
  /** Undefined where the driver did not ask for it. */
  readonly podInfo: Texts | undefined;
  /** By audience; empty where the driver did not ask for any. */
  readonly tokens: ReadonlyMap<string, ServiceAccountToken>;
  readonly tokensInSecrets: boolean;
}

export function publishRequest(facts: PublishFacts): PublishRequest {
  const { volume, handle, tokens, tokensInSecrets } = facts;
  const tokenEntry = tokens.size === 0 ? {} : { [TOKENS_KEY]: tokensText(tokens) };
  return {
    volumeId: handle,
    stagingTargetPath: facts.stagingPath,
    targetPath: facts.targetPath,
    readonly: volume.readOnly,
    publishContext: { ...facts.publishContext },
    volumeContext: { ...volume.attributes, ...facts.podInfo, ...(tokensInSecrets ? {} : tokenEntry) },
    secrets: { ...facts.secrets, ...(tokensInSecrets ? tokenEntry : {}) },
    volumeCapability: capabilityOf(volume, facts),
  };
}

export interface ExpandFacts {
  readonly volume: PersistentCsiVolume;
  readonly volumePath: string;
  readonly stagingPath: string;
  readonly newSizeBytes: number;
  readonly secrets: Texts;
  readonly traits: CallTraits;
}

export function expandRequest({ volume, traits, ...facts }: ExpandFacts): ExpandMessage {
  return {
    volumeId: volume.handle,
    volumePath: facts.volumePath,
    stagingTargetPath: facts.stagingPath,
    capacityRange: { requiredBytes: BigInt(facts.newSizeBytes) },
    volumeCapability: capabilityOf(volume, { traits }),
    secrets: { ...facts.secrets },
  };
}

function capabilityOf(volume: CsiVolume, { traits, selinuxLabel, fsGroup }: Usage): Capability {
  const persistent = volume.kind === "persistent" ? volume : undefined;
  const accessMode = { mode: toAccessMode(persistent?.accessModes[0] ?? "ReadWriteOnce", traits) };
  if (persistent?.block) return { accessMode, accessType: { case: "block", value: {} } };
  return {
    accessMode,
    accessType: {
      case: "mount",
      value: {
        fsType: volume.fsType,
        mountFlags: [...(persistent?.mountOptions ?? []), ...contextFlag(selinuxLabel)],
        volumeMountGroup: traits.mountGroup && fsGroup !== undefined ? String(fsGroup) : "",
      },
    },
  };
}

function contextFlag(label: string | undefined): string[] {
  return label === undefined || label === "" ? [] : [`context="${label}"`];
}

export function toAccessMode(
  mode: string,
  { singleNodeMultiWriter }: Pick<CallTraits, "singleNodeMultiWriter">,
): Mode {
  switch (mode) {
    case "ReadWriteOnce":
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER;
    case "ReadWriteOncePod":
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER;
    case "ReadOnlyMany":
      return Mode.MULTI_NODE_READER_ONLY;
    case "ReadWriteMany":
      return Mode.MULTI_NODE_MULTI_WRITER;
    default:
      return Mode.UNKNOWN;
  }
}

const POD_INFO = "csi.storage.k8s.io/";

/** The five keys of podInfoOnMount; they win over attributes of the same name. */
export function podInfoOf({ metadata, spec }: Pod, { ephemeral }: { readonly ephemeral: boolean }): Texts {
  return {
    [`${POD_INFO}pod.name`]: text(metadata.name),
    [`${POD_INFO}pod.namespace`]: text(metadata.namespace),
    [`${POD_INFO}pod.uid`]: text(metadata.uid),
    [`${POD_INFO}serviceAccount.name`]: text(spec?.serviceAccountName),
    [`${POD_INFO}ephemeral`]: String(ephemeral),
  };
}

function tokensText(tokens: ReadonlyMap<string, ServiceAccountToken>): string {
  return JSON.stringify(
    Object.fromEntries(
      [...tokens].map(([audience, { token, expirationTimestamp }]) => [
        audience,
        { token, expirationTimestamp },
      ]),
    ),
  );
}

/**
 * Whether the group of the volume's files is ours to set. A driver that says so, a volume nobody writes to and a policy
 * of None leave it alone; File always sets it; the default wants a filesystem and one node to own it.
 */
export function wantsGroup(
  volume: CsiVolume,
  {
    fsGroup,
    policy,
    traits,
  }: { fsGroup: number | undefined; policy: DriverRules["fsGroupPolicy"]; traits: CallTraits },
): boolean {
  if (fsGroup === undefined || traits.mountGroup || policy === "None" || volume.readOnly) return false;
  if (policy === "File") return true;
  if (volume.fsType === "") return false;
  if (volume.kind === "ephemeral") return true;
  return volume.accessModes.some((mode) => mode === "ReadWriteOnce" || mode === "ReadWriteOncePod");
}

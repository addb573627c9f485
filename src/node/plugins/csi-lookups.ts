import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { EventRecorder } from "../../kube/events/events.ts";
import { isKubeError, SERVER_CODES, type KubeErrorCode } from "../../kube/errors.ts";
import { volumeAttachmentName } from "../../volumes/names.ts";
import { text } from "../../volumes/untrusted.ts";
import type { Blocker } from "../errors.ts";
import type { Host } from "../host.ts";
import type { NodeObjects, ServiceAccountToken } from "../objects.ts";
import { TokenError } from "../token-errors.ts";
import type { Paths } from "../paths.ts";
import type { CsiDriverClient, CsiDrivers } from "./csi-drivers.ts";
import { fromDriver, messageOf, transient } from "./csi-errors.ts";
import { rulesOf, type DriverRules } from "./csi-rules.ts";
import { textMap, type PersistentCsiVolume, type SecretRef } from "./csi-source.ts";

/** What the steps of a CSI volume work with. */
export interface CsiContext {
  readonly host: Host;
  readonly objects: NodeObjects;
  readonly paths: Paths;
  readonly drivers: CsiDrivers;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  /** Told where giving a volume to its group takes long; nobody where left out. */
  readonly events?: Pick<EventRecorder, "record">;
}

/*
 * What a step looks up before it acts. Each failure is transient and names what it waits for: nothing was attempted, so
 * what was true of the volume before is true after.
 */

export function driverOf({ drivers }: CsiContext, name: string): CsiDriverClient {
  const driver = drivers.get(name);
  if (driver !== undefined) return driver;
  const blockedBy: Blocker[] = [{ kind: "driver", name }];
  throw transient(`driver name ${name} not found in the list of registered CSI drivers`, { blockedBy });
}

/** A driver, with what it can do. A probe that fails has touched no volume, whatever code it failed with (FIX 15). */
export async function probe(
  context: CsiContext,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly driver: CsiDriverClient; readonly can: Capable }> {
  const driver = driverOf(context, name);
  try {
    const rpcs = await driver.capabilities(signal);
    return { driver, can: capable(rpcs) };
  } catch (error) {
    throw transient(`asking driver ${name} what it can do: ${fromDriver(error).message}`, {
      cause: error,
      blockedBy: [{ kind: "driver", name }],
    });
  }
}

export interface Capable {
  readonly stage: boolean;
  readonly singleNodeMultiWriter: boolean;
  readonly mountGroup: boolean;
  readonly expand: boolean;
  readonly stats: boolean;
  /** Its stats carry a condition: CSI until 1.12. */
  readonly condition: boolean;
  /** It is asked for the condition: CSI 1.13. */
  readonly health: boolean;
}

function capable(rpcs: ReadonlySet<Rpc>): Capable {
  return {
    stage: rpcs.has(Rpc.STAGE_UNSTAGE_VOLUME),
    singleNodeMultiWriter: rpcs.has(Rpc.SINGLE_NODE_MULTI_WRITER),
    mountGroup: rpcs.has(Rpc.VOLUME_MOUNT_GROUP),
    expand: rpcs.has(Rpc.EXPAND_VOLUME),
    stats: rpcs.has(Rpc.GET_VOLUME_STATS),
    condition: rpcs.has(Rpc.VOLUME_CONDITION),
    health: rpcs.has(Rpc.GET_VOLUME_HEALTH),
  };
}

export function rulesFor({ objects }: CsiContext, name: string): DriverRules {
  try {
    return rulesOf(objects.csiDriver(name));
  } catch (error) {
    throw transient(`looking up CSIDriver ${name}: ${messageOf(error)}`, {
      cause: error,
      blockedBy: [{ kind: "csi-driver-object", name }],
    });
  }
}

/** Whether a driver may be asked for volumes that live this way. */
export function checkLifecycle(rules: DriverRules, driver: string, mode: "Persistent" | "Ephemeral"): void {
  if (rules.lifecycleModes.includes(mode)) return;
  const supported = rules.exists
    ? `only supports [${rules.lifecycleModes.map((name) => `"${name}"`).join(" ")}]`
    : "no CSIDriver object";
  throw transient(`volume mode "${mode}" not supported by driver ${driver} (${supported})`, {
    blockedBy: [{ kind: "csi-driver-object", name: driver }],
  });
}

export function attachmentNameOf(
  { nodeName }: CsiContext,
  { driver, handle }: { driver: string; handle: string },
): string {
  return volumeAttachmentName({ driver, volumeHandle: handle }, nodeName);
}

export async function attachmentOf(
  context: CsiContext,
  volume: PersistentCsiVolume,
  signal: AbortSignal,
  options: { readonly live?: boolean } = {},
): Promise<VolumeAttachment> {
  const name = attachmentNameOf(context, volume);
  try {
    return await context.objects.attachment(name, signal, options);
  } catch (error) {
    throw transient(
      `volume ${volume.handle} has GET error for volume attachment ${name}: ${messageOf(error)}`,
      {
        cause: error,
        blockedBy: [{ kind: "attachment", name }],
      },
    );
  }
}

/**
 * What the controller side hands to the node side: nothing where volumes of the driver are not attached. `first`: before
 * the first call that touches the volume here it is read from the server, because an attachment of before may lead to a
 * device that is another volume by now; what is attached no more, or is being detached, is not touched.
 */
export async function publishContextOf(
  context: CsiContext,
  volume: PersistentCsiVolume,
  { rules, signal, first = false }: { rules: DriverRules; signal: AbortSignal; first?: boolean },
): Promise<Readonly<Record<string, string>>> {
  if (!rules.attachRequired) return {};
  const attachment = await attachmentOf(context, volume, signal, { live: first });
  if (first) refuseDetached(context, volume, attachment);
  return textMap(attachment.status?.attachmentMetadata);
}

/** Nothing was attempted: it goes on as soon as the attachment changes. */
export function refuseDetached(
  context: CsiContext,
  volume: PersistentCsiVolume,
  { metadata, spec, status }: VolumeAttachment,
): void {
  const name = attachmentNameOf(context, volume);
  const blockedBy: Blocker[] = [{ kind: "attachment", name }];
  const refuse = (why: string) => transient(why, { blockedBy });
  if (metadata.deletionTimestamp)
    throw transient("volume attachment is being deleted", { blockedBy, kind: "detaching" });
  const said = spec as Partial<VolumeAttachment["spec"]> | undefined;
  const { attacher = volume.driver, nodeName: node = context.nodeName } = said ?? {};
  if (attacher !== volume.driver || node !== context.nodeName)
    throw refuse(`volume attachment ${name} is for driver ${attacher} and node ${node}, not for this volume`);
  if (status?.attached === true) return;
  throw refuse(
    text(status?.attachError?.message) ||
      `volume ${volume.handle} is not attached for volume attachment ${name}`,
  );
}

/** `field` is how people find the reference: `NodeStageSecretRef`. */
export async function secretsOf(
  { objects }: CsiContext,
  ref: SecretRef | undefined,
  {
    field,
    podNamespace,
    signal,
  }: { readonly field: string; readonly podNamespace: string; readonly signal: AbortSignal },
): Promise<Readonly<Record<string, string>>> {
  if (ref === undefined) return {};
  const namespace = ref.namespace || podNamespace;
  const blockedBy: Blocker[] = [{ kind: "secret", namespace, name: ref.name }];
  let data: Readonly<Record<string, string>>;
  try {
    data = textMap((await objects.secret(namespace, ref.name, signal)).data);
  } catch (error) {
    throw transient(`fetching ${field} ${namespace}/${ref.name} failed: ${wordsOf(error)}`, { blockedBy });
  }
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => {
      const decoded = decode(value);
      if (decoded === undefined) {
        throw transient(
          `${field} ${namespace}/${ref.name}: key ${key} is no UTF-8 text, which CSI cannot carry`,
          { blockedBy },
        );
      }
      return [key, decoded];
    }),
  );
}

/** Of an answer that could not be read no word is passed on, nor kept as a cause: it may be the secret. */
function wordsOf(error: unknown): string {
  if (!isKubeError(error)) return "the read failed";
  return (SERVER_CODES as readonly KubeErrorCode[]).includes(error.code) ? error.detail : error.code;
}

function decode(base64: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
}

/** One token an audience the driver asks for, each ending with the pod. */
export async function tokensOf(
  { objects }: CsiContext,
  pod: Pod,
  { rules, signal }: { readonly rules: DriverRules; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, ServiceAccountToken>> {
  const { metadata, spec } = pod;
  try {
    const tokens = rules.tokens.map(async ({ audience, expirationSeconds }) => {
      const wanted = {
        namespace: text(metadata.namespace),
        serviceAccount: text(spec?.serviceAccountName) || "default",
        audiences: audience === "" ? [] : [audience],
        expirationSeconds,
        pod: { name: text(metadata.name), uid: text(metadata.uid) },
      };
      return [audience, await objects.token(wanted, signal)] as const;
    });
    return new Map(await Promise.all(tokens));
  } catch (error) {
    const words = error instanceof TokenError ? error.message : wordsOf(error);
    throw transient(`service account token for the driver: ${words}`);
  }
}

import { classOf, isCsiError } from "../../csi/errors.ts";
import type { Volume } from "../../csi/gen/csi_pb.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { isKubeError } from "../../kube/errors.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { toKey } from "../../kube/object.ts";
import { wantedBytes } from "../binder/match.ts";
import { toCapabilities } from "../capability.ts";
import type { CachedDeps } from "../deps.ts";
import { CALL_TIMEOUT_MS, type DriverAbilities, type StorageDriver } from "../driver.ts";
import { StorageError } from "../errors.ts";
import type { StorageClass } from "../kinds.ts";
import { PROVISIONING_FINALIZER, SELECTED_NODE } from "../names.ts";
import { fetchSecret, type SecretValues } from "../secrets.ts";
import { found, patchSeen } from "../writes.ts";
import { readParameters, type ClassParameters } from "./parameters.ts";
import { volumeNameOf } from "./plan.ts";
import { readSource, type ContentSource } from "./source.ts";
import { planTopology } from "./topology.ts";
import { toPersistentVolume } from "./volume.ts";

export interface ProvisionDeps extends CachedDeps {
  readonly driver: StorageDriver;
  readonly defaultFsType: string;
}

export interface Order {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly node: string | undefined;
  readonly unwanted: boolean;
}

/** What came of one attempt. */
export type Provisioned =
  | { readonly kind: "made"; readonly volume: PersistentVolume }
  | {
      readonly kind: "failed";
      /** Without the secrets that the driver was given. */
      readonly message: string;
      /** The driver may have made the volume, or may still be at it. */
      readonly uncertain: boolean;
      /** It said that the chosen node cannot have the volume: the scheduler should choose again. */
      readonly elsewhere: boolean;
    };

/** Everything a request needs besides the claim itself. */
export interface Prepared {
  readonly parameters: ClassParameters;
  readonly abilities: DriverAbilities;
  readonly source: ContentSource | undefined;
  readonly secret: SecretValues;
}

/** Everything that can go wrong before anything is asked for. */
export async function prepare(
  { client, driver }: ProvisionDeps,
  { claim, storageClass, unwanted }: Order,
  signal: AbortSignal,
): Promise<Prepared> {
  const abilities = await driver.can(signal);
  if (!abilities.createsVolumes)
    throw new StorageError("DriverUnfit", `driver ${driver.name} makes no volumes`);
  const parameters = readParameters(storageClass, claim);
  const wish = { claim, driver: driver.name, sizeBytes: wantedBytes(claim), unwanted };
  const source = await readSource(client, wish, { abilities, signal });
  const secret = await fetchSecret(client, parameters.secrets.provisioner, signal);
  return { parameters, abilities, source, secret };
}

/** Asks the driver, for a claim that is held, and records its answer. */
export async function provision(
  deps: ProvisionDeps,
  order: Order,
  prepared: Prepared,
  signal: AbortSignal,
): Promise<Provisioned> {
  let made = false;
  try {
    const volume = await callDriver(deps, order, prepared, signal);
    made = true;
    await checkAnswer(deps, order, prepared, volume, signal);
    return { kind: "made", volume: await record(deps, order, prepared, volume, signal) };
  } catch (error) {
    if (signal.aborted) throw error;
    const text = error instanceof Error ? error.message : String(error);
    const elsewhere = isCsiError(error, "RESOURCE_EXHAUSTED") && order.node !== undefined && !order.unwanted;
    return {
      kind: "failed",
      message: prepared.secret.scrub(text),
      uncertain: isUncertain(made, error),
      elsewhere,
    };
  }
}

/** A StorageError is ours: nothing was called, or what was made has been undone. */
function isUncertain(made: boolean, error: unknown): boolean {
  if (error instanceof StorageError) return false;
  return made || classOf(error) === "uncertain" || isCsiError(error, "ALREADY_EXISTS");
}

async function callDriver(
  deps: ProvisionDeps,
  order: Order,
  { parameters, abilities, source, secret }: Prepared,
  signal: AbortSignal,
): Promise<Volume> {
  const { caches, driver } = deps;
  const { claim, storageClass, node } = order;
  const topology = abilities.topology
    ? planTopology({
        driver: driver.name,
        csiNodes: caches.csiNodes.objects(),
        nodeOf: (name) => caches.nodes.get(toKey({ name })),
        selected: node,
        allowed: storageClass.allowedTopologies ?? [],
      })
    : undefined;
  const use = {
    accessModes: claim.spec?.accessModes ?? [],
    block: claim.spec?.volumeMode === "Block",
    fsType: fsTypeOf(deps, parameters),
    mountFlags: storageClass.mountOptions ?? [],
  };
  const { volume } = await driver.controller.createVolume(
    {
      name: volumeNameOf(claim),
      capacityRange: { requiredBytes: wantedBytes(claim) },
      volumeCapabilities: toCapabilities(use, abilities),
      parameters: parameters.driver,
      secrets: secret.values,
      ...(source && { volumeContentSource: source }),
      ...(topology && { accessibilityRequirements: topology }),
    },
    { timeoutMs: CALL_TIMEOUT_MS, signal },
  );
  if (!volume?.volumeId) throw new StorageError("DriverUnfit", "CreateVolume: the answer names no volume");
  return volume;
}

function fsTypeOf({ defaultFsType }: ProvisionDeps, { fsType }: ClassParameters): string {
  return fsType ?? defaultFsType;
}

/** What is not what was asked for is deleted again before anybody can use it. */
async function checkAnswer(
  deps: ProvisionDeps,
  { claim }: Order,
  { parameters, source }: Prepared,
  volume: Volume,
  signal: AbortSignal,
): Promise<void> {
  const [given, asked] = [volume.capacityBytes, wantedBytes(claim)];
  const tooSmall = given > 0n && given < asked;
  if (!tooSmall && (!source || volume.contentSource)) return;
  await undo(deps, parameters, volume, signal);
  throw new StorageError(
    "DriverUnfit",
    tooSmall
      ? `created volume capacity ${given} less than requested capacity ${asked}`
      : "CreateVolume: the driver ignored the source of the volume",
  );
}

async function record(
  deps: ProvisionDeps,
  { claim, storageClass, unwanted }: Order,
  { parameters }: Prepared,
  volume: Volume,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const { client, driver } = deps;
  const wanted = toPersistentVolume({
    claim,
    storageClass,
    parameters,
    driver: driver.name,
    fsType: fsTypeOf(deps, parameters),
    volume,
    sizeBytes: wantedBytes(claim),
    unwanted,
  });
  const name = wanted.metadata.name ?? "";
  try {
    return await client.create(persistentVolumes, wanted, { signal });
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
    const there = await client.get(persistentVolumes, { name }, { signal });
    if (there.spec?.claimRef?.uid === claim.metadata.uid) return there;
    throw new Error(`PersistentVolume "${name}" exists and is of another claim; delete it`, { cause: error });
  }
}

/** Never used by anybody, so it goes at once; if this fails, the next attempt gets the same volume and comes here again. */
async function undo(
  { client, driver }: ProvisionDeps,
  { secrets }: ClassParameters,
  { volumeId }: Volume,
  signal: AbortSignal,
): Promise<void> {
  const secret = await fetchSecret(client, secrets.provisioner, signal);
  await driver.controller.deleteVolume(
    { volumeId, secrets: secret.values },
    { timeoutMs: CALL_TIMEOUT_MS, signal },
  );
}

/** Held before the driver is asked: from then on the claim cannot go without somebody looking for its volume. */
export async function hold(
  { client, caches }: CachedDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  if (hasFinalizer(claim, PROVISIONING_FINALIZER)) return claim;
  const finalizers = [...(claim.metadata.finalizers ?? []), PROVISIONING_FINALIZER];
  return written(
    caches,
    await patchSeen(client, persistentVolumeClaims, claim, { metadata: { finalizers } }, { signal }),
  );
}

/** The claim as the server has it, if it is still held: a cache may show one that was let go long ago. */
export async function confirmHeld(
  { client, caches }: CachedDeps,
  { metadata }: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const ref = { name: metadata.name ?? "", namespace: metadata.namespace };
  const live = await found(client.get(persistentVolumeClaims, ref, { signal }));
  if (!live || live.metadata.uid !== metadata.uid) return undefined;
  const claim = written(caches, live);
  return hasFinalizer(claim, PROVISIONING_FINALIZER) ? claim : undefined;
}

export async function release(
  { client, caches }: CachedDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = (claim.metadata.finalizers ?? []).filter((name) => name !== PROVISIONING_FINALIZER);
  written(
    caches,
    await patchSeen(client, persistentVolumeClaims, claim, { metadata: { finalizers } }, { signal }),
  );
}

/** Back to the scheduler, which chooses another node. */
export async function unselectNode(
  { client, caches }: CachedDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  const change = { metadata: { annotations: { [SELECTED_NODE]: null } } };
  written(caches, await patchSeen(client, persistentVolumeClaims, claim, change, { signal }));
}

function written(caches: CachedDeps["caches"], claim: PersistentVolumeClaim): PersistentVolumeClaim {
  caches.latest.claims.written(claim);
  return claim;
}

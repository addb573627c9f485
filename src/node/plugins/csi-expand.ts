import { Node } from "../../csi/gen/csi_pb.ts";
import { VolumeError } from "../errors.ts";
import type { ExpandRequest } from "../plugin.ts";
import { persistent } from "./csi-device.ts";
import { fromExpansion } from "./csi-errors.ts";
import { probe, secretsOf, type CsiContext } from "./csi-lookups.ts";
import { expandRequest } from "./csi-requests.ts";

/** NodeExpandVolume. What the driver says the size is now is not used: the caller knows what it asked for. */
export async function expand(context: CsiContext, request: ExpandRequest): Promise<void> {
  const { volumePath, stagingPath, newSizeBytes, signal } = request;
  const volume = persistent(request.spec);
  const what = `expanding ${volume.handle}`;
  if (volumePath === "") throw new VolumeError("final", `${what}: no volume path is known`);
  if (!Number.isSafeInteger(newSizeBytes) || newSizeBytes < 0) {
    throw new VolumeError("final", `${what}: ${newSizeBytes} is no size`);
  }
  const { driver, can } = await probe(context, volume.driver, signal);
  if (!can.expand) throw notSupported(`driver ${volume.driver} does not expand volumes on the node`);
  const secrets = await secretsOf(context, volume.expandSecret, {
    field: "NodeExpandSecretRef",
    podNamespace: "",
    signal,
  });
  const message = expandRequest({ volume, volumePath, stagingPath, newSizeBytes, secrets, traits: can });
  try {
    await driver.call(Node.method.nodeExpandVolume, message, { signal, migrated: volume.migrated });
  } catch (error) {
    throw fromExpansion(error);
  }
}

function notSupported(message: string): VolumeError {
  return new VolumeError("final", message, { kind: "not-supported" });
}

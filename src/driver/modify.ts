import type { ControllerExpandVolumeRequest, ControllerModifyVolumeRequest } from "../csi/gen/csi_pb.ts";
import { readyVolume, type Context } from "./context.ts";
import { invalid, outOfRange, quoted, toAnswer } from "./errors.ts";
import type { Settings } from "./options.ts";
import type { VolumeRecord } from "./records.ts";
import { chooseSize } from "./size.ts";
import { checkMap, checkPresent, toCapability, toRange } from "./validate.ts";

/** ControllerExpandVolume and ControllerModifyVolume: a volume that exists changes. */

export async function expandVolume(
  context: Context,
  request: ControllerExpandVolumeRequest,
): Promise<{ readonly capacityBytes: bigint; readonly nodeExpansionRequired: boolean }> {
  const { volumeId: id } = request;
  checkPresent(id, "volume_id");
  const range = toRange(request.capacityRange);
  if (range.requiredBytes === 0n && range.limitBytes === 0n) throw invalid("capacity_range is missing");
  const capability =
    request.volumeCapability === undefined ? undefined : toCapability(request.volumeCapability);
  const { settings, host, paths, pools, volumes } = context;
  return context.locks.hold([{ key: `volume/${id}` }], async () => {
    const record = await readyVolume(context, id);
    const currentBytes = await imageBytes(context, record);
    if (capability !== undefined && capability.accessType !== record.accessType) {
      throw invalid(`volume ${id} is a ${record.accessType} volume`);
    }
    const answer = (capacityBytes: bigint) => ({
      capacityBytes,
      nodeExpansionRequired: settings.nodeExpansion,
    });
    if (range.limitBytes > 0n && range.limitBytes < currentBytes) {
      throw outOfRange(
        `volume ${id} has ${currentBytes} bytes already, above the limit; volumes never shrink`,
      );
    }
    if (range.requiredBytes <= record.sizeBytes) return answer(record.sizeBytes);
    const sizeBytes = chooseSize(range, { minBytes: currentBytes, maxBytes: settings.maxVolumeBytes });
    const reservation = pools.reserve(record.kind, sizeBytes - record.sizeBytes);
    try {
      await host.images.grow(paths.volumeImage(id), sizeBytes, { thick: record.thick });
      await volumes.put({ ...record, sizeBytes });
    } catch (error) {
      throw toAnswer(error, `expand volume ${id}`);
    } finally {
      reservation.release();
    }
    context.log.info("volume expanded", { volume: id, sizeBytes: String(sizeBytes) });
    return answer(sizeBytes);
  });
}

/** An expansion that could not be recorded has grown the image all the same, and the filesystem may have followed. */
async function imageBytes({ host, paths }: Context, { id, sizeBytes }: VolumeRecord): Promise<bigint> {
  const found = await host.files.stat(paths.volumeImage(id));
  return found === undefined || found.sizeBytes < sizeBytes ? sizeBytes : found.sizeBytes;
}

export async function modifyVolume(context: Context, request: ControllerModifyVolumeRequest): Promise<void> {
  const { volumeId: id, mutableParameters } = request;
  checkPresent(id, "volume_id");
  await context.locks.hold([{ key: `volume/${id}` }], async () => {
    const record = await readyVolume(context, id);
    checkMutable(context.settings, mutableParameters);
    const merged = { ...record.mutableParameters, ...mutableParameters };
    try {
      await context.volumes.put({ ...record, mutableParameters: merged });
    } catch (error) {
      throw toAnswer(error, `modify volume ${id}`);
    }
  });
}

/** Any key that was accepted at start; values are short text. Checked as a whole before anything is changed. */
export function checkMutable(
  { modifyVolume: enabled, mutableParameterNames: names }: Settings,
  parameters: Readonly<Record<string, string>>,
): void {
  checkMap(parameters, "mutable_parameters");
  const keys = Object.keys(parameters);
  if (keys.length > 0 && !enabled)
    throw invalid("mutable_parameters: this driver does not offer MODIFY_VOLUME");
  const unknown = keys.find((key) => names?.includes(key) === false);
  if (unknown !== undefined)
    throw invalid(`mutable parameter ${quoted(unknown)} is not accepted by this driver`);
}

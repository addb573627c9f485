import { outOfRange } from "./errors.ts";
import { BLOCK_BYTES, DEFAULT_VOLUME_BYTES } from "./options.ts";
import type { Range } from "./validate.ts";

/**
 * The size of a new or grown volume: what is required, else the limit, else 1 GiB; rounded up to whole blocks, never
 * above the limit. OUT_OF_RANGE where no size satisfies all.
 */
export function chooseSize(
  { requiredBytes, limitBytes }: Range,
  { minBytes, maxBytes }: { readonly minBytes: bigint; readonly maxBytes: bigint },
): bigint {
  const wanted =
    requiredBytes > 0n ? requiredBytes : limitBytes > 0n ? roundDown(limitBytes) : DEFAULT_VOLUME_BYTES;
  const sizeBytes = roundUp(wanted > minBytes ? wanted : minBytes);
  if (limitBytes > 0n && sizeBytes > limitBytes) {
    throw outOfRange(`the smallest possible size is ${sizeBytes} bytes, above the limit of ${limitBytes}`);
  }
  if (sizeBytes > maxBytes) {
    throw outOfRange(`${sizeBytes} bytes are above the largest volume of this driver, ${maxBytes} bytes`);
  }
  return sizeBytes;
}

const roundUp = (bytes: bigint) => ((bytes + BLOCK_BYTES - 1n) / BLOCK_BYTES) * BLOCK_BYTES;
const roundDown = (bytes: bigint) => (bytes / BLOCK_BYTES) * BLOCK_BYTES;

import { formatQuantity, parseQuantity, quantityFromBytes, quantityToBytes } from "../kube/quantity.ts";

/** 0 for what is no amount: an object that says nothing readable promises nothing. */
export function bytesOf(quantity: unknown): bigint {
  if (typeof quantity !== "string" && typeof quantity !== "number") return 0n;
  try {
    return quantityToBytes(parseQuantity(quantity));
  } catch {
    return 0n;
  }
}

/** `1Gi`, or digits where no suffix fits. */
export function toQuantity(bytes: bigint): string {
  return formatQuantity(quantityFromBytes(bytes, "BinarySI"));
}

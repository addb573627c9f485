import { setFlagsFromString } from "node:v8";

/**
 * Lets the heap grow by 30 % over what was live before it is collected, instead of to three or four times that. What the
 * API server keeps on the heap is small (50 MB for 100,000 objects, whose texts lie outside), so collections are
 * cheap: filled with those, it took 377 MiB instead of 498 at no fewer writes a second.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=30");
}

import type { Context } from "./context.ts";
import { detachVerified, isDeviceNode, readonlyDevicesOf } from "./devices.ts";
import type { LoopDevice } from "./host.ts";
import type { NodeRecord } from "./records.ts";

/** Read-only devices that no target uses any more. */
export async function dropSpares(context: Context, record: NodeRecord, device: LoopDevice): Promise<void> {
  for (const spare of await readonlyDevicesOf(context, device))
    if (!(await usesSpare(context, record, spare))) await detachVerified(context, spare);
}

/** By a target of this node or of another one of the pool: a bound device node does not keep its device. */
async function usesSpare(context: Context, record: NodeRecord, spare: LoopDevice): Promise<boolean> {
  const elsewhere = (await context.stagedAnywhere(record.id)).filter(
    ({ nodeId }) => nodeId !== context.settings.nodeId,
  );
  for (const { path } of [record, ...elsewhere].flatMap(({ targets }) => targets))
    if (await isDeviceNode(context, path, [spare])) return true;
  return false;
}

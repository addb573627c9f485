import { isMore } from "../fit.ts";
import { objectsAt, oneLine, textAt } from "../fields.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";

/** A claim that asks for more than it has. The pod may run meanwhile, so this is never the reason that it does not. */
export const growth: Check = (view) => {
  const { claim } = view;
  const wanted = textAt(claim, "spec", "resources", "requests", "storage");
  const size = textAt(claim, "status", "capacity", "storage");
  const progress = textAt(claim, "status", "allocatedResourceStatuses", "storage");
  if (textAt(claim, "status", "phase") !== "Bound" || !(isMore(wanted, size) || progress !== ""))
    return undefined;
  const named = `PersistentVolumeClaim ${view.claimId}`;
  const evidence = [
    seen(named, "status.capacity.storage", size),
    seen(named, "status.allocatedResourceStatuses.storage", progress),
  ];
  const message = conditionMessage(view);
  if (/Infeasible|Failed/.test(progress)) {
    const where = progress.startsWith("Node") ? "the node" : "the driver's controller";
    return found("expand-infeasible", view, { names: { wanted, size, where, message }, evidence });
  }
  const onNode = /Node/.test(progress) || hasCondition(view, "FileSystemResizePending");
  const then = onNode
    ? "the node grows the file system while, or the next time, a pod uses the volume"
    : "the driver's resizer grows the volume; if it lasts, no external-resizer runs for the driver";
  return found("expand-pending", view, { names: { wanted, size, message, then }, evidence });
};

function hasCondition({ claim }: VolumeView, type: string): boolean {
  return objectsAt(claim, "status", "conditions").some((item) => textAt(item, "type") === type);
}

function conditionMessage(view: VolumeView): string {
  const conditions = objectsAt(view.claim, "status", "conditions");
  const told = conditions
    .map((item) => textAt(item, "message") || textAt(item, "type"))
    .find((text) => text !== "");
  const event = view.cluster
    .eventsOf("PersistentVolumeClaim", view.claimId)
    .find((item) => textAt(item, "reason") === "VolumeResizeFailed");
  return oneLine(textAt(event, "message") || told || "nobody has said more");
}

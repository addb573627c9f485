import { isMigrated, specName } from "../volumes/spec.ts";
import type { OperationKey } from "../operations/key.ts";
import type { Pod } from "../kube/api/pod.ts";
import { markAttached, markUncertain } from "./actual.ts";
import { mark, operationKey, type Context } from "./context.ts";
import { AttachDetachError, detailOf, errorClass } from "./errors.ts";
import { attachFailed, attachSucceeded, noPlugin } from "./messages.ts";
import { begin, calledOff, operationFields } from "./operation.ts";
import { tellPods } from "./telling.ts";
import type { Busy, Placement, Want } from "./world.ts";

const NAME = "volume_attach";

/**
 * Attaches a volume to a node. Whatever goes wrong after the request may have left, the volume may be attached: it
 * then is "uncertain", which keeps every other node away from it until a detach has answered.
 */
export function startAttach(context: Context, placement: Placement, want: Want): void {
  const key = operationKey(placement);
  const { clock, operations, registry, measure } = context;
  const plugin = registry.bySpec(want.spec);
  const observe = measure.operation(NAME, {
    plugin: plugin?.metricName(want.spec) ?? "UnknownAttachableVolumePlugin",
    migrated: isMigrated(want.spec),
  });
  const told: readonly Pod[] = [...want.pods];

  begin(context, placement, { key, name: NAME }, async (busy) => {
    try {
      if (plugin === undefined) throw new AttachDetachError("NoPlugin", "no plugin serves it");
      const devicePath = await plugin.attach({
        volume: placement.volume.name,
        spec: want.spec,
        node: placement.node.name,
        signal: busy.abort.signal,
        onAccepted() {
          busy.withDriver = true;
          measure.endPhase(placement, "create");
          mark(context, placement);
        },
      });
      operations.finish(key, NAME);
      observe("success");
      measure.endPhase(placement, "attach");
      const listed = placement.want !== undefined;
      const proven = true;
      markAttached(context, placement, { spec: want.spec, devicePath, listed, proven, nowMs: clock.now() });
      context.nodeStatus.add(placement.node.name);
      const message = attachSucceeded(specName(want.spec));
      tellPods(context, told, { type: "Normal", reason: "SuccessfulAttachVolume", message });
      context.log.info("attached", operationFields(context, placement, { busy, pods: told }));
    } catch (error) {
      fail(context, placement, { key, want, told, error, observe, busy });
    }
  });
}

interface Failure {
  readonly key: OperationKey;
  readonly want: Want;
  readonly told: readonly Pod[];
  readonly error: unknown;
  readonly observe: (status: "fail-unknown") => void;
  readonly busy: Busy;
}

function fail(
  context: Context,
  placement: Placement,
  { key, want, told, error, observe, busy }: Failure,
): void {
  const { clock, log, operations } = context;
  const code = error instanceof AttachDetachError ? error.code : undefined;
  // Without a plugin, or where the name belongs to somebody else, certainly nothing was asked of the driver.
  if (code !== "NoPlugin" && code !== "Mismatch" && code !== "NotLeading")
    markUncertain(context, placement, { spec: want.spec, nowMs: clock.now() });
  const fields = operationFields(context, placement, { busy, pods: told });
  // No pod on the node uses it any more, or this process is to stop.
  if (calledOff(busy, error) || code === "NotLeading") {
    // While the lease is in doubt it would be planned again at once, and refused as often as it can be planned.
    if (code === "NotLeading") operations.fail(key, NAME, detailOf(error), clock.now());
    else operations.abandon(key, NAME);
    log.info("attach called off", { ...fields, why: detailOf(error) });
    return;
  }
  const { retryAtMs } = operations.fail(key, NAME, detailOf(error), clock.now());
  observe("fail-unknown");
  const volume = specName(want.spec);
  const message = code === "NoPlugin" ? noPlugin(volume) : attachFailed(volume, detailOf(error));
  tellPods(context, told, { type: "Warning", reason: "FailedAttachVolume", message });
  const retryInMs = retryAtMs - clock.now();
  log.warn("attach failed", { ...fields, class: errorClass(error), error: detailOf(error), retryInMs });
}

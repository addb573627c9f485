import type { Logger } from "../../base/log.ts";
import type { AttachablePlugin, AttachRequest, DetachRequest, Verdict, VerifyRequest } from "../plugin.ts";
import { specName } from "../spec.ts";
import type { FlexDriver } from "./flex-driver.ts";
import { FlexError, flexOptionsJson, flexSourceOf, isObjectName } from "./flex-protocol.ts";

/**
 * One FlexVolume driver as a plugin. Its volumes are called `<driver>/<spec name>`. What a driver does not support
 * counts as done: an old driver without `attach` leaves that to its `mount` on the node.
 */
export function createFlexPlugin(
  { call, log }: { readonly call: FlexDriver; readonly log: Logger },
  { driver, canAttach }: { readonly driver: string; readonly canAttach: boolean },
): AttachablePlugin {
  async function attach({ spec, node, signal, onAccepted }: AttachRequest): Promise<string> {
    const source = flexSourceOf(spec);
    if (!source) throw new FlexError("BadInput", `attach ${specName(spec)}: it is no FlexVolume`);
    const what = parseTarget("attach", specName(spec), node);
    const args = [flexOptionsJson(spec, source), node];
    const answer = await call({ verb: "attach", args, what, signal, onAccepted });
    return answer.kind === "success" ? answer.device : "";
  }

  async function detach({ pluginVolume, node, signal, onAccepted }: DetachRequest): Promise<void> {
    const what = parseTarget("detach", pluginVolume, node);
    await call({ verb: "detach", args: [pluginVolume, node], what, signal, onAccepted });
  }

  /** A driver that fails to answer has not said that the volume is gone. */
  async function verify({ spec, node }: VerifyRequest): Promise<Verdict> {
    const source = spec && flexSourceOf(spec);
    if (!source) return "unknown";
    try {
      const what = parseTarget("isattached", specName(spec), node);
      const answer = await call({ verb: "isattached", args: [flexOptionsJson(spec, source), node], what });
      if (answer.kind === "not-supported") return "unknown";
      return answer.attached ? "attached" : "not-attached";
    } catch (error) {
      log.warn("flexvolume not verified", { driver, volume: specName(spec), node, error });
      return "unknown";
    }
  }

  return {
    name: driver,
    canSupport: (spec) => flexSourceOf(spec)?.driver === driver,
    needsAttach: () => canAttach,
    volumeName: (spec) => specName(spec) || undefined,
    metricName: () => driver,
    attach,
    detach,
    verify,
  };
}

/** The pair in words, once both are names that a driver may be given. */
function parseTarget(verb: string, volume: string, node: string): string {
  for (const name of [volume, node])
    if (!isObjectName(name)) {
      const shown = JSON.stringify(name.slice(0, 253));
      throw new FlexError("BadInput", `${verb}: ${shown} is no name of an object; no driver is given it`);
    }
  return `volume ${volume} on node ${node}`;
}

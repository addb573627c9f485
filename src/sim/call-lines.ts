import type { SocketCall } from "./sockets.ts";
import type { Trace } from "./trace.ts";

/** Who makes the call of a driver's controller service: the others are the node agent's. */
const CALLERS: Readonly<Record<string, string>> = {
  ControllerPublishVolume: "attacher",
  ControllerUnpublishVolume: "attacher",
};

/** Calls that change where a volume is or what it is; the rest asks. */
const TRACED =
  /^(Create|Delete|ControllerPublish|ControllerUnpublish|ControllerExpand|NodeStage|NodeUnstage|NodePublish|NodeUnpublish|NodeExpand)/;

/** A line for every call to a driver that changes something, with what became of it. */
export function traceCalls(trace: Trace, machine: string): (call: SocketCall) => void {
  return ({ path, request, outcome }) => {
    const method = path.slice(path.lastIndexOf("/") + 1);
    if (!TRACED.test(method)) return;
    const { volumeId, nodeId, name } = request as { volumeId?: string; nodeId?: string; name?: string };
    const isNodes = method.startsWith("Node");
    const caller = isNodes ? machine : (CALLERS[method] ?? "companions");
    const volume = volumeId ?? name ?? "";
    const where = nodeId === undefined ? "" : ` on ${nodeId}`;
    const result = outcome === "ok" ? "" : `: ${outcome}`;
    const node = isNodes ? machine : nodeId;
    const about = { volume, ...(node !== undefined && { node }), ...(!isNodes && { to: "san" }) };
    trace.add(caller, `${method} ${volume}${where}${result}`, about);
  };
}

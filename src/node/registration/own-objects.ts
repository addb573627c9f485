import type { Logger } from "../../base/log.ts";
import { csiNodes } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { createInformer, type Informer, type InformerDeps } from "../../kube/informer/informer.ts";
import { toKey } from "../../kube/object.ts";
import type { SeenByWatch } from "./projection.ts";

/** This node's Node and CSINode as a watch shows them: to find out that somebody changed what the agent wrote there. */
export interface OwnObjects extends SeenByWatch {
  run(signal: AbortSignal): Promise<void>;
}

interface OwnObjectsDeps extends InformerDeps {
  readonly client: Client;
  readonly log: Logger;
  readonly node: Informer<Node>;
}

export function createOwnObjects(
  deps: OwnObjectsDeps,
  { nodeName }: { readonly nodeName: string },
): OwnObjects {
  const { client, log, node } = deps;
  const key = toKey({ name: nodeName });
  const own = { resource: csiNodes, fieldSelector: `metadata.name=${nodeName}` };
  const informer = createInformer(deps, own);

  /** The authorizer of nodes lets a kubelet get its CSINode and nothing more; asked for ever it would refuse for ever. */
  async function isRefused(signal: AbortSignal): Promise<boolean> {
    try {
      await client.list(csiNodes, { fieldSelector: own.fieldSelector, limit: 1, signal });
      return false;
    } catch (error) {
      return isKubeError(error, "Forbidden");
    }
  }

  return {
    node: () => node.get(key),
    csiNode: () => informer.get(key),
    csiNodeIsWatched: () => informer.hasSynced(),
    listen(onChange) {
      const leave = [node.addHandler(onChange), informer.addHandler(onChange)];
      return () => {
        for (const each of leave) each();
      };
    },
    async run(signal) {
      if (!(await isRefused(signal))) return informer.run(signal);
      log.info("CSINode may not be watched with these rights; it is read every minute", { node: nodeName });
    },
  };
}

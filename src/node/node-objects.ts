import { configMaps } from "../kube/api/config-map.ts";
import { secrets } from "../kube/api/secret.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { toKey } from "../kube/object.ts";
import type { NodeCaches } from "./caches.ts";
import type { NodeObjects } from "./objects.ts";

/** What plugins read of the API, from the agent's caches. */
export function createNodeObjects(
  { node, drivers, objects }: Pick<NodeCaches, "node" | "drivers" | "objects">,
  { nodeName, token }: { readonly nodeName: string; readonly token: NodeObjects["token"] },
): NodeObjects {
  return {
    secret: (namespace, name, signal) => objects.read(secrets, { namespace, name }, signal),
    configMap: (namespace, name, signal) => objects.read(configMaps, { namespace, name }, signal),
    attachment: (name, signal, { live = false } = {}) =>
      live
        ? objects.readNow(volumeAttachments, { name }, signal)
        : objects.read(volumeAttachments, { name }, signal),
    csiDriver(name) {
      if (!drivers.hasSynced()) throw new Error("the CSIDriver objects have not been read yet");
      return drivers.get(toKey({ name }));
    },
    node: () => node.get(toKey({ name: nodeName })),
    token,
  };
}

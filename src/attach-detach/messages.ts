import type { Pod } from "../kube/api/pod.ts";

/** Texts that people and their alerts have known for years, word for word; see section 19 of the specification. */

export function attachSucceeded(volume: string): string {
  return `AttachVolume.Attach succeeded for volume "${volume}" `;
}

export function attachFailed(volume: string, error: string): string {
  return `AttachVolume.Attach failed for volume "${volume}" : ${error}`;
}

export function noPlugin(volume: string): string {
  return `AttachVolume.FindAttachablePluginBySpec failed for volume "${volume}" `;
}

/** `users` are the pods on the nodes that have the volume. Names of other namespaces are nobody's business here. */
export function waitingForDetach(volume: string, receiver: Pod, users: readonly Pod[]): string {
  return `Waiting for detach for volume "${volume}" ${whoHasIt(receiver, users)}`;
}

function whoHasIt(receiver: Pod, users: readonly Pod[]): string {
  if (users.length === 0)
    return "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node";
  const { namespace } = receiver.metadata;
  const near = users.filter((pod) => pod.metadata.namespace === namespace);
  const far = `${users.length - near.length} pod(s) in different namespaces`;
  if (near.length === 0) return `Volume is already used by ${far}`;
  const names = near.map((pod) => pod.metadata.name ?? "").join(", ");
  return `Volume is already used by pod(s) ${names}${near.length < users.length ? ` and ${far}` : ""}`;
}

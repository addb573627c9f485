import type { Container } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";

export interface PodSecurity {
  /** The user all containers run as, where they agree. */
  readonly fsUser: number | undefined;
  readonly fsGroup: number | undefined;
  readonly fsGroupChangePolicy: string | undefined;
}

export function podSecurity({ spec }: Pod): PodSecurity {
  const { fsGroup, fsGroupChangePolicy } = spec?.securityContext ?? {};
  return { fsUser: commonUser(spec), fsGroup, fsGroupChangePolicy };
}

/** Undefined if any container has none, or two differ. */
function commonUser(spec: Pod["spec"]): number | undefined {
  const ofPod = spec?.securityContext?.runAsUser;
  const ephemeral = (spec?.ephemeralContainers ?? []) as readonly Container[];
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...ephemeral];
  const users = new Set(containers.map(({ securityContext }) => securityContext?.runAsUser ?? ofPod));
  return users.size === 1 ? [...users][0] : undefined;
}

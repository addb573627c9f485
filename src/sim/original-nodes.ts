import type { Clock } from "../base/clock.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Informer } from "../kube/informer/informer.ts";
import type { ObjectKey } from "../kube/object.ts";
import { OUT_OF_SERVICE } from "./cluster-objects.ts";
import type { Place } from "./original-desired.ts";

/** So long a new Node has to be ready before its silence about a volume says something. */
const NEW_NODE_MS = 120_000;

/** Why a volume may be taken from a node that may use it. */
export type ForceReason = "timeout" | "out-of-service";

/**
 * What the original controller is told by nodes about the volumes they use. Left out is W-27: a Node that was made again under a
 * machine that runs says nothing of volumes at first, and one that is missing says nothing at all; the original takes both for
 * unmounted.
 */
export class OriginalNodes {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #cache: Informer<Node>;
  /** By uid: since when it is known to be ready. */
  readonly #readySince = new Map<string, number>();

  constructor({ client, clock, cache }: { client: Client; clock: Clock; cache: Informer<Node> }) {
    this.#client = client;
    this.#clock = clock;
    this.#cache = cache;
    cache.addHandler(({ kind, object }) => {
      const { uid = "" } = object.metadata;
      if (kind === "deleted" || !isReady(object)) this.#readySince.delete(uid);
      else if (!this.#readySince.has(uid)) this.#readySince.set(uid, clock.now());
    });
  }

  get(name: string): Node | undefined {
    return this.#cache.get(name as ObjectKey);
  }

  /** From the server; undefined where there is none. */
  async live(name: string, signal: AbortSignal): Promise<Node | undefined> {
    return this.#client.get(nodes, { name }, { signal }).catch((error: unknown) => {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    });
  }

  mayUse(node: Node | undefined, { volume }: Place, attachment: VolumeAttachment | undefined): boolean {
    if (node === undefined || node.status?.volumesInUse?.includes(volume) === true) return true;
    const { uid = "", creationTimestamp: bornAt = "" } = node.metadata;
    const isNew = (attachment?.metadata.creationTimestamp ?? "") <= bornAt;
    const readyForMs = this.#clock.now() - (this.#readySince.get(uid) ?? Infinity);
    return attachment !== undefined && isNew && !(readyForMs >= NEW_NODE_MS);
  }

  /** What a look at a node gives reason to; `isExpired` where no pod there has wanted the volume for the whole time. */
  reasonToForce(node: Node | undefined, isExpired: boolean): ForceReason | undefined {
    if (node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true) return "out-of-service";
    return isExpired && (node === undefined || !isReady(node)) ? "timeout" : undefined;
  }
}

function isReady({ status }: Node): boolean {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

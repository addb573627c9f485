import type { Clock } from "../base/clock.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import type { SimCluster } from "./cluster.ts";
import { attacherFinalizer } from "./external-attacher.ts";

/** A test that plays external-attacher itself, one write at a time. Volumes go by their labels. */
export class HandAttacher {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #cluster: SimCluster;

  constructor({ client, clock, cluster }: { client: Client; clock: Clock; cluster: SimCluster }) {
    this.#client = client;
    this.#clock = clock;
    this.#cluster = cluster;
  }

  attachmentOf(volume: string, node: string): VolumeAttachment | undefined {
    const name = this.#cluster.labels.attachmentName(volume, node);
    return this.#cluster.read(volumeAttachments, { name });
  }

  /** One that was there before the controller was; `held` by the finalizer, as soon as the attacher has seen it. */
  async create(
    volume: string,
    node: string,
    {
      attached = false,
      held = attached,
      source = { persistentVolumeName: `pv-${volume}` },
    }: {
      attached?: boolean;
      held?: boolean;
      source?: VolumeAttachment["spec"]["source"];
    } = {},
  ): Promise<void> {
    const { labels } = this.#cluster;
    labels.addNode(node);
    const spec = { attacher: labels.driverOf(volume), nodeName: node, source };
    const metadata = { name: labels.attachmentName(volume, node) };
    await this.#client.create(volumeAttachments, { metadata, spec });
    if (held) await this.hold(volume, node);
    if (attached) await this.setStatus(volume, node, { attached: true });
  }

  /** Puts the finalizer on: from now on a deletion waits for `release`. */
  async hold(volume: string, node: string): Promise<void> {
    const finalizers = [attacherFinalizer(this.#cluster.labels.driverOf(volume))];
    await this.#patch(volume, node, { metadata: { finalizers } });
  }

  async attach(volume: string, node: string): Promise<void> {
    await this.hold(volume, node);
    await this.setStatus(volume, node, { attached: true, attachError: null });
  }

  async failAttach(volume: string, node: string, message: string): Promise<void> {
    await this.hold(volume, node);
    await this.setStatus(volume, node, { attached: false, attachError: this.#error(message) });
  }

  async failDetach(volume: string, node: string, message: string): Promise<void> {
    await this.setStatus(volume, node, { detachError: this.#error(message) });
  }

  /** The end of a detach: the object goes if it is being deleted. */
  async release(volume: string, node: string): Promise<void> {
    await this.setStatus(volume, node, { attached: false, detachError: null });
    await this.#patch(volume, node, { metadata: { finalizers: null } });
  }

  async setStatus(volume: string, node: string, status: object): Promise<void> {
    await this.#patch(volume, node, { status }, "status");
  }

  /** Somebody with kubectl: gone at once, finalizer or not. */
  async removeByHand(volume: string, node: string): Promise<void> {
    const name = this.#cluster.labels.attachmentName(volume, node);
    await this.#patch(volume, node, { metadata: { finalizers: null } });
    await this.#client.delete(volumeAttachments, { name });
  }

  #error(message: string): object {
    return {
      message,
      time: this.#clock
        .wall()
        .toISOString()
        .replace(/\.\d+Z$/, "Z"),
    };
  }

  async #patch(volume: string, node: string, value: unknown, subresource?: "status"): Promise<void> {
    const name = this.#cluster.labels.attachmentName(volume, node);
    await this.#client.patch(volumeAttachments, { name }, { type: "merge", value }, { subresource });
  }
}

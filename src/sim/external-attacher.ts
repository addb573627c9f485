import { setMaxListeners } from "node:events";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client, WriteOptions } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { createInformer } from "../kube/informer/informer.ts";
import { csiVolumeName, type VolumeName } from "../volumes/names.ts";
import type { BareStorage } from "./bare-storage.ts";

export interface ExternalAttacherDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly storages: BareStorage;
}

export interface ExternalAttacherOptions {
  readonly driver: string;
  /** The handle of a volume whose source is not CSI, as translation would give it. */
  readonly handleOf?: (volume: PersistentVolume) => string | undefined;
}

/** Its own retries, as the real one's `--retry-interval-start` and `-max`. */
const RETRY = { initialMs: 1_000, maxMs: 300_000 };
const HANG_LOOK_MS = 50;

/**
 * The external-attacher of one driver: finalizer first, then ControllerPublish, then `attached: true`; on deletion
 * ControllerUnpublish, `attached: false`, and in a second write the finalizer goes. What it is slow or bad at is
 * set from outside, at any time.
 */
export class SimExternalAttacher {
  /** How long a publish or unpublish takes. */
  delayMs = 0;
  /** While true, calls to the driver do not come back. */
  hangs = false;
  /**
   * With the guards of `mooring attacher`: no publish while another attachment may have the volume on another node, and no
   * unpublish while another one has it on the same.
   */
  guarded = false;
  /** Names of VolumeAttachments that it does not act upon: the test plays whoever made them. */
  readonly ignored = new Set<string>();
  readonly #deps: ExternalAttacherDeps;
  readonly #options: ExternalAttacherOptions;
  readonly #busy = new Set<string>();
  readonly #again = new Set<string>();
  /** By name and what failed: a deletion does not wait for the back-off of an attach. */
  readonly #failures = new Map<string, { count: number; untilMs: number }>();
  readonly #fails = { attach: failing(), detach: failing() };

  constructor(deps: ExternalAttacherDeps, options: ExternalAttacherOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  failAttaches(times: number, message: string): void {
    this.#fails.attach = { left: times, message };
  }

  failDetaches(times: number, message: string): void {
    this.#fails.detach = { left: times, message };
  }

  async run(signal: AbortSignal): Promise<void> {
    // It works on all attachments at once, and each request listens; as the processes allow themselves.
    setMaxListeners(0, signal);
    const informer = createInformer<VolumeAttachment>(this.#deps, { resource: volumeAttachments });
    informer.addHandler(({ kind, key }) => {
      if (kind !== "deleted") this.#mark(key, signal);
    });
    await informer.run(signal);
  }

  #mark(name: string, signal: AbortSignal): void {
    if (signal.aborted) return;
    if (this.#busy.has(name)) this.#again.add(name);
    else void this.#work(name, signal);
  }

  async #work(name: string, signal: AbortSignal): Promise<void> {
    this.#busy.add(name);
    do {
      this.#again.delete(name);
      await this.#sync(name, signal).catch(() => undefined);
    } while (this.#again.has(name) && !signal.aborted);
    this.#busy.delete(name);
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const attachment = await found(this.#deps.client.get(volumeAttachments, { name }, { signal }));
    if (attachment?.spec.attacher !== this.#options.driver || this.ignored.has(name)) return;
    const what = attachment.metadata.deletionTimestamp === undefined ? "attach" : "detach";
    if (what === "attach" && attachment.status?.attached === true) return;
    const { clock } = this.#deps;
    const failed = this.#failures.get(`${what} ${name}`);
    if (failed !== undefined && clock.now() < failed.untilMs) return;
    try {
      await (what === "attach" ? this.#attach(attachment, signal) : this.#detach(attachment, signal));
      this.#failures.delete(`${what} ${name}`);
    } catch {
      const count = (failed?.count ?? 0) + 1;
      const delayMs = backoffMs(count, RETRY);
      this.#failures.set(`${what} ${name}`, { count, untilMs: clock.now() + delayMs });
      clock.after(delayMs, () => this.#mark(name, signal));
    }
  }

  async #attach(attachment: VolumeAttachment, signal: AbortSignal): Promise<void> {
    const { finalizers = [], resourceVersion } = attachment.metadata;
    if (!finalizers.includes(this.#finalizer)) {
      const annotations = { "csi.alpha.kubernetes.io/node-id": attachment.spec.nodeName };
      const metadata = { resourceVersion, finalizers: [...finalizers, this.#finalizer], annotations };
      // One that is gone throws: without its finalizer nothing is published, as in the real one.
      const ref = { name: attachment.metadata.name ?? "" };
      await this.#deps.client.patch(volumeAttachments, ref, { type: "merge", value: { metadata } });
    }
    const volume = await this.#volumeOf(attachment);
    await this.#callDriver("attach", attachment, signal);
    if (this.guarded && (await this.#others(attachment)).some(({ elsewhere, held }) => elsewhere && held))
      throw new Error("held by another node");
    this.#deps.storages.publish(volume, attachment.spec.nodeName);
    await this.#patch(attachment, { status: { attached: true, attachError: null } }, "status");
  }

  async #detach(attachment: VolumeAttachment, signal: AbortSignal): Promise<void> {
    const { finalizers = [] } = attachment.metadata;
    if (!finalizers.includes(this.#finalizer)) return;
    const volume = await this.#volumeOf(attachment);
    await this.#callDriver("detach", attachment, signal);
    const shared =
      this.guarded &&
      (await this.#others(attachment)).some(({ elsewhere, leaving }) => !elsewhere && !leaving);
    if (!shared) this.#deps.storages.unpublish(volume, attachment.spec.nodeName);
    const status = { attached: false, attachmentMetadata: null, detachError: null };
    await this.#patch(attachment, { status }, "status");
    const others = finalizers.filter((finalizer) => finalizer !== this.#finalizer);
    await this.#patch(attachment, { metadata: { finalizers: others } });
  }

  /** Other attachments of the same PersistentVolume. */
  async #others({ metadata, spec }: VolumeAttachment) {
    const { items } = await this.#deps.client.list(volumeAttachments);
    const volume = spec.source.persistentVolumeName;
    const pv = await found(this.#deps.client.get(persistentVolumes, { name: volume ?? "" }));
    const shared = pv?.spec?.accessModes?.some((mode) => mode.endsWith("Many")) ?? false;
    return items
      .filter((other) => other.metadata.name !== metadata.name)
      .filter((other) => other.spec.source.persistentVolumeName === volume)
      .map((other) => ({
        elsewhere: other.spec.nodeName !== spec.nodeName,
        held: !shared && (other.metadata.finalizers?.includes(this.#finalizer) ?? false),
        leaving: other.metadata.deletionTimestamp !== undefined,
      }));
  }

  async #callDriver(what: "attach" | "detach", attachment: VolumeAttachment, signal: AbortSignal) {
    const { clock } = this.#deps;
    if (this.delayMs > 0) await clock.sleep(this.delayMs, signal);
    while (this.hangs) await clock.sleep(HANG_LOOK_MS, signal);
    signal.throwIfAborted();
    const fails = this.#fails[what];
    if (fails.left === 0) return;
    fails.left--;
    const error = {
      message: fails.message,
      time: clock
        .wall()
        .toISOString()
        .replace(/\.\d+Z$/, "Z"),
    };
    await this.#patch(attachment, { status: { [`${what}Error`]: error } }, "status");
    throw new Error(fails.message);
  }

  async #volumeOf({ spec }: VolumeAttachment): Promise<VolumeName> {
    const { driver, handleOf } = this.#options;
    const { persistentVolumeName: name, inlineVolumeSpec } = spec.source;
    const volume = name ? await this.#deps.client.get(persistentVolumes, { name }) : undefined;
    const csi = volume?.spec?.csi ?? inlineVolumeSpec?.csi;
    const volumeHandle = csi?.volumeHandle ?? (volume && handleOf?.(volume));
    if (volumeHandle === undefined) throw new Error(`no handle for ${name ?? "an inline volume"}`);
    return csiVolumeName({ driver, volumeHandle });
  }

  async #patch({ metadata }: VolumeAttachment, value: unknown, subresource?: WriteOptions["subresource"]) {
    const ref = { name: metadata.name ?? "" };
    await found(this.#deps.client.patch(volumeAttachments, ref, { type: "merge", value }, { subresource }));
  }

  get #finalizer(): string {
    return attacherFinalizer(this.#options.driver);
  }
}

export function attacherFinalizer(driver: string): string {
  return `external-attacher/${driver.replaceAll(/[^A-Za-z0-9-]/g, "-")}`;
}

function failing(): { left: number; message: string } {
  return { left: 0, message: "" };
}

/** Undefined for what is gone meanwhile. */
async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

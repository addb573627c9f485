import { withDeadline, type Clock } from "../base/clock.ts";
import { BareStorage } from "../sim/bare-storage.ts";
import type {
  CallOptions,
  ControllerDriver,
  DriverCapabilities,
  ListRequest,
  PublishRequest,
  UnpublishRequest,
  VolumePage,
} from "./driver.ts";
import { DriverError } from "./driver.ts";

export const EVERYTHING: DriverCapabilities = {
  publishes: true,
  publishReadonly: true,
  singleNodeMultiWriter: false,
  listsPublishedNodes: false,
};

type Call = "publish" | "unpublish" | "list";

/** What goes wrong with one call. */
export type Trouble =
  | { readonly kind: "error"; readonly code: number | undefined; readonly text: string }
  /** Carried out, but the answer comes only after the deadline. */
  | { readonly kind: "answer-lost" }
  | { readonly kind: "hang" };

/** A driver whose answers a test decides, before a storage that refuses nothing. */
export class FakeDriver implements ControllerDriver {
  name = "csi.test";
  caps: DriverCapabilities = EVERYTHING;
  delayMs = 0;
  context: Readonly<Record<string, string>> = {};
  /** Pages that are given out instead of what is published. */
  pages: readonly VolumePage[] | undefined;
  ready: () => boolean = () => true;
  readonly storages = new BareStorage();
  readonly publishes: PublishRequest[] = [];
  readonly unpublishes: UnpublishRequest[] = [];
  readonly lists: ListRequest[] = [];
  /** Told of every call when it arrives. */
  onCall: (line: string) => void = () => undefined;
  trouble: (call: Call, volumeId: string) => Trouble | undefined = () => undefined;
  readonly #clock: Clock;
  readonly #script: { call: Call; trouble: Trouble }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The next such call. */
  spoil(call: Call, trouble: Trouble): void {
    this.#script.push({ call, trouble });
  }

  fail(call: Call, code: number | undefined, text: string): void {
    this.spoil(call, { kind: "error", code, text });
  }

  publishedOn(volumeId: string): readonly string[] {
    return this.storages.publishedOn(volumeId);
  }

  probe(): Promise<boolean> {
    return Promise.resolve(this.ready());
  }

  pluginName(): Promise<string> {
    return Promise.resolve(this.name);
  }

  capabilities(): Promise<DriverCapabilities> {
    return Promise.resolve(this.caps);
  }

  publish(request: PublishRequest, options: CallOptions): Promise<Readonly<Record<string, string>>> {
    this.publishes.push(request);
    this.onCall(`publish ${request.volumeId} on ${request.nodeId}`);
    return this.#answer("publish", request.volumeId, options, () => {
      this.storages.publish(request.volumeId, request.nodeId);
      return this.context;
    });
  }

  unpublish(request: UnpublishRequest, options: CallOptions): Promise<void> {
    this.unpublishes.push(request);
    this.onCall(`unpublish ${request.volumeId} from ${request.nodeId}`);
    return this.#answer("unpublish", request.volumeId, options, () =>
      this.storages.unpublish(request.volumeId, request.nodeId),
    );
  }

  listVolumes(request: ListRequest, options: CallOptions): Promise<VolumePage> {
    this.lists.push(request);
    return this.#answer("list", "", options, () => {
      const page = this.pages?.[Number(request.startingToken)];
      if (page !== undefined) return page;
      const entries = [...this.storages.volumes.values()].map(({ handle, publishedOn }) => ({
        volumeId: handle,
        publishedNodeIds: [...publishedOn.keys()],
      }));
      return { entries, nextToken: "" };
    });
  }

  #answer<T>(
    call: Call,
    volumeId: string,
    { timeoutMs, signal }: CallOptions,
    carryOut: () => T,
  ): Promise<T> {
    const onDeadline = () => new DriverError(4, "context deadline exceeded");
    return withDeadline(this.#clock, { ms: timeoutMs, signal, onDeadline }, async (stop) => {
      if (this.delayMs > 0) await this.#clock.sleep(this.delayMs, stop);
      const trouble = this.#next(call) ?? this.trouble(call, volumeId);
      if (trouble?.kind === "error") throw new DriverError(trouble.code, trouble.text);
      if (trouble?.kind === "hang") await this.#clock.sleep(timeoutMs * 2, stop);
      const answer = carryOut();
      if (trouble?.kind === "answer-lost") await this.#clock.sleep(timeoutMs * 2, stop);
      return answer;
    });
  }

  #next(call: Call): Trouble | undefined {
    const at = this.#script.findIndex((entry) => entry.call === call);
    return at < 0 ? undefined : this.#script.splice(at, 1)[0]?.trouble;
  }
}

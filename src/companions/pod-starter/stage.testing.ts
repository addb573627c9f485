import type { PodSpec } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { abortReason } from "../../base/clock.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import type { RecordedEvent } from "../../kube/events/events.ts";
import { createInformer } from "../../kube/informer/informer.ts";
import type { TransportRequest } from "../../kube/transport/transport.ts";
import { serviceAccounts } from "../../sim/cluster-objects.ts";
import type { NetworkFaults } from "../../sim/faulty-transport.ts";
import { Harness } from "../../sim/harness.ts";
import type { SimClock } from "../../sim/scheduler.ts";
import { isPodTerminated } from "../../volumes/resolve.ts";
import { createPodStarter, type PodVolumes } from "./pod-starter.ts";

export const NODE = "node-1";
const MOUNT_MS = 50;

interface Sketch {
  readonly seed?: number;
  readonly network?: () => NetworkFaults;
}

/** An API server, and a volume manager that mounts what it may and unmounts what has ended. */
export async function given(sketch: Sketch = {}): Promise<StarterWorld> {
  const world = new StarterWorld(sketch);
  await world.server.start();
  await world.client.create(serviceAccounts, { metadata: { name: "default", namespace: "default" } });
  world.watch();
  return world;
}

export class StarterWorld extends Harness {
  readonly volumes = new FakeVolumes(this.clock);
  readonly events: RecordedEvent[] = [];
  /** What must never be seen, and was. */
  readonly broken: string[] = [];
  /** Called for every request of the starter, before it is carried out. */
  onRequest: (line: string) => void = () => undefined;

  constructor(sketch: Sketch) {
    super({ ...sketch, settleMs: 500 });
  }

  /** What the volume manager sees of pods, and what must never be seen. */
  watch(): void {
    const informer = createInformer(
      { ...{ client: this.client, clock: this.clock }, random: this.random.fork("manager") },
      { resource: pods },
    );
    informer.addHandler(({ kind, object }) => this.#onPod(kind === "deleted" ? undefined : object, object));
    void informer.run(new AbortController().signal);
  }

  #onPod(pod: Pod | undefined, last: Pod): void {
    const uid = last.metadata.uid ?? "";
    if (!pod && this.volumes.mounted.has(uid)) this.broken.push(`${last.metadata.name}: gone while mounted`);
    const runs = pod?.status?.containerStatuses?.some(({ state }) => state?.running) ?? false;
    if (runs && !this.volumes.mounted.has(uid)) this.broken.push(`${last.metadata.name}: runs unmounted`);
    this.volumes.see(pod, uid);
  }

  start(): void {
    const describe = (request: TransportRequest) => {
      const line = toLine(request);
      if (line !== undefined) this.onRequest(line);
      return line;
    };
    const events = { record: (event: RecordedEvent) => void this.events.push(event) };
    this.launch("starter", describe, (context, signal) => {
      const volumes = context.life.bind<PodVolumes>(this.volumes);
      return createPodStarter({ ...context, events }, { nodeName: NODE, volumes }).run(signal);
    });
  }

  pod(name: string): Pod | undefined {
    return this.read(pods, { namespace: "default", name });
  }

  /** `Running, Ready` or the reason its first container waits for. */
  stateOf(name: string): string {
    const { phase = "", conditions = [], containerStatuses = [] } = this.pod(name)?.status ?? {};
    const ready = conditions.find(({ type }) => type === "Ready")?.status === "True";
    const waiting = containerStatuses[0]?.state?.waiting?.reason;
    return [phase, ...(ready ? ["Ready"] : []), ...(waiting ? [waiting] : [])].join(", ");
  }

  async createPod(
    name: string,
    spec: Partial<PodSpec> = {},
    metadata: Partial<ObjectMeta> = {},
  ): Promise<void> {
    await this.client.create(pods, {
      metadata: { name, namespace: "default", ...metadata },
      spec: { nodeName: NODE, containers: [{ name: "app", image: "example/app" }], ...spec },
    });
  }

  async deletePod(name: string): Promise<void> {
    await this.client.delete(pods, { name, namespace: "default" });
  }

  async setStatus(name: string, status: object): Promise<void> {
    const ref = { name, namespace: "default" };
    await this.client.patch(pods, ref, { type: "merge", value: { status } }, { subresource: "status" });
  }
}

/** Mounts outlive the process of the starter; those who wait do not. */
export class FakeVolumes implements PodVolumes {
  readonly mounted = new Set<string>();
  readonly journal: string[] = [];
  /** Nothing can be mounted, nor unmounted, for now. */
  stuck = false;
  /** What is on the disk is known; before, nothing seems to be mounted. */
  synced = true;
  /** What the next waits are refused with. */
  refusals: Error[] = [];
  readonly #clock: SimClock;
  readonly #pods = new Map<string, Pod>();
  readonly #waiting = new Set<() => void>();

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  see(pod: Pod | undefined, uid: string): void {
    if (pod) this.#pods.set(uid, pod);
    else this.#pods.delete(uid);
    this.#clock.after(MOUNT_MS, () => this.look(uid));
  }

  unstick(): void {
    this.stuck = false;
    for (const uid of new Set([...this.#pods.keys(), ...this.mounted])) this.look(uid);
  }

  look(uid: string): void {
    if (this.stuck) return;
    const pod = this.#pods.get(uid);
    const isWanted = pod !== undefined && !isPodTerminated(pod) && !pod.metadata.deletionTimestamp;
    if (isWanted && !this.mounted.has(uid)) {
      this.mounted.add(uid);
      this.journal.push(`mount ${pod.metadata.name}`);
    }
    if ((pod === undefined || isPodTerminated(pod)) && this.mounted.delete(uid))
      this.journal.push(`unmount ${pod?.metadata.name ?? "of a pod that is gone"}`);
    for (const check of [...this.#waiting]) check();
  }

  waitForAttachAndMount({ metadata }: Pod, signal: AbortSignal): Promise<void> {
    return this.#wait(() => this.mounted.has(metadata.uid ?? ""), signal);
  }

  waitForUnmount({ metadata }: Pod, signal: AbortSignal): Promise<void> {
    return this.#wait(() => !this.synced || !this.mounted.has(metadata.uid ?? ""), signal);
  }

  statesHaveBeenSynced(): boolean {
    return this.synced;
  }

  #wait(holds: () => boolean, signal: AbortSignal): Promise<void> {
    const refusal = this.refusals.shift();
    if (refusal) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!holds()) return;
        this.#waiting.delete(check);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.delete(check);
        reject(abortReason(signal));
      };
      this.#waiting.add(check);
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
      check();
    });
  }
}

/** `PATCH web` or `DELETE web`; reads have none. */
function toLine({ method, path }: TransportRequest): string | undefined {
  if (method === "GET") return undefined;
  return `${method} ${/\/pods\/([^/?]+)/.exec(path)?.[1] ?? path}`;
}

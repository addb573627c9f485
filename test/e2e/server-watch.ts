import { expect } from "vitest";
import { decodeWatch } from "../../src/kube/informer/watch.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import type { Cluster } from "./cluster.ts";
import type { Acknowledged } from "./server-stories.ts";

/** A client that watches one resource through all restarts, each time from the last revision it saw. */
export class CrashWatch {
  readonly #path: string;
  /** Objects by namespace and name, with the revision they are at; and every revision that was told. */
  readonly #view = new Map<string, string>();
  readonly #seen = new Set<number>();
  #last: number | undefined;
  #running: Promise<void> = Promise.resolve();
  #waiting: { revision: number; resolve: () => void } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** The first time from a list, as clients do; then only ever from where it was. */
  async begin(cluster: Cluster): Promise<void> {
    if (this.#last === undefined) {
      const { metadata, items } = await cluster.list(this.#path);
      this.#last = Number(metadata.resourceVersion);
      for (const { metadata: object } of items) this.#view.set(idOf(object), object.resourceVersion);
    }
    this.#running = this.#follow(cluster);
  }

  /** Resolves when the server that was watched has gone. */
  async ended(): Promise<void> {
    await this.#running;
  }

  /** What it has is what there is, and it was told of every write that anybody was. */
  async checkAgainst(cluster: Cluster, told: readonly Acknowledged[]): Promise<void> {
    const { items } = await cluster.list(this.#path);
    const newest = Math.max(
      this.#last ?? 0,
      ...items.map(({ metadata }) => Number(metadata.resourceVersion)),
    );
    await this.#reach(newest);
    const listed = items.map(({ metadata }) => [idOf(metadata), metadata.resourceVersion]);
    expect([...this.#view].sort()).toEqual(listed.sort());
    const plural = this.#path.slice("/api/v1/".length);
    const missed = told.filter(
      ({ path, revision }) => pluralOf(path) === plural && !this.#seen.has(revision),
    );
    expect(missed).toEqual([]);
  }

  async #follow(cluster: Cluster): Promise<void> {
    const path = `${this.#path}?watch=true&resourceVersion=${this.#last}`;
    try {
      const { body } = await cluster.transport.stream({ method: "GET", path });
      for await (const events of decodeWatch<KubeObject>(body)) {
        for (const { type, object } of events) this.#take(type, object);
      }
    } catch (error) {
      if (error instanceof TornWatch) throw error;
      // The server was killed; the next one goes on from here.
    }
  }

  #take(type: string, { metadata }: KubeObject): void {
    const revision = Number(metadata.resourceVersion);
    if (type === "ERROR" || !(revision > (this.#last ?? 0)))
      throw new TornWatch(`${this.#path} at ${this.#last}: ${type} of ${metadata.name} at ${revision}`);
    this.#last = revision;
    this.#seen.add(revision);
    const id = idOf(metadata);
    if (type === "ADDED" && this.#view.has(id)) throw new TornWatch(`${this.#path}: ${id} was added twice`);
    if (type !== "ADDED" && !this.#view.has(id)) throw new TornWatch(`${this.#path}: ${id} was never added`);
    if (type === "DELETED") this.#view.delete(id);
    else this.#view.set(id, String(metadata.resourceVersion));
    if (this.#waiting !== undefined && revision >= this.#waiting.revision) this.#waiting.resolve();
  }

  #reach(revision: number): Promise<void> {
    if ((this.#last ?? 0) >= revision) return Promise.resolve();
    const reached = new Promise<void>((resolve) => (this.#waiting = { revision, resolve }));
    return Promise.race([reached, this.#running]);
  }
}

/** Something a watch may never do, restarts or not. */
class TornWatch extends Error {}

function idOf({
  namespace = "",
  name = "",
}: {
  readonly namespace?: string;
  readonly name?: string;
}): string {
  return `${namespace}/${name}`;
}

/** Of `/api/v1/namespaces/NAME` and of `/api/v1/namespaces/NS/PLURAL/NAME`. */
function pluralOf(path: string): string | undefined {
  const parts = path.split("/").slice(3);
  return parts.length === 2 ? parts[0] : parts[2];
}

import { expect, test } from "vitest";
import type { StoredObject, StoreKey } from "../../apiserver/store/store.ts";
import type { Witness } from "../server.ts";
import type { World } from "../world.ts";
import { watchAcknowledged } from "./acknowledged.ts";

const KEY: StoreKey = { resource: "pods", namespace: "default", name: "web" };
const PATH = "/api/v1/namespaces/default/pods";

/** A server whose store can lose what it had, as one that answers before its disk has it. */
class Server {
  readonly violations: string[] = [];
  readonly #objects = new Map<string, StoredObject>();
  readonly #world: World;
  readonly #look: () => void;
  #witness: Witness | undefined;
  #revision = 0;
  #nowMs = 0;

  constructor() {
    const store = { revision: 0, get: ({ name }: StoreKey) => this.#objects.get(name) };
    const server = { store, witness: (witness: Witness) => (this.#witness = witness) };
    const scheduler = Object.defineProperty({}, "nowMs", { get: () => this.#nowMs });
    this.#world = { server, scheduler, violate: (text: string) => this.violations.push(text) } as never;
    this.#look = watchAcknowledged(this.#world);
  }

  commit(type: "created" | "updated" | "deleted"): StoredObject {
    const revision = ++this.#revision;
    const text = JSON.stringify({ metadata: { name: KEY.name, resourceVersion: String(revision) } });
    const object = { key: KEY, revision, text } as StoredObject;
    if (type === "deleted") this.#objects.delete(KEY.name);
    else this.#objects.set(KEY.name, object);
    this.#witness?.committed({ type, object });
    return object;
  }

  /** As the store says it. */
  tell(object: StoredObject): void {
    this.#witness?.committed({ type: "created", object });
  }

  answer(method: "POST" | "PUT" | "DELETE", { text }: StoredObject): void {
    const path = method === "POST" ? PATH : `${PATH}/${KEY.name}`;
    this.#witness?.answered({ method, path }, { status: 200, body: text } as never);
  }

  /** The power fails: the store is as it was before. */
  restore(object: StoredObject | undefined): void {
    if (object === undefined) this.#objects.delete(KEY.name);
    else this.#objects.set(KEY.name, object);
  }

  look(): void {
    this.#nowMs += 60_000;
    this.#look();
  }
}

test("what was answered and is there, replaced or deleted breaks nothing", () => {
  const server = new Server();
  server.answer("POST", server.commit("created"));
  server.look();
  server.answer("PUT", server.commit("updated"));
  server.commit("updated");
  server.look();
  server.answer("DELETE", server.commit("deleted"));
  server.look();

  expect(server.violations).toEqual([]);
});

test("a commit that nobody was told of may be lost", () => {
  const server = new Server();
  const first = server.commit("created");
  server.answer("POST", first);
  server.commit("updated");
  server.restore(first);
  server.look();

  expect(server.violations).toEqual([]);
});

test("a creation that was answered and is lost is seen", () => {
  const server = new Server();
  server.answer("POST", server.commit("created"));
  server.restore(undefined);
  server.look();

  expect(server.violations).toEqual([
    "acknowledged: pods default/web was answered at revision 1, and the store has nothing",
  ]);
});

test("an update that was answered and is undone is seen", () => {
  const server = new Server();
  const first = server.commit("created");
  server.answer("POST", first);
  server.answer("PUT", server.commit("updated"));
  server.restore(first);
  server.look();

  expect(server.violations).toEqual([
    "acknowledged: pods default/web was answered at revision 2, and the store has 1",
  ]);
});

test("a revision that is used twice is seen", () => {
  const server = new Server();
  const first = server.commit("created");
  server.restore(undefined);
  server.tell(first);

  expect(server.violations).toEqual(["revisions: 1 comes after 1 with pods default/web"]);
});

import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { forSeeds, inProportion } from "../sim/seeds.ts";
import { givenServer, type Answer } from "./scenario.testing.ts";

const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";
const NAMES = ["a", "b", "c", "d", "e"];

type Server = Awaited<ReturnType<typeof givenServer>>;

/** What an informer does: list, apply events, resume from the last version seen, list again when that is gone. */
class Mirror {
  readonly #server: Server;
  readonly #selector: string;
  readonly objects = new Map<string, Answer>();
  #version = "";
  #watch: Awaited<ReturnType<Server["watch"]>> | undefined;
  #taken = 0;
  relists = 0;

  constructor(server: Server, selector: string) {
    this.#server = server;
    this.#selector = selector;
  }

  /** Applies what has arrived; opens what is not open. */
  async advance(): Promise<void> {
    if (this.#watch === undefined) await this.#open();
    const events = (await this.#watch?.events()) ?? [];
    for (const { type, object } of events.slice(this.#taken)) {
      if (type === "ERROR") {
        this.cut();
        this.#version = "";
        return;
      }
      this.#apply(type, object);
    }
    this.#taken = events.length;
    if (this.#watch?.state === "ended") this.cut();
  }

  cut(): void {
    this.#watch?.hangUp();
    this.#watch = undefined;
    this.#taken = 0;
  }

  #apply(type: string, object: Answer): void {
    const { name = "", resourceVersion = "" } = object.metadata;
    // The promise behind resuming: versions only ever rise within and across streams.
    expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Number(this.#version));
    this.#version = resourceVersion;
    if (type === "BOOKMARK") return;
    // No event is invented: what is added was not there, what changes or goes was.
    expect([type, this.objects.has(name)]).toEqual([type, type !== "ADDED"]);
    if (type === "DELETED") this.objects.delete(name);
    else this.objects.set(name, object);
  }

  async #open(): Promise<void> {
    if (this.#version === "") await this.#list();
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=40&resourceVersion=${this.#version}`;
    this.#watch = await this.#server.watch(`${CONFIG_MAPS}?${query}${this.#selector}`);
  }

  async #list(): Promise<void> {
    this.relists++;
    this.objects.clear();
    let token = "";
    do {
      const page = await this.#server.ok("GET", `${CONFIG_MAPS}?limit=2&continue=${token}${this.#selector}`);
      for (const item of page.items) {
        this.objects.set(item.metadata.name ?? "", { ...item, kind: "ConfigMap", apiVersion: "v1" });
      }
      token = page.metadata.continue ?? "";
      this.#version = page.metadata.resourceVersion ?? "";
    } while (token !== "");
  }
}

async function write(server: Server, random: Random): Promise<void> {
  const name = pick(random, NAMES);
  const labels = { color: pick(random, ["red", "blue"]) };
  const finalizers = chance(random, 0.2) ? ["ex.io/f"] : [];
  // Whatever fails (taken, missing, conflict) is part of the weather.
  switch (random.int(4)) {
    case 0:
      await server.send("POST", CONFIG_MAPS, { metadata: { name, labels, finalizers } });
      break;
    case 1:
      await server.send("DELETE", `${CONFIG_MAPS}/${name}`);
      break;
    case 2:
      await server.send("PUT", `${CONFIG_MAPS}/${name}`, {
        metadata: { name, labels },
        data: { n: `${random.int(3)}` },
      });
      break;
    default:
      await server.send(
        "PATCH",
        `${CONFIG_MAPS}/${name}`,
        { metadata: { labels, finalizers } },
        { type: "application/merge-patch+json" },
      );
  }
}

for (const [what, selector] of [
  ["everything", ""],
  ["a selection", "&labelSelector=color%3Dred"],
] as const) {
  test(`a client that lists, watches and resumes mirrors ${what} exactly, through cuts, timeouts and compaction`, async () => {
    let relists = 0;
    await forSeeds(100, async (random) => {
      const server = await givenServer({ queueEventsMax: 4 });
      const mirror = new Mirror(server, selector);

      for (let round = 0; round < 60; round++) {
        const writes = random.int(7);
        for (let n = 0; n < writes; n++) await write(server, random);
        if (chance(random, 0.1)) mirror.cut();
        if (chance(random, 0.05)) await server.store.compact(server.store.revision - random.int(5));
        if (chance(random, 0.2)) await server.scheduler.runFor(random.int(50_000));
        if (chance(random, 0.7)) await mirror.advance();
      }
      // Two looks: the first may only learn that it has to list again.
      for (let look = 0; look < 3; look++) await mirror.advance();

      const { items } = await server.ok("GET", `${CONFIG_MAPS}?${selector.slice(1)}`);
      const expected = new Map(
        items.map((item) => [item.metadata.name, { ...item, kind: "ConfigMap", apiVersion: "v1" }]),
      );
      expect(mirror.objects).toEqual(expected);
      relists += mirror.relists;
    });
    // Otherwise compaction was never noticed and half of this test is asleep.
    expect(relists).toBeGreaterThan(inProportion(110));
  });
}

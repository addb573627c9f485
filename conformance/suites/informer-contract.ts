import { setTimeout as sleep } from "node:timers/promises";
import { configMaps, type ConfigMap } from "../../src/kube/api/config-map.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import type { Informer } from "../../src/kube/informer/informer.ts";
import { startControlPlane, type ControlPlane } from "../harness/control-plane.ts";
import type { Performance } from "./suite.ts";

const PATH = "/api/v1/namespaces/default/configmaps";
const OBJECTS = 40;
/** Longer than the server's compaction interval of 10 s: the version that a watch wants to resume from is gone. */
const COMPACTION_MS = 12_000;

const BLOWS = [
  ["kube-apiserver", "SIGTERM"],
  ["kube-apiserver", "SIGKILL"],
  ["etcd", "SIGTERM"],
  ["etcd", "SIGKILL"],
] as const;

/** The informer's promises, on a real server under writers: added up, its deltas are its cache, and that is the server's state. */
export async function informerContract({ stage, binaries }: Performance): Promise<string> {
  const plane = await startControlPlane(stage, binaries);
  const stop = new AbortController();
  try {
    const informer = await plane.api.follow(configMaps);
    const told = addUp(informer);
    const writing = write(plane, stop.signal);
    for (const [program, signal] of BLOWS) {
      await plane.restart(program, signal);
      await sleep(1_000);
    }
    await sleep(COMPACTION_MS);
    await plane.restart("kube-apiserver", "SIGKILL");
    stop.abort();
    const writes = await writing;
    const size = await stage.until("cache equals server", 60_000, () => compare(plane, informer, told));
    return `${writes} writes, ${BLOWS.length + 1} blows, ${size} objects equal`;
  } finally {
    stop.abort();
    await plane.close();
  }
}

/** Whoever adds up the deltas has the cache; a delta that does not follow from the ones before is a broken promise. */
function addUp(informer: Informer<ConfigMap>): Map<string, string> {
  const told = new Map<string, string>();
  informer.addHandler(({ kind, object: { metadata } }) => {
    const key = `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
    if (kind === "deleted") told.delete(key);
    else told.set(key, metadata.resourceVersion ?? "");
  });
  return told;
}

/** Objects come, change and go, as fast as the server takes it; refusals are part of it. Answers how many were taken. */
async function write({ api }: ControlPlane, signal: AbortSignal): Promise<number> {
  let taken = 0;
  for (let round = 0; !signal.aborted; round++) {
    const name = `c-${round % OBJECTS}`;
    const data = { round: String(round) };
    const change =
      round % 7 === 0
        ? api.send("DELETE", `${PATH}/${name}`)
        : api
            .send("PATCH", `${PATH}/${name}`, { data })
            .catch(() => api.send("POST", PATH, { metadata: { name }, data }));
    taken += await change.then(
      () => 1,
      () => 0,
    );
  }
  return taken;
}

async function compare(
  { api }: ControlPlane,
  informer: Informer<ConfigMap>,
  told: ReadonlyMap<string, string>,
): Promise<number> {
  const { items } = await api.send<ObjectList<ConfigMap>>("GET", "/api/v1/configmaps");
  const server = versions(items);
  for (const [where, seen] of [
    ["cache", versions([...informer.objects()])],
    ["deltas", [...told].map(([key, version]) => `${key}@${version}`).sort()],
  ] as const) {
    const wrong = server.filter((entry) => !seen.includes(entry));
    if (wrong.length > 0 || seen.length !== server.length)
      throw new Error(
        `${where}: ${seen.length} objects, the server has ${server.length}; missing ${wrong.slice(0, 3).join(", ")}`,
      );
  }
  return server.length;
}

function versions(objects: readonly ConfigMap[]): string[] {
  return objects
    .map(
      ({ metadata }) =>
        `${metadata.namespace ?? ""}/${metadata.name ?? ""}@${metadata.resourceVersion ?? ""}`,
    )
    .sort();
}

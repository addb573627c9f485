import { readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { configMaps } from "../../src/kube/api/config-map.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { percentilesOf, type Percentiles } from "../attach-detach/percentiles.ts";
import { bindPod, givenVolume, NODE, type NodeCluster } from "./cluster.ts";

/** Pods whose config maps change without a pause while volumes mount: what they read of them, from the disk. */
export interface Content {
  /** From the answer to a change until the last pod that has the map sees it. */
  readonly update: Percentiles;
  readonly updates: number;
  /** Looks at both files of a pod, and how many showed two different versions: none may. */
  readonly looks: number;
  readonly torn: number;
  readonly volumesPublishedMs: number;
}

/** Pods that share a map: a change is written for each of them. */
const SHARING = 10;
const LOOK_EVERY_MS = 5;

const clock = createSystemClock();

export async function contentUnderLoad(
  cluster: NodeCluster,
  { readers, volumes }: { readonly readers: number; readonly volumes: number },
): Promise<Content> {
  const maps = Array.from({ length: Math.ceil(readers / SHARING) }, (_, n) => `map-${n}`);
  for (const name of maps)
    await cluster.client.create(configMaps, { metadata: { namespace: "default", name }, data: data(0) });
  const places = await Promise.all(
    Array.from({ length: readers }, (_, n) =>
      bindReader(cluster, `reader-${n}`, maps[n % maps.length] ?? ""),
    ),
  );
  const placesOf = (map: string) => places.filter((place) => place.map === map).map(({ path }) => path);
  const seen = { looks: 0, torn: 0 };
  for (const map of maps) await untilSeen(placesOf(map), 0, seen);

  const names = Array.from({ length: volumes }, (_, n) => `beside-content-${n}`);
  for (const name of names) await givenVolume(cluster, name);
  const beganMs = clock.now();
  const state = { mounting: true };
  const published = Promise.all(
    names.map((name) => bindPod(cluster, name).then(() => cluster.driver.done("publish", name))),
  ).then((all) => {
    state.mounting = false;
    return Math.max(...all) - beganMs;
  });
  const tookMs: number[] = [];
  for (let version = 1; state.mounting || version <= 2; version++)
    await Promise.all(
      maps.map(async (name) => {
        const ref = { namespace: "default", name };
        await cluster.client.patch(configMaps, ref, { type: "merge", value: { data: data(version) } });
        const answeredMs = clock.now();
        await untilSeen(placesOf(name), version, seen);
        tookMs.push(clock.now() - answeredMs);
      }),
    );
  return {
    update: percentilesOf(tookMs),
    updates: tookMs.length,
    ...seen,
    volumesPublishedMs: await published,
  };
}

function data(version: number) {
  return { a: String(version), b: String(version) };
}

async function bindReader(
  { client, rootDir }: NodeCluster,
  name: string,
  map: string,
): Promise<{ readonly map: string; readonly path: string }> {
  const { metadata } = await client.create(pods, {
    metadata: { namespace: "default", name },
    spec: {
      nodeName: NODE,
      automountServiceAccountToken: false,
      containers: [{ name: "main", image: "none", volumeMounts: [{ name: "conf", mountPath: "/conf" }] }],
      volumes: [{ name: "conf", configMap: { name: map } }],
    },
  });
  return {
    map,
    path: join(rootDir, "pods", metadata.uid ?? "", "volumes", "kubernetes.io~configmap", "conf"),
  };
}

/** Until every one of these pods sees this version; counts what it looked at. */
async function untilSeen(
  paths: readonly string[],
  version: number,
  seen: { looks: number; torn: number },
): Promise<void> {
  for (const path of paths)
    for (;;) {
      const { a, b } = await look(path);
      if (a !== undefined && b !== undefined) {
        seen.looks++;
        if (a !== b) seen.torn++;
      }
      if (a === String(version) && a === b) break;
      await sleep(LOOK_EVERY_MS);
    }
}

/** As a reader that wants both from one version does it: the link is followed once. Undefined where it moved meanwhile. */
async function look(path: string): Promise<{ a: string | undefined; b: string | undefined }> {
  const version = await readlink(join(path, "..data")).catch(() => undefined);
  if (version === undefined) return { a: undefined, b: undefined };
  const read = (file: string) => readFile(join(path, version, file), "utf8").catch(() => undefined);
  return { a: await read("a"), b: await read("b") };
}

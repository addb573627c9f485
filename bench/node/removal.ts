import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { configMaps } from "../../src/kube/api/config-map.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { secrets } from "../../src/kube/api/secret.ts";
import { percentilesOf, type Percentiles } from "../attach-detach/percentiles.ts";
import { deletePod, NODE, type NodeCluster } from "./cluster.ts";

/** A full node emptied at once: 110 pods with 4 volumes each. What the agent and its children take of the machine. */
export interface Removal {
  readonly pods: number;
  readonly volumes: number;
  readonly childrenMax: number;
  /** Of the agent alone. */
  readonly agentMibMax: number;
  /** Of the agent and its children together, at the worst look. */
  readonly rssMibMax: number;
  /** The same with pages that several of them share counted once. */
  readonly pssMibMax: number;
  readonly livez: Percentiles & { readonly maxMs: number };
  readonly tookMs: number;
}

export const CHILDREN_MAX = 8;
export const MEMORY_MIB_MAX = 200;
export const LIVEZ_MS_MAX = 200;

/** Two of them lie on a tmpfs each, so that half of the removals unmount too. */
const VOLUMES = [
  { name: "scratch", emptyDir: {} },
  { name: "memory", emptyDir: { medium: "Memory" } },
  { name: "settings", configMap: { name: "settings" } },
  { name: "keys", secret: { secretName: "keys" } },
];
const LOOK_EVERY_MS = 10;
/** A probe of a kubelet asks once in ten seconds; this one asks so often that no pause of the agent escapes it. */
const ASK_EVERY_MS = 20;

const clock = createSystemClock();

export async function removal(cluster: NodeCluster, count: number): Promise<Removal> {
  const { client, rootDir } = cluster;
  const inDefault = { namespace: "default" };
  await client.create(configMaps, { metadata: { ...inDefault, name: "settings" }, data: { a: "1", b: "2" } });
  await client.create(secrets, { metadata: { ...inDefault, name: "keys" }, data: { key: "c2VjcmV0" } });
  const names = Array.from({ length: count }, (_, n) => `emptied-${n}`);
  const directories = await Promise.all(names.map((name) => bind(cluster, name)));
  await until(() => directories.every((directory) => existsSync(join(directory, KEY_FILE))));

  const looking = new AbortController();
  const memory = watchTree(cluster.agentPid(), looking.signal);
  const livez = askLivez(cluster.endpoint, looking.signal);
  livez.catch(() => undefined);
  const beganMs = clock.now();
  await Promise.all(names.map((name) => deletePod(cluster, name)));
  await until(() => directories.every((directory) => !existsSync(directory)));
  const tookMs = clock.now() - beganMs;
  looking.abort();
  const left = (await readdir(join(rootDir, "pods"))).length;
  if (left > 0) throw new Error(`${left} directories of pods are left`);
  return { pods: count, volumes: count * VOLUMES.length, ...(await memory), livez: await livez, tookMs };
}

const KEY_FILE = "volumes/kubernetes.io~secret/keys/key";

async function bind({ client, rootDir }: NodeCluster, name: string): Promise<string> {
  const { metadata } = await client.create(pods, {
    metadata: { namespace: "default", name },
    spec: {
      nodeName: NODE,
      automountServiceAccountToken: false,
      containers: [
        {
          name: "main",
          image: "none",
          volumeMounts: VOLUMES.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
        },
      ],
      volumes: VOLUMES,
    },
  });
  return join(rootDir, "pods", metadata.uid ?? "");
}

async function until(isTrue: () => boolean): Promise<void> {
  const untilMs = clock.now() + 300_000;
  while (!isTrue()) {
    if (clock.now() > untilMs) throw new Error("the node was not emptied within 5 min");
    await sleep(LOOK_EVERY_MS);
  }
}

/** The agent and everything below it, again and again. */
async function watchTree(
  pid: number,
  signal: AbortSignal,
): Promise<Pick<Removal, "childrenMax" | "agentMibMax" | "rssMibMax" | "pssMibMax">> {
  let childrenMax = 0;
  let agentKibMax = 0;
  let rssKibMax = 0;
  let pssKibMax = 0;
  for (let look = 0; !signal.aborted; look++) {
    const all = await treeOf(pid);
    childrenMax = Math.max(childrenMax, all.length - 1);
    rssKibMax = Math.max(rssKibMax, await sumOf(await withMemory(all), "statm", rssKib));
    agentKibMax = Math.max(agentKibMax, await sumOf([pid], "statm", rssKib));
    // Costs the kernel a walk over all of its pages, so not as often.
    if (look % 20 === 0)
      pssKibMax = Math.max(
        pssKibMax,
        await sumOf(all, "smaps_rollup", (text) => Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0)),
      );
    await sleep(LOOK_EVERY_MS);
  }
  const mib = (kib: number) => Math.round(kib / 1_024);
  return { childrenMax, agentMibMax: mib(agentKibMax), rssMibMax: mib(rssKibMax), pssMibMax: mib(pssKibMax) };
}

const rssKib = (statm: string) => 4 * Number(statm.split(" ")[1]);

async function treeOf(pid: number): Promise<readonly number[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "")),
  );
  const children = lists.flatMap((list) => list.trim().split(" ")).filter((each) => each !== "");
  return [pid, ...(await Promise.all(children.map((child) => treeOf(Number(child))))).flat()];
}

/** A child that has not become its program yet has the agent's own pages, under the agent's own command line. */
async function withMemory([pid = 0, ...children]: readonly number[]): Promise<readonly number[]> {
  const commandOf = (one: number) => readFile(`/proc/${one}/cmdline`, "utf8").catch(() => "");
  const own = await commandOf(pid);
  const commands = await Promise.all(children.map(commandOf));
  return [pid, ...children.filter((_, at) => commands[at] !== own)];
}

async function sumOf(
  pids: readonly number[],
  file: string,
  kibOf: (text: string) => number,
): Promise<number> {
  const texts = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
  );
  return texts.filter((text) => text !== "").reduce((sum, text) => sum + kibOf(text), 0);
}

async function askLivez(endpoint: string, signal: AbortSignal): Promise<Removal["livez"]> {
  const tookMs: number[] = [];
  while (!signal.aborted) {
    const beganMs = clock.now();
    await askOnce(`${endpoint}/livez`);
    tookMs.push(clock.now() - beganMs);
    await sleep(ASK_EVERY_MS);
  }
  return { ...percentilesOf(tookMs), maxMs: Math.max(...tookMs) };
}

/** A connection of its own each time, as probes have. */
function askOnce(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response) => {
      response.resume().once("error", reject);
      response.once("end", () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`/livez: ${response.statusCode ?? 0}`)),
      );
    });
    request.once("error", reject);
  });
}

export function linesOfRemoval(found: Removal): readonly string[] {
  const { p50Ms, p99Ms, maxMs } = found.livez;
  return [
    `${found.pods} pods with ${found.volumes} volumes deleted at once: gone after ${(found.tookMs / 1_000).toFixed(1)} s`,
    `  at most ${found.childrenMax} children; agent ${found.agentMibMax} MiB, with children ${found.rssMibMax} MiB (shared pages once: ${found.pssMibMax} MiB)`,
    `  /livez:  p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)}, max ${maxMs.toFixed(1)} ms`,
  ];
}

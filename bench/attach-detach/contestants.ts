import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../child.ts";

/** A controller at work on the cluster, as a process that is looked at from outside: both kinds in the same way. */
export interface Contestant {
  readonly pid: number;
  /** Requests so far by `verb resource`; undefined where nobody tells. */
  requests(): Promise<ReadonlyMap<string, number> | undefined>;
  end(): Promise<void>;
}

const HEAP_MB = 4_096;
const DEADLINE_MS = 60_000;

/** Ours, as `mooring controller` runs it. */
export async function startOurs(kubeconfig: string): Promise<Contestant> {
  const port = await freePort();
  const child = startChild<{ pid: number }>({
    role: "attach-detach-controller",
    input: { kubeconfig, port },
    heapMb: HEAP_MB,
    deadlineMs: DEADLINE_MS,
  });
  const { pid } = await child.answer;
  return { pid, requests: () => scrape(port), end: () => child.end() };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function scrape(port: number): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = new Map<string, number>();
  for (const line of text.split("\n")) {
    const found = /^mooring_client_requests_total\{verb="(\w+)",resource="([\w.]+)".*\} (\d+)/.exec(line);
    if (found === null) continue;
    const what = `${found[1] ?? ""} ${found[2] ?? ""}`;
    counts.set(what, (counts.get(what) ?? 0) + Number(found[3]));
  }
  return counts;
}

/** The real one, as the only controller of its process and with a rate it never reaches. */
export async function startPeer(binary: string, kubeconfig: string): Promise<Contestant> {
  const child = spawn(
    binary,
    [
      `--kubeconfig=${kubeconfig}`,
      "--controllers=persistentvolume-attach-detach-controller",
      "--leader-elect=false",
      "--kube-api-qps=5000",
      "--kube-api-burst=5000",
      "--secure-port=0",
      "--v=0",
    ],
    { stdio: ["ignore", "ignore", "ignore"] },
  );
  const ended = once(child, "exit");
  // Long enough to notice a flag that it does not know.
  const early = await Promise.race([ended, sleep(2_000)]);
  if (early !== undefined || child.pid === undefined) throw new Error(`${binary} ended at once`);
  return {
    pid: child.pid,
    requests: async () => undefined,
    async end() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

export interface Usage {
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly rssPeakBytes: number;
}

/** Clock ticks of /proc are 10 ms on every Linux that Node.js runs on. */
const TICK_MS = 10;

export async function usageOf({ pid }: Contestant): Promise<Usage> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // Behind the name, which may contain anything; utime and stime are the 14th and 15th field of all.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? NaN) * 1_024;
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
    rssBytes: bytes("VmRSS"),
    rssPeakBytes: bytes("VmHWM"),
  };
}

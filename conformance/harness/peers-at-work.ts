import { readFile } from "node:fs/promises";
import { request } from "node:https";
import type { Binaries } from "../peers/binaries.ts";
import { freePort, type Stage } from "./stage.ts";

/**
 * kube-scheduler and kube-controller-manager as they come: leader election, every controller that is on by default, the
 * rate limits of a release. Only where they listen and keep their certificates is said to them, how much they tell, and
 * who they are.
 */

/** The user that a server's own roles are made for. */
export const SCHEDULER_USER = "system:kube-scheduler";

export interface PeerAtWork {
  readonly name: string;
  /** Its own page: `/healthz`, `/readyz?verbose`. */
  page(path: string): Promise<{ readonly status: number; readonly body: string }>;
  said(): Promise<string>;
}

interface PeerTask {
  readonly binaries: Binaries;
  readonly kubeconfig: string;
  readonly flags?: readonly string[];
}

export async function startPeer(
  stage: Stage,
  name: "kube-scheduler" | "kube-controller-manager",
  { binaries, kubeconfig, flags = [] }: PeerTask,
): Promise<PeerAtWork> {
  const programs = await binaries.need(name);
  const port = await freePort();
  const program = stage.start(name, programs[name] ?? "", [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${stage.path(`${name}-certs`)}`,
    // Which caches are waited for, and which are there.
    "--v=2",
    ...flags,
  ]);
  return { name, page: (path) => pageOf(port, path), said: () => readFile(program.log, "utf8") };
}

/** Its certificate is one that it made for itself a moment ago, on loopback. */
function pageOf(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const call = request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, timeout: 5_000 });
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error(`${path}: no answer within 5 s`)));
    call.on("response", (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (part: string) => (body += part));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    call.end();
  });
}

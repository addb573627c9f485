import { readdir, readFile, stat } from "node:fs/promises";
import { connect } from "node:net";
import { basename, join } from "node:path";
import { ProcessError } from "./errors.ts";

/**
 * No agent where a kubelet works: each would take down what the other mounted, and each believes of the other's pods that
 * they are gone. What counts is a kubelet that is alive. Files that one left prove nothing: the agent may take over from it.
 */
export interface KubeletCheck {
  /** By whatever name: it is known by its inode. */
  readonly rootDir: string;
  /** A kubelet with a root directory of its own is not in the way: clusters in containers of this machine, tests. */
  readonly allowOnMachine: boolean;
  /** Another /proc than this machine's. */
  readonly procDir?: string;
}

/** Programs that are a kubelet, or have one built in. As the kernel cuts them: 15 characters. */
const NAMES: ReadonlySet<string> = new Set(["kubelet", "kubelite", "hyperkube", "k3s-server", "k3s-agent"]);
const DEFAULT_ROOT = "/var/lib/kubelet";
/** In the root directory; a kubelet listens there as long as it lives, and leaves the file when it is killed. */
const SOCKETS = ["pod-resources/kubelet.sock", "device-plugins/kubelet.sock"];
const CONNECT_MS_MAX = 1_000;

interface Kubelet {
  readonly pid: number;
  readonly command: string;
  readonly rootDir: string;
  /** Whether its root directory is the agent's, by whatever name and in whatever mount namespace. */
  readonly sharesRoot: boolean;
}

export async function refuseKubelet(check: KubeletCheck): Promise<void> {
  const { rootDir, allowOnMachine } = check;
  const found = await findKubelets(check);
  const sharing = found.find(({ sharesRoot }) => sharesRoot);
  if (sharing)
    throw refusal(
      `${describe(sharing)} uses ${rootDir}: it would take down what the agent mounts, and the agent what it mounts`,
      "stop the kubelet and keep it from starting, or give another --root-dir and --node-name",
    );
  for (const socket of SOCKETS.map((path) => join(rootDir, path)))
    if (await answers(socket))
      throw refusal(
        `something answers at ${socket}, which a kubelet makes: a kubelet uses ${rootDir}`,
        "stop the kubelet and keep it from starting, or give another --root-dir and --node-name",
      );
  const [other] = found;
  if (other && !allowOnMachine)
    throw refusal(
      `${describe(other)} runs on this machine: a machine is one node, and this one has a kubelet that mounts its volumes`,
      "stop the kubelet; or, where it belongs to a cluster in a container of this machine, say --allow-kubelet-on-machine",
    );
}

function refusal(seen: string, wayOut: string): ProcessError {
  return new ProcessError("KubeletHere", `${seen}; ${wayOut}`);
}

function describe({ pid, command, rootDir }: Kubelet): string {
  return `process ${pid} (${command}, root directory ${rootDir})`;
}

async function findKubelets({ rootDir, procDir = "/proc" }: KubeletCheck): Promise<readonly Kubelet[]> {
  const mine = await identityOf(rootDir);
  const found: Kubelet[] = [];
  for (const pid of (await readdir(procDir)).filter((name) => /^\d+$/.test(name))) {
    const directory = join(procDir, pid);
    // Of every process, readable without asking for its memory, which may hang.
    const name = (await readFile(join(directory, "comm"), "utf8").catch(() => "")).trim();
    if (!NAMES.has(name)) continue;
    const args = (await readFile(join(directory, "cmdline"), "utf8").catch(() => "")).split("\0");
    // A zombie has no command line, and mounts nothing.
    if (args.join("") === "") continue;
    const root = rootDirOf(args);
    const theirs = await identityOf(join(directory, "root", root));
    const sharesRoot = theirs === undefined ? root === rootDir : theirs === mine;
    const command = [basename(args[0] ?? name), ...args.slice(1)].join(" ").trim().slice(0, 200);
    found.push({ pid: Number(pid), command, rootDir: root, sharesRoot });
  }
  return found;
}

function rootDirOf(args: readonly string[]): string {
  for (const [at, arg] of args.entries()) {
    const match = /^--root-dir=(.+)$/.exec(arg);
    if (match?.[1] !== undefined) return match[1];
    if (arg === "--root-dir") return args[at + 1] ?? DEFAULT_ROOT;
  }
  return DEFAULT_ROOT;
}

/** Undefined where it is not there, or may not be looked at. */
async function identityOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev}/${found.ino}`;
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_MS_MAX, () => end(false));
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });
}

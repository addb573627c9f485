import { spawn, type ChildProcess } from "node:child_process";
import type { Clock, Timer } from "../base/clock.ts";
import { HostError } from "./host.ts";
import type { HostProcesses, NamespaceMount, ProcessScan, ProcessScanRequest } from "./host-processes.ts";
import { processesChildMain, type Scanned } from "./linux-processes-child.ts";
import { parseMountInfo } from "./mount-table.ts";

/**
 * Looks at the processes of this machine in a child that can be killed: what hangs in the kernel there holds nothing here.
 * The child is started by the first look and ends when nobody has looked for a while.
 */
export interface LinuxProcesses extends HostProcesses {
  close(): void;
}

/** 5,000 processes in 100 namespaces take 0.3 s; nothing that hangs ends by itself. */
const SCAN_MS_MAX = 10_000;
/** Pods that go one after the other find it warm; a start takes 50 ms. */
const IDLE_MS = 10_000;
const DOING = "look at the processes of this machine";

export function createLinuxProcesses(
  { clock }: { readonly clock: Clock },
  { timeoutMs = SCAN_MS_MAX }: { readonly timeoutMs?: number } = {},
): LinuxProcesses {
  let idle: { readonly child: ChildProcess; readonly timer: Timer } | undefined;

  function take(): ChildProcess {
    idle?.timer.cancel();
    const child = idle?.child ?? spawnChild();
    idle = undefined;
    child.removeAllListeners();
    child.channel?.ref();
    return child;
  }

  function giveBack(child: ChildProcess): void {
    child.channel?.unref();
    if (idle || !child.connected) {
      child.kill("SIGKILL");
      return;
    }
    const forget = () => {
      if (idle?.child !== child) return;
      idle.timer.cancel();
      idle = undefined;
    };
    const timer = clock.after(IDLE_MS, () => {
      forget();
      child.kill("SIGKILL");
    });
    idle = { child, timer };
    child.once("exit", forget).once("error", forget);
  }

  return {
    async scan(request) {
      return toScan(await ask(clock, take(), { request, timeoutMs, giveBack }));
    },
    close() {
      idle?.timer.cancel();
      idle?.child.kill("SIGKILL");
      idle = undefined;
    },
  };
}

interface Asking {
  readonly request: ProcessScanRequest;
  readonly timeoutMs: number;
  readonly giveBack: (child: ChildProcess) => void;
}

interface Reply {
  readonly value?: Scanned;
  readonly error?: { readonly code: string; readonly message: string };
}

function ask(clock: Clock, child: ChildProcess, { request, timeoutMs, giveBack }: Asking): Promise<Scanned> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void, { reusable }: { readonly reusable: boolean }) => {
      timer.cancel();
      child.removeAllListeners();
      // A kill that comes late finds no listener left; an error event without one would end the agent.
      child.on("error", () => undefined);
      if (reusable) giveBack(child);
      else child.kill("SIGKILL");
      settle();
    };
    const fail = (error: HostError) => end(() => reject(error), { reusable: false });
    const timer = clock.after(timeoutMs, () =>
      fail(new HostError("TimedOut", `${DOING}: no answer within ${timeoutMs} ms`)),
    );
    child.once("message", (message) => {
      const { value, error } = message as Reply;
      end(
        () => {
          if (value) resolve(value);
          else reject(new HostError("NotPermitted", `${DOING}: ${error?.message ?? "no answer"}`));
        },
        { reusable: true },
      );
    });
    child.once("exit", () => fail(new HostError("Failed", `${DOING}: the process that looked ended`)));
    child.once("error", (cause) => fail(new HostError("Failed", `${DOING}: ${cause.message}`, { cause })));
    child.send(request);
  });
}

function spawnChild(): ChildProcess {
  // Bundlers wrap named functions in a helper that text taken out of its module does not have.
  const text = `const __name = (fn) => fn; (${String(processesChildMain)})()`;
  const child = spawn(process.execPath, ["--eval", text], {
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: {},
  });
  // A child that hangs in the kernel must not keep this process from ending.
  child.unref();
  return child;
}

function toScan({ namespaces, pods, openers }: Scanned): ProcessScan {
  return {
    namespaces: namespaces.map(({ lines, ...namespace }) => ({
      ...namespace,
      mounts: lines.flatMap((line) => toMount(line) ?? []),
    })),
    pods,
    openers,
  };
}

/** `36 35 7:3 / /mnt rw shared:1 master:2 - ext4 /dev/loop3 rw`. */
function toMount(line: string): NamespaceMount | undefined {
  const [point] = parseMountInfo(line);
  if (!point) return undefined;
  const [id, parentId] = line.split(" ", 2).map(Number);
  const optional = line.slice(0, line.indexOf(" - "));
  const group = (name: string) => new RegExp(` ${name}:(\\d+)`).exec(optional)?.[1];
  const [peers, master] = [group("shared"), group("master")];
  const { deviceNumber, root, path, source } = point;
  return {
    id: id ?? 0,
    parentId: parentId ?? 0,
    deviceNumber,
    root,
    path,
    source,
    ...(peers !== undefined && { peers: Number(peers) }),
    ...(master !== undefined && { master: Number(master) }),
  };
}

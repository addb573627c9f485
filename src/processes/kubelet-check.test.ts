import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { refuseKubelet } from "./kubelet-check.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "kubelet-check-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let count = 0;

/** A machine's processes, as /proc shows them; `root` is where a process sees its own `/`. */
function givenProcesses(
  processes: Readonly<Record<number, { comm: string; args?: readonly string[]; root?: string }>>,
): { readonly procDir: string; readonly rootDir: string } {
  const machine = join(base, String(count++));
  const procDir = join(machine, "proc");
  const rootDir = join(machine, "kubelet");
  for (const path of [procDir, rootDir, join(machine, "other")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(procDir, "uptime"), "1 1\n");
  for (const [pid, { comm, args = [], root = "/" }] of Object.entries(processes)) {
    mkdirSync(join(procDir, pid));
    writeFileSync(join(procDir, pid, "comm"), `${comm}\n`);
    writeFileSync(
      join(procDir, pid, "cmdline"),
      args.map((arg) => `${arg.replaceAll("ROOT", machine)}\0`).join(""),
    );
    symlinkSync(root, join(procDir, pid, "root"));
  }
  return { procDir, rootDir };
}

const kubelet = (...args: readonly string[]) => ({ comm: "kubelet", args: ["/usr/bin/kubelet", ...args] });

describe("an agent does not start", () => {
  const SPELLINGS = {
    "as one argument": ["--root-dir=ROOT/kubelet"],
    "as two": ["--root-dir", "ROOT/kubelet"],
    "with a slash at the end": ["--root-dir=ROOT/kubelet/"],
    "by way of a directory beside it": ["--root-dir=ROOT/other/../kubelet"],
  };
  for (const [spelling, args] of Object.entries(SPELLINGS))
    test(`where a kubelet uses its root directory, given ${spelling}; nothing allows that`, async () => {
      const { procDir, rootDir } = givenProcesses({ 812: kubelet("--v=2", ...args) });

      for (const allowOnMachine of [false, true])
        await expect(refuseKubelet({ rootDir, allowOnMachine, procDir })).rejects.toThrow(
          /process 812 \(kubelet --v=2 --root-dir.*uses .*\/kubelet: .*stop the kubelet.*another --root-dir/,
        );
    });

  test("where the agent's own way there is a link", async () => {
    const { procDir, rootDir } = givenProcesses({ 812: kubelet("--root-dir=ROOT/kubelet") });
    symlinkSync(rootDir, `${rootDir}-link`);

    await expect(
      refuseKubelet({ rootDir: `${rootDir}-link`, allowOnMachine: true, procDir }),
    ).rejects.toThrow("process 812");
  });

  test("where a kubelet in a container sees the same directory under another name", async () => {
    const { procDir, rootDir } = givenProcesses({});
    mkdirSync(join(procDir, "77"));
    writeFileSync(join(procDir, "77", "comm"), "kubelet\n");
    writeFileSync(join(procDir, "77", "cmdline"), "kubelet\0--root-dir=/kubelet\0");
    symlinkSync(dirname(rootDir), join(procDir, "77", "root"));

    await expect(refuseKubelet({ rootDir, allowOnMachine: true, procDir })).rejects.toThrow("process 77");
  });

  test("where something answers at the sockets of a kubelet, although no process of that name is seen", async () => {
    const { procDir, rootDir } = givenProcesses({ 1: { comm: "init", args: ["init"] } });
    mkdirSync(join(rootDir, "pod-resources"));
    const server = createServer().listen(join(rootDir, "pod-resources", "kubelet.sock"));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));

    await expect(refuseKubelet({ rootDir, allowOnMachine: true, procDir })).rejects.toThrow(
      /something answers at .*pod-resources\/kubelet\.sock/,
    );
  });

  for (const comm of ["kubelet", "kubelite", "hyperkube", "k3s-server", "k3s-agent"])
    test(`where ${comm} runs on the machine with another root directory, unless that is allowed`, async () => {
      const { procDir, rootDir } = givenProcesses({ 9: { comm, args: [comm, "--root-dir=ROOT/other"] } });

      await expect(refuseKubelet({ rootDir, allowOnMachine: false, procDir })).rejects.toThrow(
        /process 9 \(.*runs on this machine.*--allow-kubelet-on-machine/,
      );
      await refuseKubelet({ rootDir, allowOnMachine: true, procDir });
    });
});

describe("an agent starts", () => {
  test("where kubelets only were: their files, a socket nobody listens at, a zombie, other programs with such arguments", async () => {
    const { procDir, rootDir } = givenProcesses({
      5: { comm: "kubelet" },
      6: { comm: "vim", args: ["vim", "--root-dir=ROOT/kubelet", "kubelet"] },
    });
    for (const file of ["cpu_manager_state", "memory_manager_state", "pod-resources/kubelet.sock"]) {
      mkdirSync(dirname(join(rootDir, file)), { recursive: true });
      writeFileSync(join(rootDir, file), "");
    }

    await refuseKubelet({ rootDir, allowOnMachine: false, procDir });
  });

  test("where its root directory is not there yet", async () => {
    const { procDir, rootDir } = givenProcesses({});

    await refuseKubelet({ rootDir: `${rootDir}/not/yet`, allowOnMachine: false, procDir });
  });
});

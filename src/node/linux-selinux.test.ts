import { expect, test } from "vitest";
import { createLogger } from "../base/log.ts";
import { createStage } from "./plugins/plugins.testing.ts";
import { labelPluginDirectories, readSelinux } from "./linux-selinux.ts";

/** A machine whose files say that it has SELinux; the one that tests run on need not. */
async function given({
  contexts = 'process = "a:b:c:s0"\nfile = "system_u:object_r:container_file_t:s0"\n',
} = {}) {
  const { machine } = createStage();
  const write = async (path: string, text: string) => {
    await machine.files.makeDirectories(path.slice(0, path.lastIndexOf("/")), 0o755);
    await machine.files.writeFile(path, Buffer.from(text), 0o644);
  };
  await write("/sys/fs/selinux/enforce", "1");
  await write(
    "/etc/selinux/config",
    "# SELINUXTYPE= can be one of\nSELINUX=enforcing\nSELINUXTYPE=targeted\n",
  );
  await write("/etc/selinux/targeted/contexts/lxc_contexts", contexts);
  const lines: string[] = [];
  const log = createLogger((_level, message) => void lines.push(message));
  return { machine, log, lines, selinux: await readSelinux({ host: machine, log }) };
}

test("the policy's label of files of containers gets the user and level of the options", async () => {
  const { selinux } = await given();

  expect(selinux.enabled).toBe(true);
  expect(selinux.fileLabel({ level: "s0:c1" })).toBe("system_u:object_r:container_file_t:s0:c1");
  expect(selinux.fileLabel({ level: "s0:c1", user: "u", role: "r", type: "spc_t" })).toBe(
    "u:object_r:container_file_t:s0:c1",
  );
  expect(selinux.fileLabel({ type: "spc_t" })).toBe("");
});

test("a policy that names no such label is told about, and translates nothing", async () => {
  const { selinux, lines } = await given({ contexts: "" });

  expect(lines).toEqual(["SELinux is on, but its policy names no label for files of containers"]);
  expect(selinux.fileLabel({ level: "s0" })).toBeUndefined();
});

test("directories of drivers are labelled; a failure is told and stops nothing", async () => {
  const { machine, log, lines, selinux } = await given();
  const runs: string[] = [];
  machine.addProgram("chcon", (args) => {
    runs.push(args.join(" "));
    return { exitCode: runs.length === 1 ? 1 : 0, stdout: "", stderr: "no" };
  });

  await labelPluginDirectories({ host: machine, log, selinux }, { plugins: "/p", registry: "/r" });

  expect(runs).toEqual([
    "system_u:object_r:container_file_t:s0 /p",
    "system_u:object_r:container_file_t:s0 /r",
  ]);
  expect(lines).toEqual(["SELinux label not set"]);
});

test("a machine without it runs no program and has no labels", async () => {
  const { machine } = createStage();
  const log = createLogger(() => undefined);

  const selinux = await readSelinux({ host: machine, log });
  await labelPluginDirectories({ host: machine, log, selinux }, { plugins: "/p", registry: "/r" });

  expect(selinux.enabled).toBe(false);
});

import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createFlexHost } from "../../src/processes/flex-host.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";
import type { NodeName, VolumeName } from "../../src/volumes/names.ts";
import { createFlexDrivers } from "../../src/volumes/plugins/flex-drivers.ts";
import type { VolumeSpec } from "../../src/volumes/spec.ts";

/** A driver as people write them: a shell script that keeps its attachments as files beside it. */
const DRIVER = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$@" >> calls
name() { printf '%s' "$1" | sed 's/.*"kubernetes.io\\/pvOrVolumeName":"\\([^"]*\\)".*/\\1/'; }
case "$1" in
  init) echo '{"status":"Success","capabilities":{"attach":true}}' ;;
  attach) touch "$(name "$2").on.$3"; echo '{"status":"Success","device":"/dev/disk/'"$(name "$2")"'"}' ;;
  isattached)
    [ -e "$(name "$2").on.$3" ] && echo '{"status":"Success","attached":true}' || echo '{"status":"Success","attached":false}' ;;
  detach)
    rm "$2.on.$3" 2>/dev/null || { echo '{"status":"Failure","message":"not attached"}'; exit 1; }
    echo "a word on stderr" >&2
    echo '{"status":"Success"}' ;;
  *) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;

/** One turn of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "flex-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

async function install(name: string, script: string, mode = 0o755): Promise<string> {
  const file = join(directory, name, name.split("~").at(-1) ?? "");
  await mkdir(join(directory, name), { recursive: true });
  await writeFile(file, script);
  await chmod(file, mode);
  return file;
}

function given({ clock = createSystemClock() }: { clock?: Clock } = {}) {
  const host = createFlexHost(
    { clock, runProgram: (run) => createLocalWorld().runProgram(run) },
    { directory, env: process.env },
  );
  const drivers = createFlexDrivers({ host, clock, log: silentLogger });
  const { signal } = new AbortController();
  return { host, drivers, signal, names: () => drivers.plugins().map(({ name }) => name) };
}

const SPEC: VolumeSpec = {
  kind: "persistent",
  volume: {
    metadata: { name: "pv-1" },
    spec: { flexVolume: { driver: "acme/disk", options: { note: `"quotes" $(touch pwned) 'and' spaces` } } },
  },
  readOnly: false,
  migrated: "none",
};

test("a shell script attaches, is asked, and detaches; nothing of it goes through a shell of ours", async () => {
  const file = await install("acme~disk", DRIVER);
  const { drivers, signal } = given();
  await drivers.probe(signal);
  const plugin = drivers.plugins()[0]!;
  const at = {
    volume: "acme/disk/pv-1" as VolumeName,
    spec: SPEC,
    node: "node-a" as NodeName,
    signal,
    pluginVolume: "pv-1",
  };

  expect(plugin.needsAttach(SPEC)).toBe(true);
  expect(await plugin.verify(at)).toBe("not-attached");
  expect(await plugin.attach(at)).toBe("/dev/disk/pv-1");
  expect(await plugin.verify(at)).toBe("attached");
  expect(await plugin.verify({ ...at, node: "node-b" as NodeName })).toBe("not-attached");
  await plugin.detach(at);
  expect(await plugin.verify(at)).toBe("not-attached");
  await expect(plugin.detach(at)).rejects.toThrow(
    `DriverFailed: FlexVolume driver acme/disk, detach, volume pv-1 on node node-a: status "Failure", "not attached" (exit code 1)`,
  );

  const calls = await readFile(join(file, "../calls"), "utf8");
  expect(calls.split("\n")[2]).toBe(
    `attach {"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"pv-1","kubernetes.io/readwrite":"rw","note":"\\"quotes\\" $(touch pwned) 'and' spaces"} node-a`,
  );
  await expect(readFile(join(file, "../pwned"))).rejects.toMatchObject({ code: "ENOENT" });
});

describe("the directory", () => {
  test("that is missing is empty; drivers that come, change and go are seen by the next look", async () => {
    await rm(directory, { recursive: true });
    const { drivers, signal, names } = given();
    await drivers.probe(signal);
    expect(names()).toEqual([]);

    await install("acme~disk", DRIVER);
    await drivers.probe(signal);
    expect(names()).toEqual(["acme/disk"]);
    const [first] = drivers.plugins();
    await drivers.probe(signal);
    expect(drivers.plugins()[0]).toBe(first);

    await install("acme~disk", DRIVER.replace(`"attach":true`, `"attach":false`));
    await drivers.probe(signal);
    expect(drivers.plugins()[0]?.needsAttach(SPEC)).toBe(false);

    await rm(join(directory, "acme~disk"), { recursive: true });
    await drivers.probe(signal);
    expect(names()).toEqual([]);
  });

  test("may hold links, hidden directories, files and half-installed drivers", async () => {
    await mkdir(join(directory, "elsewhere"));
    await writeFile(join(directory, "elsewhere", "disk"), DRIVER, { mode: 0o755 });
    await symlink(join(directory, "elsewhere"), join(directory, "acme~disk"));
    await install(".acme~new", DRIVER);
    await mkdir(join(directory, "acme~empty"));
    await writeFile(join(directory, "README"), "");
    await symlink("loop~x", join(directory, "loop~x"));
    const { drivers, signal, names } = given();

    await drivers.probe(signal);

    expect(names()).toEqual(["acme/disk"]);
  });
});

describe("a program that is not run", () => {
  for (const [what, mode, why] of [
    ["writable by everybody", 0o757, "writable by everybody"],
    ["not executable", 0o644, "not executable"],
  ] as const) {
    test(what, async () => {
      const file = await install("acme~disk", DRIVER, mode);
      const { host, drivers, signal, names } = given();

      await drivers.probe(signal);

      expect(names()).toEqual([]);
      expect((await host.list())[0]?.refused).toContain(why);
      const run = host.exec(file, ["init"], { deadlineMs: 5_000, signal });
      await expect(run).rejects.toMatchObject({ code: "EACCES" });
      await expect(readFile(join(file, "../calls"))).rejects.toMatchObject({ code: "ENOENT" });
    });
  }

  test("in a directory where everybody may put another; fixed, it is run", async () => {
    await install("acme~disk", DRIVER);
    const { drivers, signal, names } = given();
    await chmod(join(directory, "acme~disk"), 0o777);
    await drivers.probe(signal);
    expect(names()).toEqual([]);

    await chmod(join(directory, "acme~disk"), 0o755);
    await drivers.probe(signal);
    expect(names()).toEqual(["acme/disk"]);
  });

  test("was fine when it was found and is not any more", async () => {
    const file = await install("acme~disk", DRIVER);
    const { drivers, signal } = given();
    await drivers.probe(signal);
    const plugin = drivers.plugins()[0]!;

    await chmod(file, 0o777);

    const at = { volume: "acme/disk/pv-1" as VolumeName, spec: SPEC, node: "node-a" as NodeName, signal };
    await expect(plugin.attach(at)).rejects.toThrow(/BadDriver: .*acme\/disk, attach.*writable by everybody/);
  });
});

describe("a driver that does not end", () => {
  /** Says that it runs by making a file, then waits in a child of its own, whose number it left there. */
  const HANGS = `#!/bin/sh
sleep 1000 &
echo $! > "$(dirname "$0")/started.tmp"
mv "$(dirname "$0")/started.tmp" "$(dirname "$0")/started"
wait
`;

  async function childOf(file: string): Promise<number> {
    const read = () => readFile(join(file, "../started"), "utf8").catch(() => undefined);
    let text = await read();
    for (; text === undefined; text = await read()) await turn();
    return Number(text);
  }

  /** Its files are closed, which is what ends the run, a moment before the kernel calls it dead. */
  async function untilDead(pid: number): Promise<void> {
    while (await isAlive(pid)) await turn();
  }

  /** A process that was killed may be a zombie for a moment, or for ever where nobody reaps orphans. */
  async function isAlive(pid: number): Promise<boolean> {
    const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
    return text !== undefined && !/\) [ZX] /.test(text);
  }

  test("is killed with its children when the caller gives up", async () => {
    const file = await install("acme~disk", HANGS);
    const { host } = given();
    const abort = new AbortController();
    const run = host.exec(file, ["attach"], { deadlineMs: 60_000, signal: abort.signal });
    run.catch(() => undefined);
    const child = await childOf(file);
    expect(await isAlive(child)).toBe(true);

    abort.abort(new Error("no longer wanted"));

    await expect(run).rejects.toThrow("no longer wanted");
    await untilDead(child);
  });

  test("is killed with its children at its deadline", async () => {
    const file = await install("acme~disk", HANGS);
    // The deadline comes when the test says so: a real one would race with the start of the process.
    let onDeadline = (): void => undefined;
    const clock: Clock = {
      ...createSystemClock(),
      after: (_, callback) => {
        onDeadline = callback;
        return { cancel: () => undefined };
      },
    };
    const { host, signal } = given({ clock });
    const run = host.exec(file, ["attach"], { deadlineMs: 120_000, signal });
    run.catch(() => undefined);
    const child = await childOf(file);

    onDeadline();

    await expect(run).rejects.toMatchObject({ code: "ETIMEDOUT" });
    await untilDead(child);
  });

  test("of writing is stopped at 64 KiB", async () => {
    const file = await install("acme~disk", "#!/bin/sh\nyes\n");
    const { host, signal } = given();

    const run = host.exec(file, ["init"], { deadlineMs: 30_000, signal });

    await expect(run).rejects.toMatchObject({ code: "EFBIG" });
  });
});

import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { writeBlock } from "./disks.ts";
import { createMemoryHost, type MemoryHost } from "./host.ts";

const DIR = "/var/lib/kubelet";
const SEEDS = 60;

interface Stage {
  readonly host: MemoryHost;
  readonly scheduler: SimScheduler;
}

async function machine(): Promise<Stage> {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const host = createMemoryHost({ clock: scheduler.createClock() });
  await host.files.makeDirectories(DIR, 0o755);
  host.sync("/");
  return { host, scheduler };
}

const write = ({ files }: MemoryHost, path: string, text: string) =>
  files.writeFile(path, Buffer.from(text), 0o644);

/** What is read back after the power failed, over many seeds: each outcome once, sorted. */
async function outcomes(
  work: (host: MemoryHost, stage: Stage) => Promise<void>,
  look: (host: MemoryHost) => Promise<string>,
  crash: (host: MemoryHost, seed: number) => void = (host, seed) =>
    void host.crash({ random: createSeededRandom(seed) }),
): Promise<readonly string[]> {
  const seen = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const stage = await machine();
    await work(stage.host, stage);
    crash(stage.host, seed);
    seen.add(await look(stage.host));
  }
  return [...seen].sort();
}

const names = async ({ files }: MemoryHost) =>
  ((await files.list(DIR)) ?? []).map(({ name }) => name).join(" ");
const content = (path: string) => async (host: MemoryHost) => (await host.files.read(path)) ?? "none";

describe("what was synced stays", () => {
  test("a record with all directories that lead to it", async () => {
    const path = `${DIR}/mooring/volumes/one.json`;
    const seen = await outcomes(async ({ files }) => {
      await files.makeDirectories(`${DIR}/mooring/volumes`, 0o700);
      await files.writeDurable(path, "first");
      await files.writeDurable(path, "second");
    }, content(path));

    expect(seen).toEqual(["second"]);
  });

  test("what its directory had before it, and nothing that came after is needed for it", async () => {
    const seen = await outcomes(async ({ files }) => {
      await files.makeFile(`${DIR}/before`, 0o600);
      await files.writeDurable(`${DIR}/record`, "");
      await files.makeFile(`${DIR}/later`, 0o600);
    }, names);

    expect(seen).toEqual(["before later record", "before record"]);
  });

  test("everything, after half a minute: the kernel writes it back by itself", async () => {
    const seen = await outcomes(
      async (host, { scheduler }) => {
        await write(host, `${DIR}/file`, "old");
        await scheduler.runFor(30_000);
        await write(host, `${DIR}/other`, "");
      },
      content(`${DIR}/file`),
    );

    expect(seen).toEqual(["old"]);
  });

  test("everything, by an orderly reboot", async () => {
    const seen = await outcomes(
      (host) => write(host, `${DIR}/file`, "text"),
      content(`${DIR}/file`),
      (host) => {
        host.reboot();
        host.crash();
      },
    );

    expect(seen).toEqual(["text"]);
  });
});

describe("what was not synced", () => {
  test("a new file is gone, empty, cut or whole", async () => {
    const seen = await outcomes((host) => write(host, `${DIR}/file`, "ab"), content(`${DIR}/file`));

    expect(seen).toEqual(["", "a", "ab", "none"]);
  });

  test("a file that is written over is old, new, or a part of the new", async () => {
    const seen = await outcomes(
      async (host) => {
        await host.files.writeDurable(`${DIR}/file`, "old");
        await write(host, `${DIR}/file`, "xy");
      },
      content(`${DIR}/file`),
    );

    expect(seen).toEqual(["", "old", "x", "xy"]);
  });

  test("names of one directory come and go in their order", async () => {
    const seen = await outcomes(async ({ files }) => {
      for (const name of ["a", "b", "c"]) await files.makeFile(`${DIR}/${name}`, 0o600);
    }, names);

    expect(seen).toEqual(["", "a", "a b", "a b c"]);
  });

  test("a removed file may be back", async () => {
    const seen = await outcomes(
      async ({ files }) => {
        await files.writeDurable(`${DIR}/file`, "text");
        await files.removeFile(`${DIR}/file`);
      },
      content(`${DIR}/file`),
    );

    expect(seen).toEqual(["none", "text"]);
  });

  test("a removed tree may be back, with what was in it", async () => {
    const seen = await outcomes(
      async ({ files }) => {
        await files.makeDirectories(`${DIR}/pod`, 0o700);
        await files.writeDurable(`${DIR}/pod/file`, "text");
        await files.removeFile(`${DIR}/pod/file`);
        await files.removeDirectory(`${DIR}/pod`);
      },
      async (host) => `${await names(host)} ${await content(`${DIR}/pod/file`)(host)}`,
    );

    expect(seen).toEqual([" none", "pod none", "pod text"]);
  });

  test("a rename is whole or did not happen", async () => {
    const seen = await outcomes(
      async (host) => {
        await host.files.makeDirectories(`${DIR}/one`, 0o700);
        await host.files.makeDirectories(`${DIR}/two`, 0o700);
        await write(host, `${DIR}/one/file`, "text");
        host.sync("/");
        await host.files.rename(`${DIR}/one/file`, `${DIR}/two/file`);
      },
      async (host) =>
        host
          .describe(DIR)
          .filter((line) => line.endsWith(" file"))
          .join(),
    );

    expect(seen).toEqual([`${DIR}/one/file file`, `${DIR}/two/file file`]);
  });

  test("two seeds that are one draw the same", async () => {
    const after = async () => {
      const { host } = await machine();
      for (const name of ["a", "b", "c", "d", "e", "f"]) await write(host, `${DIR}/${name}`, "text");
      host.crash({ random: createSeededRandom(7) });
      return host.describe(DIR);
    };

    expect(await after()).toEqual(await after());
  });
});

describe("of two nodes on one machine", () => {
  test("only that loses something which loses its power", async () => {
    const seen = await outcomes(
      async (host) => {
        for (const node of ["one", "two"]) await host.files.makeDirectories(`${DIR}/${node}/pods`, 0o755);
        host.sync("/");
        for (const node of ["one", "two"]) await host.files.makeFile(`${DIR}/${node}/pods/x`, 0o600);
      },
      async (host) =>
        host
          .describe(DIR)
          .filter((line) => line.endsWith(" file"))
          .join(),
      (host, seed) => void host.crash({ below: `${DIR}/one`, random: createSeededRandom(seed) }),
    );

    expect(seen).toEqual([`${DIR}/one/pods/x file,${DIR}/two/pods/x file`, `${DIR}/two/pods/x file`]);
  });
});

describe("volumes", () => {
  async function mounted(host: MemoryHost): Promise<string> {
    host.addDevice("/dev/sda", 1 << 30);
    const target = `${DIR}/mount`;
    await host.files.makeDirectories(target, 0o755);
    host.sync("/");
    await host.mounts.formatAndMount({ source: "/dev/sda", target, type: "ext4", options: [] });
    return target;
  }
  const again = async (host: MemoryHost) => {
    const target = `${DIR}/mount`;
    await host.mounts.mount({ source: "/dev/sda", target, type: "ext4", options: [] });
    return (await host.files.read(`${target}/file`)) ?? "none";
  };

  test("a filesystem loses what no file was synced for", async () => {
    const seen = await outcomes(async (host) => {
      const target = await mounted(host);
      await host.files.writeDurable(`${target}/file`, "synced ");
      await write(host, `${target}/file`, "synced x");
    }, again);

    expect(seen).toEqual(["synced ", "synced x"]);
  });

  test("a filesystem that was unmounted has everything", async () => {
    const seen = await outcomes(async (host) => {
      const target = await mounted(host);
      await write(host, `${target}/file`, "text");
      await host.mounts.unmount(target);
    }, again);

    expect(seen).toEqual(["text"]);
  });

  test("blocks of a raw device: what was synced, and some of what came after", async () => {
    const seen = await outcomes(
      async (host) => {
        host.addDevice("/dev/sda", 1 << 30);
        const disk = host.tree.devices.get("/dev/sda")?.disk;
        if (disk === undefined) throw new Error("no disk");
        writeBlock(disk, "7", "a", { synced: false });
        writeBlock(disk, "7", "ab", { synced: true });
        writeBlock(disk, "7", "abcd", { synced: false });
      },
      async (host) => host.openDevice("/dev/sda").read("7") ?? "none",
    );

    expect(seen).toEqual(["ab", "abc", "abcd"]);
  });
});

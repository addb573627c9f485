import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { mooring, MOORING, scratch } from "./mooring.ts";

const place = scratch();
afterAll(place.remove);

describe("mooring", () => {
  test("--help shows the commands that work, with examples, and succeeds", () => {
    const { code, stdout } = mooring("--help");

    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}up /m);
    expect(stdout).toMatch(/^ {2}apiserver /m);
    expect(stdout).toMatch(/^ {2}version /m);
    expect(stdout).toContain("Examples:");
  });

  test("version says what package.json says, for people and for programs", () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };

    expect(mooring("version").stdout).toMatch(new RegExp(`^mooring ${version} `));
    expect(mooring("--version")).toEqual(mooring("version"));
    expect(JSON.parse(mooring("version", "-o", "json").stdout)).toEqual({
      version,
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
      kubernetesApi: "1.33",
      kubernetes: { min: "1.26", max: "1.37" },
      csi: { min: "1.0", max: "1.12" },
    });
  });
});

test("a reader that goes away ends it without a word; test/long/cli-closed-pipe has every command", () => {
  const { status, stderr } = spawnSync(
    "sh",
    ["-c", `exec "$0" "$1" --help | exec true`, process.execPath, MOORING],
    {
      encoding: "utf8",
    },
  );

  expect([status, stderr]).toEqual([0, ""]);
});

describe("misuse is 2 and says what to do", () => {
  for (const [args, complaint] of [
    [["frobnicate"], /unknown command 'frobnicate'/],
    [["up", "--frobnicate"], /unknown option '--frobnicate'/],
    [["up", "surplus"], /too many arguments/],
    [["up", "--data-dir"], /--data-dir <dir>' argument missing/],
    [["up", "--listen", "6443"], /--listen <host:port>.*HOST:PORT/],
    [["up", "--listen", "127.0.0.1:65536"], /--listen <host:port>.*HOST:PORT/],
    [["apiserver", "--listen", "::1:6443"], /--listen <host:port>.*HOST:PORT/],
    [["apiserver", "surplus"], /too many arguments/],
    [["apiserver", "snapshot"], /Usage: mooring apiserver snapshot/],
    [["apiserver", "snapshot", "frobnicate"], /unknown command 'frobnicate'/],
    [["apiserver", "snapshot", "save"], /missing required argument 'file'/],
    [["apiserver", "snapshot", "restore", "f", "--listen", "x"], /unknown option '--listen'/],
    [["version", "-o", "xml"], /--output <format>.*text, json/],
    [[], /Usage: mooring/],
  ] as const) {
    test(`mooring ${args.join(" ")}`, () => {
      const { code, stdout, stderr } = mooring(...args);

      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(complaint);
    });
  }
});

describe("failure is 1 and says what to do", () => {
  const nowhere = ["--kubeconfig", "/nowhere/kubeconfig"];

  for (const [args, complaint] of [
    [["get", "volumes", ...nowhere], /there is no file \/nowhere\/kubeconfig; create it or correct the path/],
    [["why", "pod/web", ...nowhere], /there is no file \/nowhere\/kubeconfig; create it or correct the path/],
    [["controller", ...nowhere, "--http-endpoint="], /there is no file \/nowhere\/kubeconfig/],
    [["attacher", ...nowhere], /there is no file \/nowhere\/kubeconfig/],
    [["node", ...nowhere, "--node-name=a", "--root-dir=/nowhere", "--http-endpoint="], /there is no file/],
    [["driver", "--endpoint=/nowhere/s", "--nodeid=a", "--statedir=/dev/null/x"], /'\/dev\/null\/x'/],
    [["apiserver", "snapshot", "save", "f", "--data-dir=/nowhere"], /no store in it; name the directory/],
    [["apiserver", "snapshot", "status", "/nowhere/file"], /\/nowhere\/file: no such file/],
  ] as const) {
    test(`mooring ${args.join(" ")}`, () => {
      const { code, stdout, stderr } = mooring(...args);

      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(complaint);
      // A line each, and no stack: the fault is not in the program.
      expect(stderr).toMatch(/^mooring: .*\n$/);
    });
  }

  test("a data directory that cannot be made", () => {
    const file = join(place.path, "file");
    writeFileSync(file, "");

    const { code, stderr } = mooring("up", "--data-dir", join(file, "data"), "--listen", "127.0.0.1:0");

    expect(code).toBe(1);
    expect(stderr).toMatch(/^mooring: cannot create .*--data-dir\n$/);
  });

  test("a snapshot that is none", () => {
    const file = join(place.path, "no-snapshot");
    writeFileSync(file, "hello");

    const { code, stdout, stderr } = mooring(
      "apiserver",
      "snapshot",
      "restore",
      file,
      "--data-dir",
      "/nowhere",
    );

    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^mooring: cannot read snapshot .*no snapshot of mooring.*Nothing was changed\n$/);
  });

  test("an address this machine does not have", () => {
    const { code, stderr } = mooring(
      "apiserver",
      "--data-dir",
      join(place.path, "d"),
      "--listen",
      "192.0.2.1:6443",
    );

    expect(code).toBe(1);
    expect(stderr).toMatch(/^mooring: cannot listen on 192\.0\.2\.1:6443: .*--listen/m);
  });
});

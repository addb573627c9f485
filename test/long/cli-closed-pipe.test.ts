// Every command whose reader goes away before it has said anything (`mooring ... | head -0`): it ends quietly.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { mooring, MOORING, Running, scratch } from "../e2e/mooring.ts";

const place = scratch();
const dataDir = join(place.path, "data");
const snapshot = join(place.path, "a.snapshot");
const kubeconfig = ["--kubeconfig", join(dataDir, "admin.kubeconfig")];
let server: Running;

beforeAll(async () => {
  server = new Running("apiserver", "--data-dir", dataDir, "--listen", "127.0.0.1:0");
  await server.says(/"serving"|serving/);
  expect(mooring("apiserver", "snapshot", "save", snapshot, "--data-dir", dataDir).code).toBe(0);
});

afterAll(async () => {
  server.kill("SIGTERM");
  await server.exit();
  place.remove();
});

/** What it says on the other stream, and its end; both streams are cut where `both` says so. */
async function unread(args: readonly string[], { both = false } = {}) {
  const child = spawn(process.execPath, [MOORING, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  if (both) child.stderr.destroy();
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stderr };
}

/** Every command and subcommand there is, so that a new one is here by itself. */
function commandsOf(command: Command, path: readonly string[] = []): (readonly string[])[] {
  return [path, ...command.commands.flatMap((child) => commandsOf(child, [...path, child.name()]))];
}

describe("with its output closed", () => {
  for (const path of commandsOf(createProgram()).filter(([name]) => name !== "__complete")) {
    test(`mooring ${[...path, "--help"].join(" ")}`, async () => {
      expect(await unread([...path, "--help"])).toEqual({ code: 0, stderr: "" });
    });
  }

  for (const [args, says] of [
    [["--version"], /^$/],
    [["version"], /^$/],
    [["version", "-o", "json"], /^$/],
    [["completion", "bash"], /^$/],
    [["get", "nodes", ...kubeconfig], /^(no nodes.*\n)?$/i],
    [["get", "volumes", "-A", "-o", "json", ...kubeconfig], /^$/],
    [["apiserver", "snapshot", "status", snapshot], /^$/],
    [["apiserver", "snapshot", "status", snapshot, "-o", "json"], /^$/],
    [
      ["apiserver", "snapshot", "save", join(place.path, "b"), "--data-dir", dataDir],
      /^(It holds secrets.*\n)?$/,
    ],
    [["apiserver", "snapshot", "restore", snapshot, "--data-dir", join(place.path, "restored")], /^$/],
  ] as const) {
    test(`mooring ${args.join(" ").replaceAll(place.path, "")}`, async () => {
      const { code, stderr } = await unread(args);

      expect(stderr).toMatch(says);
      expect(code).toBe(0);
    });
  }

  test("what was asked for is done all the same", () => {
    expect(existsSync(join(place.path, "b"))).toBe(true);
    expect(existsSync(join(place.path, "restored"))).toBe(true);
  });

  test("a failure that nobody reads is a failure", async () => {
    expect((await unread(["apiserver", "snapshot", "status", "/nowhere"], { both: true })).code).toBe(1);
    expect((await unread(["frobnicate"], { both: true })).code).toBe(2);
  });
});

// The scripts of `mooring completion`, loaded by the shells they are for. A shell that is not here is named as left out.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, startCluster, type Cluster } from "../e2e/cluster.ts";
import { mooring, scratch } from "../e2e/mooring.ts";

const place = scratch();
const bin = join(place.path, "bin");
const kubeconfig = join(place.path, "data/admin.kubeconfig");
const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: place.path, TERM: "xterm" };
let cluster: Cluster;

beforeAll(async () => {
  mkdirSync(bin);
  const script = `#!/bin/sh\nexec ${process.execPath} ${resolve(import.meta.dirname, "../../bin/mooring")} "$@"\n`;
  writeFileSync(join(bin, "mooring"), script);
  chmodSync(join(bin, "mooring"), 0o755);
  for (const shell of ["bash", "zsh", "fish"]) {
    writeFileSync(join(place.path, shell), mooring("completion", shell).stdout);
  }
  mkdirSync(join(place.path, "data"));
  cluster = await startCluster(join(place.path, "data"), await freePort());
  for (const name of ["worker-1", "worker-2"]) {
    await cluster.call("POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name } });
  }
});

afterAll(async () => {
  await cluster.kill();
  place.remove();
});

/** As readline calls it. */
const BASH = `
  source "$1"
  COMP_LINE="$2" COMP_POINT=\${#2}
  _mooring
  printf '%s\\n' "\${COMPREPLY[@]}"`;

const FISH = `source $argv[1]; complete -C $argv[2]`;

/** Completion works only while a line is edited: a zsh on a terminal of its own gets the line, a tab, and tells the line. */
const ZSH = `
  zmodload zsh/zpty
  mkfifo told
  zpty -b z zsh -f -i
  zpty -w z 'autoload -U compinit; compinit -u -D; source '"$1"
  zpty -w z 'tell() { print -r -- "$BUFFER" > told }; zle -N tell; bindkey "^X" tell; setopt no_beep'
  zpty -w -n z "$2"$'\\t\\x18'
  read -r line < told
  print -r -- "$line"
  zpty -d z; rm told`;

function shell(name: string, args: readonly string[]): string[] {
  const options = { env, cwd: place.path, encoding: "utf8", timeout: 20_000 } as const;
  const { stdout, stderr } = spawnSync(name, args, options);
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

function whereItIs(name: string): typeof describe {
  if (spawnSync(name, ["-c", "true"], { env }).status === 0) return describe;
  process.stdout.write(`left out: completion in ${name}: no ${name} on this machine\n`);
  return describe.skip as typeof describe;
}

/** What is completed how is tested beside suggest.ts; here each kind of answer goes through each shell once. */
const NODES = [`mooring why --kubeconfig ${kubeconfig} node/`, ["node/worker-1", "node/worker-2"]] as const;

whereItIs("bash")("bash", () => {
  for (const [line, expected] of [
    NODES,
    ["mooring get ", ["volumes", "attachments", "nodes", "drivers", "operations"]],
    // A cluster that cannot be asked is no reason to write into the line.
    ["mooring why --kubeconfig /nowhere node/", []],
    ["mooring get volumes --output=j", ["json"]], // bash takes "=" for a break between words
    ["mooring get volumes --kubeconfig ./data/adm", ["./data/admin.kubeconfig"]],
  ] as const) {
    test(`offers ${expected.join(", ") || "nothing"} after "${line.replace(place.path, "")}"`, () => {
      expect(shell("bash", ["--norc", "-c", BASH, "bash", join(place.path, "bash"), line])).toEqual(expected);
    });
  }
});

whereItIs("fish")("fish", () => {
  for (const [line, expected] of [
    NODES,
    ["mooring get volumes --output=j", ["--output=json"]],
    ["mooring get volumes --kubeconfig ./data/adm", ["./data/admin.kubeconfig"]],
  ] as const) {
    test(`offers ${expected.join(", ") || "nothing"} after "${line.replace(place.path, "")}"`, () => {
      const rows = shell("fish", ["--no-config", "-c", FISH, join(place.path, "fish"), line]);

      expect(rows.map((row) => row.split("\t")[0]).sort()).toEqual([...expected].sort());
    });
  }
});

whereItIs("zsh")("zsh", () => {
  for (const [line, completed] of [
    ["mooring get volumes --output=j", "mooring get volumes --output=json"],
    [
      "mooring get -o yaml --kubeconfig ./data/adm",
      "mooring get -o yaml --kubeconfig ./data/admin.kubeconfig",
    ],
    [`mooring why --kubeconfig ${kubeconfig} node/w`, `mooring why --kubeconfig ${kubeconfig} node/worker-`],
  ] as const) {
    test(`makes "${completed.replace(place.path, "")}" of "${line.replace(place.path, "")}"`, () => {
      expect(shell("zsh", ["-f", "-c", ZSH, "zsh", join(place.path, "zsh"), line])).toEqual([completed]);
    });
  }
});

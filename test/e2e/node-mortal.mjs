// `mooring node` that kills itself at its n-th act: a change of its files, a program it starts, a request to the API
// server or a driver. Acts count from when the parent says so; the one it dies at is named on stdout.
import childProcess from "node:child_process";
import fs from "node:fs";
import http2 from "node:http2";
import { syncBuiltinESMExports } from "node:module";
import process from "node:process";
import { setTimeout } from "node:timers";

/** Long enough for a request to leave the machine or a program to begin, too short for it to end. */
const AMID_MS = 3;

let acts = 0;
let dieAt = Infinity;
let amid = false;

function act(name) {
  if (acts++ !== dieAt) return;
  fs.writeSync(1, `dies ${amid ? "amid" : "before"} act ${dieAt}: ${name}\n`);
  if (amid) setTimeout(() => process.kill(process.pid, "SIGKILL"), AMID_MS);
  else process.kill(process.pid, "SIGKILL");
}

/** Answers with how many acts there were since the order before. */
process.on("message", (order) => {
  const before = acts;
  acts = 0;
  ({ dieAt = Infinity, amid = false } = order);
  process.send(before);
});

process.on("disconnect", () => process.exit());

function count(owner, name, nameOf = () => name) {
  const original = owner[name];
  owner[name] = function (...args) {
    const found = nameOf(...args);
    if (found !== undefined) act(found);
    return original.apply(this, args);
  };
}

const path = (name) => (file) => `${name} ${String(file)}`;
for (const name of ["mkdir", "rename", "rmdir", "unlink", "rm", "chmod", "symlink", "link", "writeFile"])
  count(fs.promises, name, path(name));
count(fs.promises, "open", (file, flags = "r") =>
  flags === "r" || typeof flags === "number" ? undefined : `open ${file}`,
);
for (const name of ["spawn", "execFile"])
  count(childProcess, name, (program, args) => `run ${program} ${[args].flat().join(" ")}`);

/** Reads of the API server are no acts; whatever goes to a driver is one. */
const requestName = (headers = {}) =>
  (headers[":method"] ?? "GET") === "GET" ? undefined : `${headers[":method"]} ${headers[":path"]}`;
const connect = http2.connect;
http2.connect = function (...args) {
  const session = connect.apply(this, args);
  count(session, "request", requestName);
  return session;
};
syncBuiltinESMExports();

process.argv.splice(1, 1, "mooring");
await import("../../dist/src/cli/main.js");

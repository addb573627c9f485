// A process that saves or restores and kills itself right before its n-th act on the file system: every system call
// that changes something is one place where a machine may stop.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import process from "node:process";

const { act, options, stopBefore } = JSON.parse(process.argv[2] ?? "");
let acts = 0;

function counted(owner, name) {
  const original = owner[name];
  owner[name] = function (...args) {
    const isRead = name === "open" && args[1] === "r";
    if (!isRead && ++acts === stopBefore) process.kill(process.pid, "SIGKILL");
    return original.apply(this, args);
  };
}

const handle = await fs.promises.open(process.argv[1], "r");
for (const name of ["appendFile", "sync"]) counted(Object.getPrototypeOf(handle), name);
await handle.close();
for (const name of ["link", "mkdir", "open", "rename", "rm", "unlink", "writeFile"])
  counted(fs.promises, name);
counted(fs, "chmodSync");
syncBuiltinESMExports();

const { createSystemClock } = await import("../../dist/src/base/system-clock.js");
const { saveSnapshot } = await import("../../dist/src/processes/snapshot.js");
const { restoreSnapshot } = await import("../../dist/src/processes/restore.js");
await { save: saveSnapshot, restore: restoreSnapshot }[act]({ clock: createSystemClock() }, options);
process.stdout.write(String(acts));

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What `mooring up` left on this machine below a folder, and how a test gets rid of it after a kill. */

export const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

/** In mount order. */
export function mountsBelow(folder: string): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${folder}/`));
}

export function loopDevicesBelow(folder: string): readonly string[] {
  const { stdout } = spawnSync("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"], {
    encoding: "utf8",
  });
  return stdout
    .split("\n")
    .filter((line) => line.includes(` ${folder}/`))
    .map((line) => line.split(" ")[0] ?? "");
}

/** Twice: a device that holds a mounted file goes first, one that is mounted goes last. */
export function letGoOf(folder: string): void {
  for (const _ of [1, 2]) {
    for (const device of stackedOn(loopDevicesBelow(folder))) spawnSync("losetup", ["-d", device]);
    for (const path of [...mountsBelow(folder)].reverse()) spawnSync("umount", [path]);
    for (const device of loopDevicesBelow(folder)) spawnSync("losetup", ["-d", device]);
  }
}

function stackedOn(devices: readonly string[]): readonly string[] {
  return devices.flatMap((device) => {
    const { stdout } = spawnSync("losetup", ["--noheadings", "--output", "NAME", "--associated", device], {
      encoding: "utf8",
    });
    return stdout.split("\n").filter((name) => name !== "");
  });
}

/** A command as a person would type it, in the folder of the project. */
export function shell(command: string): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8", cwd: PROJECT });
  return { code: status, output: stdout + stderr };
}

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { withDeadline, type Clock } from "../base/clock.ts";
import { systemCode, type ConfigWorld } from "../kube/config/world.ts";
import type { FlexDriverFile, FlexHost } from "../volumes/plugins/flex-driver.ts";

/** An answer is one small JSON object. */
const OUTPUT_BYTES_MAX = 64 * 1024;
const WRITABLE_BY_ALL = 0o002;
const EXECUTABLE = 0o111;

/**
 * FlexVolume drivers of this machine. They run as we do, often root, so a program that anybody may replace is not run:
 * neither it nor the directories down to it may be writable by all. Looked at again before every run.
 */
export function createFlexHost(
  { clock, runProgram }: { readonly clock: Clock; readonly runProgram: ConfigWorld["runProgram"] },
  /** `env` is given to drivers as it is: they find their tools and clusters by it, as under upstream. */
  {
    directory,
    env,
  }: { readonly directory: string; readonly env: Readonly<Record<string, string | undefined>> },
): FlexHost {
  const variables = Object.fromEntries(
    Object.entries(env).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]])),
  );

  async function list(): Promise<readonly FlexDriverFile[]> {
    const names = await readDirectories(directory);
    const files = await Promise.all(names.sort().map((name) => look(directory, name)));
    return files.filter((file) => file !== undefined);
  }

  const exec: FlexHost["exec"] = async (file, args, { deadlineMs, signal }) => {
    const refused = await refusal(directory, file);
    if (refused !== undefined) throw Object.assign(new Error(refused), { code: "EACCES" });
    const onDeadline = () => Object.assign(new Error(`${file} took too long`), { code: "ETIMEDOUT" });
    const run = await withDeadline(clock, { ms: deadlineMs, signal, onDeadline }, (both) =>
      runProgram({
        command: file,
        args,
        env: variables,
        maxStdoutBytes: OUTPUT_BYTES_MAX,
        interactive: false,
        signal: both,
      }),
    );
    return { code: run.exitCode, stdout: run.stdout, stderr: run.stderr };
  };

  return { list, exec };
}

/** Names of what may be a driver's directory; hidden ones are how installers write before they rename. */
async function readDirectories(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
      .map(({ name }) => name);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Undefined where the directory holds no program of its name (yet). One that cannot be looked at stops no other. */
async function look(directory: string, name: string): Promise<FlexDriverFile | undefined> {
  const file = join(directory, name, name.slice(name.lastIndexOf("~") + 1));
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file);
    const refused = await refusal(directory, file);
    return { directory: name, file, version: [ino, size, mtimeMs, ctimeMs, refused].join(" "), refused };
  } catch (error) {
    const code = systemCode(error) ?? String(error);
    return ["ENOENT", "ENOTDIR"].includes(code)
      ? undefined
      : { directory: name, file, version: code, refused: code };
  }
}

/** Why this program must not be run, undefined where it may. */
async function refusal(directory: string, file: string): Promise<string | undefined> {
  const { mode, isFile } = await describe(file);
  if (!isFile) return "not a file";
  if ((mode & EXECUTABLE) === 0) return "not executable; chmod it to 0755";
  if ((mode & WRITABLE_BY_ALL) !== 0) return "writable by everybody; chmod it to 0755";
  for (const parent of [join(file, ".."), directory])
    if (((await describe(parent)).mode & WRITABLE_BY_ALL) !== 0)
      return `${parent} is writable by everybody; chmod it to 0755`;
  return undefined;
}

async function describe(path: string): Promise<{ mode: number; isFile: boolean }> {
  const found = await stat(path);
  return { mode: found.mode, isFile: found.isFile() };
}

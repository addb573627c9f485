import { Command, Option } from "commander";
import type { Restored } from "../../../processes/restore.ts";
import type { SnapshotStatus } from "../../../processes/snapshot.ts";
import { printLine } from "../../output/streams.ts";

interface OutputFlag {
  readonly output: "text" | "json";
}

const HELP = `
A snapshot is one file (mode 0600) with every object as of one revision, the certificates
and the key that signs tokens. Whoever can read it can read every Secret and be admin.
The server may be running or stopped; a running one is not held up.

Examples:
  mooring apiserver snapshot save backup.snapshot --data-dir /var/lib/mooring
  mooring apiserver snapshot status backup.snapshot
  mooring apiserver snapshot restore backup.snapshot --data-dir /var/lib/mooring-restored`;

export function snapshotCommand(): Command {
  return new Command("snapshot")
    .description("save, check and restore everything a data directory holds")
    .addHelpText("after", HELP)
    .addCommand(saveCommand())
    .addCommand(statusCommand())
    .addCommand(restoreCommand());
}

function saveCommand(): Command {
  return new Command("save")
    .description("write a snapshot of a data directory, whose server may be running")
    .argument("<file>", "where to write it; complete or not at all")
    .addOption(dataDirOption("the directory to save"))
    .option("--overwrite", "replace FILE if it is there", false)
    .addOption(outputOption())
    .addHelpText("after", HELP)
    .action(async (file: string, flags: OutputFlag & { overwrite: boolean }, command: Command) => {
      const [{ saveSnapshot }, { createSystemClock }] = await Promise.all([
        import("../../../processes/snapshot.ts"),
        import("../../../base/system-clock.ts"),
      ]);
      const { overwrite, output } = flags;
      const options = { file, overwrite, dataDir: dataDirOf(command) };
      print(output, await saveSnapshot({ clock: createSystemClock() }, options), describeStatus);
      printLine(process.stderr, "It holds secrets and private keys: keep it as safe as the data directory.");
    });
}

function statusCommand(): Command {
  return new Command("status")
    .description("read all of a snapshot, check it, and say what it holds")
    .argument("<file>", "the snapshot")
    .addOption(outputOption())
    .addHelpText("after", HELP)
    .action(async (file: string, { output }: OutputFlag) => {
      const { readSnapshotStatus } = await import("../../../processes/snapshot.ts");
      print(output, await readSnapshotStatus(file), describeStatus);
    });
}

function restoreCommand(): Command {
  return new Command("restore")
    .description("make a data directory from a snapshot, after checking it")
    .argument("<file>", "the snapshot")
    .addOption(dataDirOption("the directory to make; it must be empty or not there yet"))
    .addOption(outputOption())
    .addHelpText("after", HELP)
    .action(async (file: string, { output }: OutputFlag, command: Command) => {
      const [{ restoreSnapshot }, { createSystemClock }] = await Promise.all([
        import("../../../processes/restore.ts"),
        import("../../../base/system-clock.ts"),
      ]);
      const options = { file, dataDir: dataDirOf(command) };
      print(output, await restoreSnapshot({ clock: createSystemClock() }, options), describeRestored);
    });
}

function dataDirOption(text: string): Option {
  return new Option("--data-dir <dir>", text).default("./.mooring");
}

function outputOption(): Option {
  return new Option("-o, --output <format>", "how to print the result")
    .choices(["text", "json"])
    .default("text");
}

/** `mooring apiserver --data-dir DIR snapshot save` means that directory too, and not the default. */
export function dataDirOf(command: Command): string {
  const server = command.parent?.name() === "apiserver" ? command.parent : command.parent?.parent;
  const isGiven = (at: Command | null | undefined) => at?.getOptionValueSource("dataDir") === "cli";
  const from = !isGiven(command) && isGiven(server) ? server : command;
  return String(from?.getOptionValue("dataDir"));
}

function print<T>(output: OutputFlag["output"], value: T, describe: (value: T) => readonly string[]): void {
  const text = output === "json" ? JSON.stringify(value, null, 2) : describe(value).join("\n");
  printLine(process.stdout, text);
}

function describeStatus(status: SnapshotStatus): readonly string[] {
  const resources = Object.entries(status.resources).map(([name, count]) => `${count} ${name}`);
  return [
    `snapshot  ${status.file}`,
    `created   ${status.createdAt} by mooring ${status.version}`,
    `revision  ${status.revision}`,
    `objects   ${status.objects}`,
    ...resources.map((text) => `          ${text}`),
    `keys      ${status.files.join(", ")}`,
    `size      ${status.sizeBytes} bytes, checksum verified`,
  ];
}

function describeRestored({ dataDir, objects, revision, startRevision }: Restored): readonly string[] {
  return [
    `restored  ${objects} objects as of revision ${revision} into ${dataDir}`,
    `revision  goes on from ${startRevision}: clients of the lost server list again`,
    `next      mooring apiserver --data-dir ${dataDir}`,
  ];
}

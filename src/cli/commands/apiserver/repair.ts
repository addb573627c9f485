import { Command, Option } from "commander";
import type { Repaired } from "../../../processes/repair.ts";
import { printLine } from "../../output/streams.ts";
import { dataDirOf } from "./snapshot.ts";

const HELP = `
For a server that does not start because its store is damaged. What is sound is copied into
a new directory; the damaged one is read and never written to. A snapshot from before the
damage may hold more: mooring apiserver snapshot restore.

Examples:
  mooring apiserver repair --data-dir /var/lib/mooring --to /var/lib/mooring-repaired
  mooring apiserver --data-dir /var/lib/mooring-repaired`;

export function repairCommand(): Command {
  return new Command("repair")
    .description("copy what is sound of a damaged data directory, and list what is not")
    .option("--data-dir <dir>", "the damaged directory, whose server must be stopped", "./.mooring")
    .requiredOption("--to <dir>", "the directory to make; it must be empty or not there yet")
    .addOption(
      new Option("-o, --output <format>", "how to print the result")
        .choices(["text", "json"])
        .default("text"),
    )
    .addHelpText("after", HELP)
    .action(async ({ to, output }: { to: string; output: "text" | "json" }, command: Command) => {
      const [{ repairDataDirectory, describeKey }, { createSystemClock }] = await Promise.all([
        import("../../../processes/repair.ts"),
        import("../../../base/system-clock.ts"),
      ]);
      const repaired = await repairDataDirectory(
        { clock: createSystemClock() },
        { dataDir: dataDirOf(command), to },
      );
      const lines = output === "json" ? [JSON.stringify(repaired, null, 2)] : describe(repaired, describeKey);
      for (const line of lines) printLine(process.stdout, line);
    });
}

type DescribeKey = (key: Repaired["outdated"][number]) => string;

function describe(repaired: Repaired, describeKey: DescribeKey): readonly string[] {
  const { lost, outdated, uncertain, unmatched, missing, damagedAt, unreadableFiles } = repaired;
  const named = lost.map(({ key, revision }) =>
    key === undefined ? `an object of revision ${revision}, name unreadable` : describeKey(key),
  );
  return [
    `copied    ${repaired.objects} objects from ${repaired.from} into ${repaired.dataDir}`,
    ...section("lost", named),
    ...(missing > 0 ? [`lost      ${missing} more records of which nothing can be read`] : []),
    ...section("uncertain", uncertain.map(describeKey), "not copied: they may have been deleted before"),
    ...(unmatched.length > 0 ? [`lost      ${unmatched.length} writes of objects that cannot be told`] : []),
    ...section("outdated", outdated.map(describeKey), "copied, and may be older than they should be"),
    ...section("no key", unreadableFiles, "a new one is made at the start"),
    ...(damagedAt.length > 0 ? [`damage    at offsets ${damagedAt.join(", ")} of store/data.mdb`] : []),
    `revision  goes on from ${repaired.startRevision}: clients of the damaged server list again`,
    `next      mooring apiserver --data-dir ${repaired.dataDir}`,
  ];
}

function section(title: string, items: readonly string[], note?: string): readonly string[] {
  if (items.length === 0) return [];
  const count = `${title.padEnd(8)}  ${items.length}${note === undefined ? "" : ` (${note})`}`;
  return [count, ...items.map((item) => `          ${item}`)];
}

import { InvalidArgumentError, Option, type Command } from "commander";
import { parseQuantity, quantityToBytes } from "../../kube/quantity.ts";
import { durationOption } from "../durations.ts";

/** How far back the API server can tell: for watches that resume, pages of a list, `resourceVersionMatch=Exact`. */
export interface HistoryFlags {
  readonly historyRetention: number;
  readonly historyRevisions: number;
  readonly historySize: number;
}

/** As `store.ts` has them; see there for why. */
const RETENTION_MS = 5 * 60_000;
const REVISIONS = 1_000;
const SIZE_BYTES = 64 * 2 ** 20;

export function addHistoryOptions(command: Command): Command {
  return command
    .addOption(
      durationOption("history-retention", "how long old versions of objects are kept at least", {
        defaultMs: RETENTION_MS,
        minMs: 0,
        why: "it is a length of time",
      }),
    )
    .addOption(
      new Option("--history-revisions <count>", "how many writes are kept at least, however old")
        .default(REVISIONS)
        .argParser(parseCount),
    )
    .addOption(
      new Option(
        "--history-size <quantity>",
        "how much text of old versions is kept at most, whatever the other two say",
      )
        .default(SIZE_BYTES, "64Mi")
        .argParser(parseSize),
    );
}

export function toStoreOptions({ historyRetention, historyRevisions, historySize }: HistoryFlags) {
  return {
    historyMsMin: historyRetention,
    historyRevisionsMin: historyRevisions,
    historyCharsMax: historySize,
  };
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count))
    throw new InvalidArgumentError("Give a whole number, 0 or more.");
  return count;
}

function parseSize(text: string): number {
  const bytes = tryBytes(text);
  if (bytes === undefined || bytes < 0)
    throw new InvalidArgumentError("Give a size such as 64Mi, 500M or 0.");
  return bytes;
}

function tryBytes(text: string): number | undefined {
  try {
    return Number(quantityToBytes(parseQuantity(text)));
  } catch {
    return undefined;
  }
}
